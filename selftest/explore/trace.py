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
from selftest.explore.actions import after
from selftest.explore.invariants import broken
from selftest.explore.scene import Action, Scene, Stepped


@dataclass(frozen=True)
class Trace:
    """A course of actions from a first scene, as the coordinator saw it."""

    steps: tuple[Stepped, ...]

    @property
    def breaks(self) -> tuple[str, ...]:
        """What breaks in it."""
        return tuple(what for each in self.steps for what in broken(each))

    @classmethod
    def of(cls, scene: Scene, actions: Sequence[Action]) -> "Trace":
        """Let the actions happen again."""
        steps: list[Stepped] = []
        for action in actions:
            scene = after(scene, action)
            steps += scene.log
        return cls(tuple(steps))

    def lines(self) -> Iterator[str]:
        """Yield a line for each step, but for heartbeats and commits without an error."""
        senders: dict[str, str] = {}
        number = 0
        for each in self.steps:
            breaks = dict.fromkeys(broken(each))
            if each.asked is not None:
                senders[each.asked.id] = f"{each.asked.client_id}'s {api_of(each)}"
            if _is_dull(each) and not breaks:
                continue
            number += 1
            what = _TEXTS.get(type(each.event), _request)(each)
            then = "; ".join(text for e in each.effects if (text := _effect(e, senders)))
            if each.asked is not None and each.asked.id in each.after.in_hand:
                then = f"{then}; it waits" if then else "it waits"
            at_s = each.event.at_ms / 1000
            yield f"{number:3}. {at_s:7.3f} s  {what}" + (f": {then}" if then else "")
            yield from (f"     ! {what}" for what in breaks)


def _is_dull(each: Stepped) -> bool:
    return isinstance(each.event, HeartbeatReceived | CommitReceived) and all(
        not isinstance(effect, Answer) or effect.response.error == Error.NONE
        for effect in each.effects
    )


def api_of(each: Stepped) -> str:
    """Return the API's name of a request, as Kafka's documentation has it."""
    assert each.asked is not None
    return "".join(word.capitalize() for word in each.asked.api.split("_"))


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


def _request(each: Stepped) -> str:
    assert each.asked is not None
    asks = f"{each.asked.client_id} sends {api_of(each)}"
    match each.event:
        case JoinReceived() as event:
            return f"{asks} ({_ids(event.member_id, event.group_instance_id)})"
        case SyncReceived() as event:
            gives = f", assigns to {len(event.assignments)}" if event.assignments else ""
            return f"{asks} ({event.member_id}, generation {event.generation}{gives})"
        case HeartbeatReceived() | CommitReceived() as event:
            return f"{asks} ({event.member_id or 'no member id'}, generation {event.generation})"
        case LeaveReceived() as event:
            return f"{asks} ({_ids(*event.members[0])})"
    return asks


def _timer(each: Stepped) -> str:
    assert isinstance(each.event, TimerFired)
    kind, member_id = each.event.timer
    return f"the {kind} timer expires" + (f" of {member_id}" if member_id else "")


def _outcome(each: Stepped) -> str:
    assert isinstance(each.event, RecordWritten)
    stored = each.event.error == Error.NONE
    return "the record is stored" if stored else f"the write fails ({each.event.error.name})"


def _loaded(each: Stepped) -> str:
    assert isinstance(each.event, Loaded)
    record = each.event.record
    closed = ", and takes no requests yet" if each.event.requests_disabled else ""
    if record is None:
        return f"broker {each.after.broker} loads nothing of the group{closed}"
    ids = ", ".join(member.member_id for member in record.members) or "no members"
    return f"broker {each.after.broker} loads generation {record.generation}: {ids}{closed}"


_TEXTS = {
    TimerFired: _timer,
    RecordWritten: _outcome,
    Loaded: _loaded,
    Unloaded: lambda each: f"broker {each.after.broker} resigns",
    RequestsEnabled: lambda each: f"broker {each.after.broker} takes requests",
    Expired: lambda _: "the group's offsets expire",
}
