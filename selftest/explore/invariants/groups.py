"""What must hold of a group after each step: leader, mapping, generation, timers, record."""

from collections.abc import Iterator

from reference_coordinator.classic.effects import Answer, JoinResponse, Transition
from reference_coordinator.classic.events import Loaded, TimerKind, Unloaded
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import (
    ACTIVE,
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
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
    for effect in step.effects:
        if isinstance(effect, Answer) and isinstance(effect.response, JoinResponse):
            joined = effect.response
            if joined.members and joined.generation == group.generation:
                listed = {member for member, _, _ in joined.members}
                if listed != set(group.members) and group.state is not PREPARING_REBALANCE:
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
