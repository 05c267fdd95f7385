"""Rules of the rebalance switched off: which members are awaited, how long, and the responses."""

from collections.abc import Iterable
from dataclasses import replace

from kafka_protocol.errors import Error
from kafka_protocol.versions import FIRST_TWO_STEP_JOIN
from reference_coordinator.classic.effects import (
    Answer,
    HeartbeatResponse,
    JoinResponse,
    Response,
    SyncResponse,
)
from reference_coordinator.classic.events import (
    CommitReceived,
    Event,
    HeartbeatReceived,
    JoinReceived,
    RecordWritten,
    SyncReceived,
    TimerFired,
    TimerKind,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.rebalance import generation_response, member_list
from reference_coordinator.classic.state import Group, Member, State
from reference_coordinator.classic.step import step
from selftest.broken_rules.form import (
    Outcome,
    Step,
    answering,
    sooner,
    starts_generation,
)

UNLIMITED = 1_000_000_000
SHARE = 0.4
"""What is left of a timeout that runs out too early."""


# The initial delay.


def has_no_initial_delay(group: Group, event: Event, profile: Profile) -> Outcome:
    """Start the first generation with the first member alone."""
    at_once = replace(profile.settings, initial_rebalance_delay_ms=0)
    return step(group, event, profile.with_settings(at_once))


def does_not_extend_initial_delay(group: Group, event: Event, profile: Profile) -> Outcome:
    """End the initial delay on time, though members came meanwhile."""
    return step(replace(group, new_member_added=False), event, profile)


# The join phase.


def drops_absent_static(group: Group, event: Event, profile: Profile) -> Outcome:
    """Drop static members that miss the join phase, as if they were dynamic."""
    if not _ends_join_phase(group, event):
        return step(group, event, profile)

    def as_dynamic(member: Member) -> Member:
        return member if member.join is not None else replace(member, group_instance_id=None)

    members = group.members.each(as_dynamic)
    kept = {i: m for i, m in group.static_ids.items() if members[m].is_static}
    return step(replace(group, members=members, static_ids=kept), event, profile)


def keeps_absent_dynamic(group: Group, event: Event, profile: Profile) -> Outcome:
    """Keep dynamic members that miss the join phase, as if they were static."""
    if not _ends_join_phase(group, event):
        return step(group, event, profile)

    def as_waiting(member: Member) -> Member:
        kept = member.is_static or member.join is not None
        return member if kept else replace(member, join="")

    members = group.members.each(as_waiting)
    after, effects = step(replace(group, members=members), event, profile)
    return after, tuple(e for e in effects if not isinstance(e, Answer) or e.request)


def _ends_join_phase(group: Group, event: Event) -> bool:
    return (
        isinstance(event, TimerFired)
        and event.timer.kind is TimerKind.JOIN
        and group.previous_state is not State.EMPTY
    )


def waits_for_ever(group: Group, event: Event, profile: Profile) -> Outcome:
    """Ignore the rebalance timeout."""
    return (group, ()) if _ends_join_phase(group, event) else step(group, event, profile)


def waits_too_briefly(group: Group, event: Event, profile: Profile) -> Outcome:
    """End the join phase long before the rebalance timeout."""
    after, effects = step(group, event, profile)
    if group.state is State.EMPTY:
        return after, effects
    return after, sooner(effects, TimerKind.JOIN, event.at_ms, SHARE)


def does_not_wait_for_the_pending(group: Group, event: Event, profile: Profile) -> Outcome:
    """End the join phase without those that were given an id and have to come back with it."""
    if not isinstance(event, JoinReceived):
        return step(group, event, profile)
    hidden = group.pending_joins - {event.member_id}
    seen = replace(group, pending_joins=group.pending_joins - hidden)
    after, effects = step(seen, event, profile)
    return replace(after, pending_joins=after.pending_joins | hidden), effects


def waits_for_the_pending_for_ever(group: Group, event: Event, profile: Profile) -> Outcome:
    """Wait for a member that does not come back with the id it was given."""
    if isinstance(event, TimerFired) and event.timer.member_id in group.pending_joins:
        return group, ()
    return step(group, event, profile)


def gives_no_id_first(group: Group, event: Event, profile: Profile) -> Outcome:
    """Add a dynamic member at its first join (KIP-394 switched off)."""
    if isinstance(event, JoinReceived) and not event.member_id and event.group_instance_id is None:
        event = replace(event, api_version=FIRST_TWO_STEP_JOIN - 1)
    return step(group, event, profile)


def has_no_max_size(group: Group, event: Event, profile: Profile) -> Outcome:
    """Let more members in than `group.max.size`."""
    return step(group, event, profile.with_settings(replace(profile.settings, max_size=UNLIMITED)))


def counts_one_too_many(group: Group, event: Event, profile: Profile) -> Outcome:
    """Refuse the last member that `group.max.size` lets in."""
    fewer = replace(profile.settings, max_size=profile.settings.max_size - 1)
    return step(group, event, profile.with_settings(fewer))


def does_not_tell_of_rebalances(group: Group, event: Event, profile: Profile) -> Outcome:
    """Answer heartbeats as if no rebalance were under way."""
    after, effects = step(group, event, profile)
    return after, answering(effects, _all_is_well)


def _all_is_well(response: Response) -> Response:
    rebalance = Error.REBALANCE_IN_PROGRESS
    rebalancing = isinstance(response, HeartbeatResponse) and response.error == rebalance
    return HeartbeatResponse(Error.NONE) if rebalancing else response


# What begins a rebalance.


def rebalances_for_unchanged_follower(group: Group, event: Event, profile: Profile) -> Outcome:
    """Rebalance for a follower that joins again as it was."""
    member = group.members.get(event.member_id) if isinstance(event, JoinReceived) else None
    if member is not None:
        other = replace(member, protocols=(*member.protocols, ("another", "")))
        group = replace(group, members=group.members.put(other))
    return step(group, event, profile)


def lets_leader_rejoin_quietly(group: Group, event: Event, profile: Profile) -> Outcome:
    """Answer a leader that joins again from what is known."""
    if (
        isinstance(event, JoinReceived)
        and group.state is State.STABLE
        and event.member_id == group.leader
    ):
        answer = generation_response(group, event.member_id, member_list(group))
        return group, (Answer(event.request, answer),)
    return step(group, event, profile)


# The next generation.


def keeps_generation(group: Group, event: Event, profile: Profile) -> Outcome:
    """Do not count a rebalance."""
    after, effects = step(group, event, profile)
    if starts_generation(effects) and group.generation > 0:
        return step(replace(group, generation=group.generation - 1), event, profile)
    return after, effects


def picks_another_leader(group: Group, event: Event, profile: Profile) -> Outcome:
    """Take the lead from a leader that rejoined."""
    after, effects = step(group, event, profile)
    others = frozenset(after.members) - {after.leader}
    if starts_generation(effects) and group.generation > 0 and others:
        other = replace(group, leader=None, open_leaders=frozenset({min(others)}))
        return step(other, event, profile)
    return after, effects


def tells_leader_of_itself_alone(group: Group, event: Event, profile: Profile) -> Outcome:
    """List only the leader itself in its JoinGroup response."""

    def alone(response: Response) -> Response:
        if not isinstance(response, JoinResponse):
            return response
        own = frozenset(member for member in response.members if member[0] == response.member_id)
        return replace(response, members=own)

    after, effects = step(group, event, profile)
    return after, answering(effects, alone)


def takes_heartbeats_of_old_generations(group: Group, event: Event, profile: Profile) -> Outcome:
    """Do not look at a heartbeat's generation."""
    if isinstance(event, HeartbeatReceived):
        event = replace(event, generation=group.generation)
    return step(group, event, profile)


def takes_commits_of_old_generations(group: Group, event: Event, profile: Profile) -> Outcome:
    """Do not look at a commit's generation."""
    if isinstance(event, CommitReceived) and event.generation >= 0:
        event = replace(event, generation=group.generation)
    return step(group, event, profile)


def takes_commits_while_completing(group: Group, event: Event, profile: Profile) -> Outcome:
    """Accept commits in CompletingRebalance."""
    if isinstance(event, CommitReceived) and group.state is State.COMPLETING_REBALANCE:
        _, effects = step(replace(group, state=State.STABLE), event, profile)
        return group, effects
    return step(group, event, profile)


# The assignment.


def answers_follower_before_leader(group: Group, event: Event, profile: Profile) -> Outcome:
    """Answer a follower's SyncGroup at once, with nothing, instead of waiting for the leader."""
    after, effects = step(group, event, profile)
    if isinstance(event, SyncReceived) and not any(isinstance(e, Answer) for e in effects):
        member = after.members[event.member_id]
        if after.leader != event.member_id and member.sync == event.request:
            members = after.members.put(replace(member, sync=None))
            nothing = SyncResponse(Error.NONE, after.protocol_type, after.protocol)
            return replace(after, members=members), (*effects, Answer(event.request, nothing))
    return after, effects


def gives_everyone_the_leaders_share(group: Group, event: Event, profile: Profile) -> Outcome:
    """Hand out one share of the assignment to all."""
    after, effects = step(group, event, profile)
    leader = after.members.get(after.leader or "")
    if not isinstance(event, RecordWritten) or leader is None:
        return after, effects

    def same(response: Response) -> Response:
        if isinstance(response, SyncResponse) and response.error == Error.NONE:
            return replace(response, assignment=leader.assignment)
        return response

    return after, answering(effects, same)


def never_evicts_the_unsynced(group: Group, event: Event, profile: Profile) -> Outcome:
    """Keep members that never ask for their share."""
    if isinstance(event, TimerFired) and event.timer.kind is TimerKind.SYNC:
        return group, ()
    return step(group, event, profile)


def evicts_the_unsynced_early(group: Group, event: Event, profile: Profile) -> Outcome:
    """Remove members without a SyncGroup long before the rebalance timeout."""
    after, effects = step(group, event, profile)
    return after, sooner(effects, TimerKind.SYNC, event.at_ms, SHARE)


MUTANTS: Iterable[Step] = (
    has_no_initial_delay,
    does_not_extend_initial_delay,
    drops_absent_static,
    keeps_absent_dynamic,
    waits_for_ever,
    waits_too_briefly,
    does_not_wait_for_the_pending,
    waits_for_the_pending_for_ever,
    gives_no_id_first,
    has_no_max_size,
    counts_one_too_many,
    does_not_tell_of_rebalances,
    rebalances_for_unchanged_follower,
    lets_leader_rejoin_quietly,
    keeps_generation,
    picks_another_leader,
    tells_leader_of_itself_alone,
    takes_heartbeats_of_old_generations,
    takes_commits_of_old_generations,
    takes_commits_while_completing,
    answers_follower_before_leader,
    gives_everyone_the_leaders_share,
    never_evicts_the_unsynced,
    evicts_the_unsynced_early,
)
