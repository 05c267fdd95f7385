"""When rebalances begin and end, and how long timers run."""

from collections.abc import Iterator

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Arm, Transition
from reference_coordinator.classic.events import (
    JoinReceived,
    LeaveReceived,
    Loaded,
    RecordWritten,
    TimerFired,
    TimerKind,
    Unloaded,
)
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from reference_coordinator.timing import NEW_MEMBER_JOIN_TIMEOUT_MS
from selftest.explore.scene import Stepped


def cause_of_rebalance(step: Stepped) -> Iterator[str]:
    """A rebalance has one of the causes that KIP-345 names."""
    for effect in step.effects:
        starts = isinstance(effect, Transition) and effect.after is PREPARING_REBALANCE
        if isinstance(effect, Transition) and starts and not _has_cause(step):
            yield f"{effect.reason} by {step.cause} in {effect.before}"


def _has_cause(step: Stepped) -> bool:
    event, before, after = step.event, step.before.group, step.after.group
    if isinstance(event, JoinReceived):
        instance = event.group_instance_id
        known = event.member_id in before.members or instance in before.static_ids
        leads = before.leader == event.member_id
        return not known or leads or (not event.member_id and before.state is COMPLETING_REBALANCE)
    if isinstance(event, RecordWritten):
        return event.error != Error.NONE
    if isinstance(event, Loaded):
        return len(before.members) > step.after.profile.settings.max_size
    if isinstance(event, TimerFired | LeaveReceived):
        return bool(set(before.members) - set(after.members))
    return isinstance(event, Unloaded)


def due(step: Stepped) -> Iterator[str]:
    """A removal from a Stable group starts a rebalance."""
    before, after = step.before.group, step.after.group
    if isinstance(step.event, Loaded | Unloaded) or before.state is not STABLE:
        return
    if after.state is STABLE and set(before.members) - set(after.members) and (
        len(after.members) < len(before.members)
    ):  # fmt: skip
        yield f"members are removed by {step.cause}"


def phase_is_fair(step: Stepped) -> Iterator[str]:
    """A join phase awaits those that may come, keeps its leader, drops the absent."""
    event, before, after = step.event, step.before.group, step.after.group
    if isinstance(event, JoinReceived) and before.state is STABLE and after.state is STABLE:
        counts = step.after.profile.join_reason_counts
        if event.member_id and event.member_id == before.leader and not counts:
            yield "a leader's rejoin starts no rebalance"
    if before.state is not PREPARING_REBALANCE or not step.begins_generation:
        return
    if isinstance(event, JoinReceived) and after.pending_joins:
        yield "it ends before a pending member joins"
    absent = {m.member_id for m in before.members.values() if m.join is None}
    if isinstance(event, TimerFired) and event.timer.kind is TimerKind.JOIN:
        if any(m in absent and not member.is_static for m, member in after.members.items()):
            yield "an absent dynamic member stays"
        rejoined = before.leader in before.members and before.leader not in absent
        if rejoined and after.leader != before.leader:
            yield "its leader joined, and another leads"


def two_steps(step: Stepped) -> Iterator[str]:
    """A dynamic member is given its id before it joins (KIP-394)."""
    event = step.event
    if isinstance(event, JoinReceived) and not (event.member_id or event.group_instance_id):
        added = set(step.after.group.members) - set(step.before.group.members)
        if added:
            yield "it joins at once"


def time_is_kept(step: Stepped) -> Iterator[str]:
    """Sessions, join phases and pending SyncGroups get the time that is set."""
    event, group = step.event, step.after.group
    if isinstance(event, Unloaded):
        return
    members = {**step.before.group.members, **group.members}
    for effect in step.effects:
        if isinstance(effect, Arm):
            kind, member_id = effect.timer
            lasts_ms = effect.deadline_ms - event.at_ms
            if kind is TimerKind.SESSION and member_id in members:
                session_ms = members[member_id].session_timeout_ms
                if lasts_ms not in (session_ms, NEW_MEMBER_JOIN_TIMEOUT_MS):
                    yield f"a {kind} timer runs {lasts_ms / 1000:g} s"
            elif kind is not TimerKind.SESSION and lasts_ms != _phase_ms(step):
                yield f"a {kind} timer runs {lasts_ms / 1000:g} s"


def _phase_ms(step: Stepped) -> float:
    before, after = step.before.group, step.after.group
    initial = after.state is PREPARING_REBALANCE and after.previous_state is EMPTY
    delay_ms = step.after.profile.settings.initial_rebalance_delay_ms
    if not initial:
        return after.rebalance_timeout_ms
    return delay_ms if before.state is EMPTY else min(delay_ms, before.initial_delay_left_ms)
