"""What broke, as a trace: a numbered list of requests and answers, timers, writes and failovers.

Also in the Informal Trace Format of Apalache (ADR 015) and Quint, one state after each step.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    Answer,
    Effect,
    JoinResponse,
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
from reports.judgement.explained.sentences import api_name
from selftest.explore.actions import after, text_of
from selftest.explore.invariants import broken
from selftest.explore.scene import Action, Scene, Stepped, error_of

Json = dict[str, Any]
VARS = ("now_ms", "event", "answers", "group", "breaks")
"""What each state of a document in ITF has; an event is a variant of Quint."""


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
                senders[each.asked.id] = f"{each.asked.client_id}'s {api_name(each.asked.api)}"
            if _is_dull(each) and not breaks:
                continue
            number += 1
            then = "; ".join(text for e in each.effects if (text := _effect(e, senders)))
            if each.asked is not None and each.asked.id in each.after.in_hand:
                then = f"{then}; it waits" if then else "it waits"
            at_s = each.event.at_ms / 1000
            yield f"{number:3}. {at_s:7.3f} s  {_event(each)}" + (f": {then}" if then else "")
            yield from (f"     ! {what}" for what in breaks)

    def itf(self, what: str) -> Json:
        """Return a document in ITF; `what` breaks in it."""
        first = self.steps[0].before
        states = [
            _state(first, {"tag": "Init", "value": {}}, [], []),
            *map(_state_after, self.steps),
        ]
        return {
            "#meta": {"format": "ITF", "source": first.profile.name, "description": what},
            "vars": [*VARS],
            "states": [{"#meta": {"index": n}, **state} for n, state in enumerate(states)],
        }


def _state_after(each: Stepped) -> Json:
    value: Json = {}
    if (asked := each.asked) is not None:
        value = {"request": asked.id, "client": asked.client_id, "api": asked.api}
        value |= {"member_id": asked.client.member_id, "generation": _int(asked.client.generation)}
    elif isinstance(each.event, TimerFired):
        value = {"timer": text_of(each.event.timer)}
    elif isinstance(each.event, RecordWritten):
        value = {"error": each.event.error.name}
    answers = [{"request": a.request, "error": error_of(a.response)} for a in each.answers]
    event = {"tag": type(each.event).__name__, "value": value}
    return _state(each.after, event, answers, broken(each))


def _state(scene: Scene, event: Json, answers: list[Json], breaks: Iterable[str]) -> Json:
    group = scene.group
    known = {
        "state": str(group.state),
        "generation": _int(group.generation),
        "leader": group.leader or "",
        "members": {"#set": sorted(group.members)},
        "instances": {"#map": [[i, m] for i, m in sorted(group.static_ids.items())]},
    }
    values = (_int(scene.now_ms), event, answers, known, list(dict.fromkeys(breaks)))
    return dict(zip(VARS, values, strict=True))


def _int(number: float) -> Json:
    return {"#bigint": str(round(number))}


def _is_dull(each: Stepped) -> bool:
    fine = not any(answer.response.error for answer in each.answers)
    return isinstance(each.event, HeartbeatReceived | CommitReceived) and fine


def _effect(effect: Effect, senders: Mapping[str, str]) -> str:
    match effect:
        case Answer(request, response):
            text = f"{senders.get(request, request)} is answered {error_of(response)}"
            if isinstance(response, JoinResponse) and response.error == Error.NONE:
                text += f", generation {response.generation} as {response.member_id}"
                text += f", leader {response.leader}"
            elif isinstance(response, JoinResponse) and response.member_id:
                text += f" ({response.member_id})"
            return text
        case Transition():
            why = f" ({effect.reason})" if effect.reason else ""
            return f"{effect.after}{why}, generation {effect.generation}"
        case Persist(record=None):
            return "a tombstone is written"
        case Persist(record=record) if record is not None:
            return f"a record of generation {record.generation} is written"
    return ""


def _event(each: Stepped) -> str:
    """Say what happened: what the broker did by itself, or a request of a process."""
    broker = f"broker {each.after.broker}"
    match each.event:
        case TimerFired(timer=(kind, member_id)):
            return f"the {kind} timer expires" + (f" of {member_id}" if member_id else "")
        case RecordWritten(error=Error.NONE):
            return "the record is stored"
        case RecordWritten(error=error):
            return f"the write fails ({error.name})"
        case Loaded(record=record, requests_disabled=disabled):
            what = "nothing of the group"
            if record is not None:
                ids = ", ".join(member.member_id for member in record.members) or "no members"
                what = f"generation {record.generation}: {ids}"
            return f"{broker} loads {what}{', and takes no requests yet' if disabled else ''}"
        case Unloaded():
            return f"{broker} resigns"
        case RequestsEnabled():
            return f"{broker} takes requests"
        case Expired():
            return "the group's offsets expire"
    return _request(each)


def _request(each: Stepped) -> str:
    assert each.asked is not None
    asks = f"{each.asked.client_id} sends {api_name(each.asked.api)}"
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


def _ids(member_id: str, instance: str | None) -> str:
    named = member_id or "no member id"
    return f"{named}, instance {instance}" if instance is not None else named
