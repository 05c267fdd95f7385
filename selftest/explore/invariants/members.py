"""Which members stay, and which ids stand: what KIP-345 promises to static members."""

from collections.abc import Iterator

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Answer
from reference_coordinator.classic.events import (
    Event,
    JoinReceived,
    LeaveReceived,
    Loaded,
    TimerFired,
    TimerKind,
    Unloaded,
)
from selftest.explore.scene import Stepped


def _removed(step: Stepped) -> Iterator[tuple[str, str, str | None]]:
    """Yield each instance whose member id no longer stands, with the id, and the one that does."""
    before = step.known or step.before.group
    for instance, owner in before.static_ids.items():
        now = step.after.group.static_ids.get(instance)
        if now != owner and not isinstance(step.event, Unloaded):
            yield instance, owner, now


def static_stays(step: Stepped) -> Iterator[str]:
    """A static member is removed by its session's end or by LeaveGroup alone."""
    event = step.event
    for instance, owner, now in _removed(step):
        if now is not None or _leaves(event, instance, owner):
            continue
        if isinstance(event, Loaded) and not _was_stored(step, instance):
            continue  # no coordinator promises a member before its first generation is stored
        if not (isinstance(event, TimerFired) and _ends_session(event, owner)):
            yield f"removed by {step.cause}"


def _was_stored(step: Stepped, instance: str) -> bool:
    record = step.before.stored_record
    return record is not None and any(m.group_instance_id == instance for m in record.members)


def _leaves(event: Event, instance: str, owner: str) -> bool:
    return isinstance(event, LeaveReceived) and any(
        instance == i or owner == m for m, i in event.members
    )


def _ends_session(event: TimerFired, owner: str) -> bool:
    return event.timer.kind is TimerKind.SESSION and event.timer.member_id == owner


def id_stays(step: Stepped) -> Iterator[str]:
    """The id that an instance was given stands until another JoinGroup replaces it."""
    event = step.event
    for instance, owner, now in _removed(step):
        known = any(p.member_id == owner and p.has_joined and not p.is_replaced
                   for p in step.after.processes)  # fmt: skip
        rejoins = isinstance(event, JoinReceived) and event.group_instance_id == instance
        if now is not None and known and not rejoins:
            yield f"a live process's id is replaced by {step.cause}"


def session_served(step: Stepped) -> Iterator[str]:
    """A session ends only while the broker takes requests."""
    event, before = step.event, step.before
    if before.is_closed and isinstance(event, TimerFired) and step.effects:
        yield f"{event.timer.kind} timer expires before the broker takes requests"


def known_is_let_in(step: Stepped) -> Iterator[str]:
    """A known instance is let into its group again."""
    event = step.event
    if isinstance(event, JoinReceived) and event.group_instance_id in step.before.group.static_ids:
        for effect in step.effects:
            if isinstance(effect, Answer) and effect.request == event.request:
                if effect.response.error == Error.GROUP_MAX_SIZE_REACHED:
                    yield "GROUP_MAX_SIZE_REACHED"
                elif effect.response.error == Error.UNKNOWN_SERVER_ERROR:
                    yield "UNKNOWN_SERVER_ERROR"
