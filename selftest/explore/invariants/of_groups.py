"""What must hold of a group after each step, when rebalances begin and end, how long timers run."""

from collections.abc import Iterator

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Arm, JoinResponse, Transition
from reference_coordinator.classic.events import (
    JoinReceived,
    LeaveReceived,
    Loaded,
    RecordWritten,
    TimerFired,
    TimerKind,
    Unloaded,
)
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import (
    ACTIVE,
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from reference_coordinator.timing import NEW_MEMBER_JOIN_TIMEOUT_MS
from selftest.explore.scene import Stepped


def one_leader(step: Stepped) -> Iterator[str]:
    """A group with a generation has one leader, which is a member."""
    group = step.after.group
    if group.state in (COMPLETING_REBALANCE, STABLE) and group.service is ACTIVE:
        if group.leader is None and not group.open_leaders:
            yield f"{group.state} without a leader"
        elif group.leader is not None and group.leader not in group.members:
            yield f"the leader {group.leader} is no member"
    if group.state is EMPTY and group.members:
        yield "Empty with members"


def leader_knows_all(step: Stepped) -> Iterator[str]:
    """The leader of a generation is listed all its members."""
    group = step.after.group
    for answer in step.answers:
        joined = answer.response
        if not isinstance(joined, JoinResponse) or joined.generation != group.generation:
            continue
        listed = {member for member, _, _ in joined.members}
        differs = listed and listed != set(group.members)
        if differs and group.state is not PREPARING_REBALANCE:
            yield f"{joined.member_id} is listed {len(listed)} of {len(group.members)}"
    leaders = {
        p.member_id for p in step.after.processes
        if p.leads and p.serial == step.after.serial and not p.is_replaced
    }  # fmt: skip
    if len(leaders) > 1:
        yield f"{len(leaders)} processes lead generation {group.generation}"


def one_mapping(step: Stepped) -> Iterator[str]:
    """Each instance id stands for one member, which has that instance id."""
    group = step.after.group
    for instance, owner in group.static_ids.items():
        member = group.members.get(owner)
        if member is None:
            yield f"{instance} stands for no member"
        elif member.group_instance_id != instance:
            yield f"{instance} stands for a member of {member.group_instance_id}"
    for member in group.members.values():
        if member.is_static and member.group_instance_id not in group.static_ids:
            yield f"a member of {member.group_instance_id} is not found by it"
        elif member.is_static and group.static_ids[member.group_instance_id or ""] != (
            member.member_id
        ):
            yield f"{member.group_instance_id} has two members"


def generation_grows(step: Stepped) -> Iterator[str]:
    """Each join phase that completes counts the generation by one."""
    if isinstance(step.event, Loaded | Unloaded) or not step.after.group.exists:
        return
    ends = sum(isinstance(e, Transition) and e.after in (COMPLETING_REBALANCE, EMPTY)
               for e in step.effects)  # fmt: skip
    before, after = step.before.group.generation, step.after.group.generation
    if after != before + ends and step.before.group.exists:
        yield f"from {before} to {after} by {ends} join phases"


def generation_given_once(step: Stepped) -> Iterator[str]:
    """A generation's number is never given to another generation."""
    scene = step.after
    if step.begins_generation and any(
        p.has_joined
        and p.member_id in scene.group.members
        and p.generation == scene.group.generation
        and p.serial != scene.serial
        for p in scene.processes
    ):
        yield "a member knows another generation of the same number"


def member_ends(step: Stepped) -> Iterator[str]:
    """Each member has a session that runs, or a request that waits."""
    scene, group = step.after, step.after.group
    sessions = {t.member_id for t in scene.timers if t.kind is TimerKind.SESSION}
    if group.sessions_deferred or group.service is not ACTIVE:
        return
    for member in group.members.values():
        if member.member_id not in sessions and not (member.join or member.sync):
            yield "a member has no session"
    if group.pending_joins - sessions:
        yield "a pending member has no timer"


def phase_ends(step: Stepped) -> Iterator[str]:
    """A join phase has a timer that ends it."""
    group = step.after.group
    if group.state is PREPARING_REBALANCE and group.service is ACTIVE:
        timers = {timer.kind for timer in step.after.timers}
        if TimerKind.JOIN not in timers:
            yield "PreparingRebalance without a timer"


def stored(step: Stepped) -> Iterator[str]:
    """A Stable group is stored as it is once no write is under way."""
    scene, group = step.after, step.after.group
    if group.state is not STABLE or scene.writes or group.service is not ACTIVE:
        return
    record = scene.stored_record
    if record is None:
        yield "nothing is stored"
    elif _ids(record) != dict(group.static_ids):
        yield "the log has another member id of an instance"
    elif record.generation != group.generation:
        yield "the log has another generation"
    elif {m.member_id for m in record.members} != set(group.members):
        yield "the log has other members"


def _ids(record: GroupRecord) -> dict[str, str]:
    return {m.group_instance_id: m.member_id for m in record.members if m.group_instance_id}


def cause(step: Stepped) -> Iterator[str]:
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
