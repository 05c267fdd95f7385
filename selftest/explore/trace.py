"""What broke, as a trace: a numbered list of requests and answers, timers, writes and failovers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_protocol.errors import Error, name_of
from reference_coordinator.classic.effects import (
    Answer,
    Effect,
    JoinResponse,
    LeaveResponse,
    Persist,
    Transition,
)
from reference_coordinator.classic.events import (
    CommitReceived,
    DeleteReceived,
    DescribeReceived,
    Event,
    Expired,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    Loaded,
    RecordWritten,
    RequestsEnabled,
    SyncReceived,
    TimerFired,
    Unloaded,
)
from selftest.explore.broker import Happened
from selftest.explore.rules import Rules
from selftest.explore.scene import OPERATOR, Action, Scene
from selftest.explore.turn import Turn


@dataclass(frozen=True)
class Trace:
    """A course of actions from a first scene, as the coordinator saw it."""

    happened: tuple[Happened, ...]

    @property
    def breaks(self) -> tuple[str, ...]:
        """What breaks in it."""
        return tuple(what for each in self.happened for what in each.breaks)

    @classmethod
    def of(cls, start: Scene, actions: Sequence[Action], rules: Rules) -> "Trace":
        """Let the actions happen again."""
        scene, happened = start, []
        for action in actions:
            turn = Turn(scene, rules)
            turn.take(action)
            scene = turn.scene
            happened += turn.log
        return cls(tuple(happened))

    def lines(self) -> Iterator[str]:
        """Yield a line for each step, but for heartbeats and commits without an error."""
        senders: dict[str, str] = {}
        number = 0
        for each in self.happened:
            request = getattr(each.event, "request", "")
            if type(each.event) in _APIS:
                senders[request] = f"{each.sender or OPERATOR}'s {api_of(each.event)}"
            if _is_dull(each):
                continue
            number += 1
            what = _TEXTS[type(each.event)](each)
            then = "; ".join(text for e in each.effects if (text := _effect(e, senders)))
            is_request = type(each.event) in _APIS
            if is_request and not any(_answers(e, request) for e in each.effects):
                then = f"{then}; it waits" if then else "it waits"
            yield f"{number:3}. {each.at_ms / 1000:7.3f} s  {what}" + (f": {then}" if then else "")
            yield from (f"     ! {broken}" for broken in dict.fromkeys(each.breaks))


def _is_dull(each: Happened) -> bool:
    return (
        isinstance(each.event, HeartbeatReceived | CommitReceived)
        and not each.breaks
        and all(
            isinstance(e, Answer) and e.response.error == Error.NONE
            for e in each.effects
            if isinstance(e, Answer)
        )
    )


def _answers(effect: Effect, request: str) -> bool:
    return isinstance(effect, Answer) and effect.request == request


def api_of(event: Event) -> str:
    """Return the API's name of a request, as Kafka's documentation has it."""
    return _APIS.get(type(event), "")


_APIS: dict[type, str] = {
    JoinReceived: "JoinGroup",
    SyncReceived: "SyncGroup",
    HeartbeatReceived: "Heartbeat",
    LeaveReceived: "LeaveGroup",
    CommitReceived: "OffsetCommit",
    DescribeReceived: "DescribeGroups",
    DeleteReceived: "DeleteGroups",
}


def _effect(effect: Effect, senders: dict[str, str]) -> str:
    match effect:
        case Answer(request, response):
            text = f"{senders.get(request, request)} is answered {name_of(int(response.error))}"
            if isinstance(response, JoinResponse) and response.error == Error.NONE:
                text += f", generation {response.generation} as {response.member_id}"
                text += f", leader {response.leader}"
            elif isinstance(response, JoinResponse) and response.member_id:
                text += f" ({response.member_id})"
            elif isinstance(response, LeaveResponse) and response.members:
                text += f" ({name_of(int(response.members[0][2]))})"
            return text
        case Transition():
            why = f" ({effect.reason})" if effect.reason else ""
            return f"{effect.after}{why}, generation {effect.generation}"
        case Persist(record=None):
            return "a tombstone is written"
        case Persist(record=record) if record is not None:
            return f"a record of generation {record.generation} is written"
    return ""


def _ids(member_id: str, instance: str | None) -> str:
    named = member_id or "no member id"
    return f"{named}, instance {instance}" if instance is not None else named


def _request(each: Happened) -> str:
    event = each.event
    sender = each.sender or OPERATOR
    match event:
        case JoinReceived():
            return f"{sender} sends JoinGroup ({_ids(event.member_id, event.group_instance_id)})"
        case SyncReceived():
            gives = f", assigns to {len(event.assignments)}" if event.assignments else ""
            ids = f"{event.member_id}, generation {event.generation}"
            return f"{sender} sends SyncGroup ({ids}{gives})"
        case HeartbeatReceived() | CommitReceived():
            ids = f"{event.member_id or 'no member id'}, generation {event.generation}"
            return f"{sender} sends {api_of(event)} ({ids})"
        case LeaveReceived():
            return f"{sender} sends LeaveGroup ({_ids(*event.members[0])})"
    return f"{sender} sends {api_of(event)}"


def _timer(each: Happened) -> str:
    assert isinstance(each.event, TimerFired)
    kind, member_id = each.event.timer
    return f"the {kind} timer expires" + (f" of {member_id}" if member_id else "")


def _outcome(each: Happened) -> str:
    assert isinstance(each.event, RecordWritten)
    stored = each.event.error == Error.NONE
    return "the record is stored" if stored else f"the write fails ({each.event.error.name})"


def _loaded(each: Happened) -> str:
    assert isinstance(each.event, Loaded)
    record = each.event.record
    closed = ", and takes no requests yet" if each.event.requests_disabled else ""
    if record is None:
        return f"broker {each.broker} loads nothing of the group{closed}"
    ids = ", ".join(member.member_id for member in record.members) or "no members"
    return f"broker {each.broker} loads generation {record.generation}: {ids}{closed}"


_TEXTS = {
    **dict.fromkeys(_APIS, _request),
    TimerFired: _timer,
    RecordWritten: _outcome,
    Loaded: _loaded,
    Unloaded: lambda each: f"broker {each.broker} resigns",
    RequestsEnabled: lambda each: f"broker {each.broker} takes requests",
    Expired: lambda _: "the group's offsets expire",
}
