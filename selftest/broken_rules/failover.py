"""Rules of the failover switched off: what a new coordinator loads, and which broker answers."""

from collections.abc import Iterable
from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Answer, HeartbeatResponse, Persist, Reason
from reference_coordinator.classic.events import Event, HeartbeatReceived, JoinReceived, Loaded
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.rebalance import prepare
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group, Member, Service, State
from reference_coordinator.classic.step import step
from selftest.broken_rules.form import Outcome, Step, returns, without_sessions


def forgets_the_group(group: Group, event: Event, profile: Profile) -> Outcome:
    """Load nothing."""
    return step(group, replace(event, record=None) if isinstance(event, Loaded) else event, profile)


def forgets_instance_ids(group: Group, event: Event, profile: Profile) -> Outcome:
    """Load static members as if they were dynamic."""
    return step(group, _loading(event, group_instance_id=None), profile)


def forgets_assignments(group: Group, event: Event, profile: Profile) -> Outcome:
    """Load members without their assignments."""
    return step(group, _loading(event, assignment=""), profile)


def _loading(event: Event, **fields: str | None) -> Event:
    if isinstance(event, Loaded) and event.record is not None:
        members = tuple(replace(member, **fields) for member in event.record.members)  # type: ignore[arg-type]
        return replace(event, record=replace(event.record, members=members))
    return event


def forgets_dynamic_members(group: Group, event: Event, profile: Profile) -> Outcome:
    """Load static members alone."""
    if isinstance(event, Loaded) and event.record is not None:
        static = tuple(member for member in event.record.members if member.is_static)
        event = replace(event, record=replace(event.record, members=static))
    return step(group, event, profile)


def forgets_the_generation(group: Group, event: Event, profile: Profile) -> Outcome:
    """Load the group with generation 0."""
    if isinstance(event, Loaded) and event.record is not None:
        event = replace(event, record=replace(event.record, generation=0))
    return step(group, event, profile)


def starts_no_sessions(group: Group, event: Event, profile: Profile) -> Outcome:
    """Load members without starting their sessions."""
    after, effects = step(group, event, profile)
    return after, without_sessions(effects) if isinstance(event, Loaded) else effects


def rebalances_what_it_loads(group: Group, event: Event, profile: Profile) -> Outcome:
    """Rebalance every group that is loaded."""
    after, effects = step(group, event, profile)
    if isinstance(event, Loaded) and after.state is State.STABLE:
        context = Context(after, profile, event.at_ms)
        prepare(context, Reason.LEADER_REJOIN, after.leader or "")
        return context.group, (*effects, *context.effects)
    return after, effects


def does_not_store_new_id(group: Group, event: Event, profile: Profile) -> Outcome:
    """Give a returning static member an id that no successor will know (KAFKA-10284)."""
    after, effects = step(group, event, profile)
    if isinstance(event, JoinReceived) and returns(group, event):
        old = group.static_ids[event.group_instance_id or ""]
        return after, tuple(
            replace(e, record=_with_old_id(e.record, old, event.group_instance_id))
            if isinstance(e, Persist) and e.record is not None
            else e
            for e in effects
        )
    return after, effects


def _with_old_id(record: GroupRecord, old: str, instance_id: str | None) -> GroupRecord:
    def as_before(member: Member) -> Member:
        return replace(member, member_id=old) if member.group_instance_id == instance_id else member

    return replace(record, members=tuple(as_before(member) for member in record.members))


def speaks_without_office(group: Group, event: Event, profile: Profile) -> Outcome:
    """Answer heartbeats for a group that another broker coordinates."""
    if isinstance(event, HeartbeatReceived) and group.service is Service.ABSENT:
        return group, (Answer(event.request, HeartbeatResponse(Error.NONE)),)
    return step(group, event, profile)


MUTANTS: Iterable[Step] = (
    forgets_the_group,
    forgets_instance_ids,
    forgets_assignments,
    forgets_dynamic_members,
    forgets_the_generation,
    starts_no_sessions,
    rebalances_what_it_loads,
    does_not_store_new_id,
    speaks_without_office,
)
