"""Rules of rebalances and failovers switched off: who is awaited and how long, what is loaded."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from kafka_protocol.errors import Error
from kafka_protocol.versions import FIRST_TWO_STEP_JOIN
from reference_coordinator.classic.effects import (
    Answer,
    Effect,
    HeartbeatResponse,
    JoinResponse,
    Persist,
    Reason,
    Response,
    SyncResponse,
    Transition,
)
from reference_coordinator.classic.events import (
    CommitReceived,
    Event,
    HeartbeatReceived,
    JoinReceived,
    Loaded,
    RecordWritten,
    SyncReceived,
    TimerFired,
    TimerKind,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.rebalance import generation_response, member_list
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group, Member, Service, State
from reference_coordinator.classic.step import Step, step
from selftest.broken_rules.form import (
    CLASSIC,
    Outcome,
    Rule,
    always,
    answered,
    answering,
    answering_at_once,
    as_if,
    caught,
    going_by,
    ignoring,
    rebalancing,
    returns,
    sooner,
    taking,
    without_sessions,
)

UNLIMITED = 1_000_000_000
NO_ERROR = HeartbeatResponse(Error.NONE)

# The join phase.


def _ends_join_phase(group: Group, event: Event) -> bool:
    return (
        isinstance(event, TimerFired)
        and event.timer.kind is TimerKind.JOIN
        and group.previous_state is not State.EMPTY
    )


def _with_absent_as_dynamic(group: Group, _event: Event) -> Group:
    """Take static members that have not joined for dynamic ones."""

    def as_dynamic(member: Member) -> Member:
        return member if member.join is not None else replace(member, group_instance_id=None)

    members = group.members.each(as_dynamic)
    kept = {i: m for i, m in group.static_ids.items() if members[m].is_static}
    return replace(group, members=members, static_ids=kept)


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


def does_not_wait_for_the_pending(group: Group, event: Event, profile: Profile) -> Outcome:
    """End the join phase without those that were given an id and have to come back with it."""
    if not isinstance(event, JoinReceived):
        return step(group, event, profile)
    hidden = group.pending_joins - {event.member_id}
    seen = replace(group, pending_joins=group.pending_joins - hidden)
    after, effects = step(seen, event, profile)
    return replace(after, pending_joins=after.pending_joins | hidden), effects


def _end_of_pending(group: Group, event: Event) -> bool:
    return isinstance(event, TimerFired) and event.timer.member_id in group.pending_joins


def _in_one_step(_group: Group, event: JoinReceived) -> Event:
    """Take the first join of a dynamic member for one of a version before KIP-394."""
    if event.member_id or event.group_instance_id is not None:
        return event
    return replace(event, api_version=FIRST_TWO_STEP_JOIN - 1)


def _all_is_well(response: Response) -> Response:
    refused = HeartbeatResponse(Error.REBALANCE_IN_PROGRESS)
    return NO_ERROR if response == refused else response


def _set(**settings: int) -> Callable[[Profile], Profile]:
    return lambda profile: profile.with_settings(replace(profile.settings, **settings))


def _counting_one_more(profile: Profile) -> Profile:
    return _set(max_size=profile.settings.max_size - 1)(profile)


# What begins a rebalance.


def _rejoins(group: Group, event: Event) -> bool:
    return isinstance(event, JoinReceived) and event.member_id in group.members


def _with_other_protocols(group: Group, event: Event) -> Group:
    """Let the member that rejoins have had one more protocol."""
    assert isinstance(event, JoinReceived)
    member = group.members[event.member_id]
    other = replace(member, protocols=(*member.protocols, ("another", "")))
    return replace(group, members=group.members.put(other))


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


def _starts_generation(effects: tuple[Effect, ...]) -> bool:
    """Tell whether a join phase ended with somebody in the group."""
    return any(isinstance(e, Transition) and e.after is State.COMPLETING_REBALANCE for e in effects)


def keeps_generation(group: Group, event: Event, profile: Profile) -> Outcome:
    """Do not count a rebalance."""
    after, effects = step(group, event, profile)
    if _starts_generation(effects) and group.generation > 0:
        return step(replace(group, generation=group.generation - 1), event, profile)
    return after, effects


def picks_another_leader(group: Group, event: Event, profile: Profile) -> Outcome:
    """Take the lead from a leader that rejoined."""
    after, effects = step(group, event, profile)
    others = frozenset(after.members) - {after.leader}
    if _starts_generation(effects) and group.generation > 0 and others:
        other = replace(group, leader=None, open_leaders=frozenset({min(others)}))
        return step(other, event, profile)
    return after, effects


def _alone(response: Response) -> Response:
    """List only the leader itself in its JoinGroup response."""
    if not isinstance(response, JoinResponse):
        return response
    own = frozenset(member for member in response.members if member[0] == response.member_id)
    return replace(response, members=own)


def _of_now(group: Group, event: HeartbeatReceived | CommitReceived) -> Event:
    """Take a request for one of the generation; a simple commit has none."""
    counts = isinstance(event, HeartbeatReceived) or event.generation >= 0
    return replace(event, generation=group.generation) if counts else event


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

    return after, answered(effects, same)


# What a new coordinator loads.


def _of_members(change: Callable[[Member], Member | None]) -> Callable[[GroupRecord], GroupRecord]:
    """Change each member of a record; leave those out for which the change is None."""
    return lambda record: replace(
        record, members=tuple(new for member in record.members if (new := change(member)))
    )


def _loading(change: Callable[[GroupRecord], GroupRecord | None]) -> Step:
    return taking(
        Loaded, lambda _, event: replace(event, record=event.record and change(event.record))
    )


def does_not_store_new_id(group: Group, event: Event, profile: Profile) -> Outcome:
    """Give a returning static member an id that no successor will know (KAFKA-10284)."""
    after, effects = step(group, event, profile)
    if not isinstance(event, JoinReceived) or not returns(group, event):
        return after, effects
    instance_id = event.group_instance_id
    old = group.static_ids[instance_id or ""]
    as_before = _of_members(
        lambda m: replace(m, member_id=old) if m.group_instance_id == instance_id else m
    )
    return after, tuple(
        replace(e, record=as_before(e.record)) if isinstance(e, Persist) and e.record else e
        for e in effects
    )


def _is_elsewhere(group: Group, _event: Event) -> bool:
    return group.service is Service.ABSENT


def _end_of_unsynced(_group: Group, event: Event) -> bool:
    return isinstance(event, TimerFired) and event.timer.kind is TimerKind.SYNC


CORNERS = "protocol-corners"
KIP_62, KIP_134, KIP_345, KIP_389, KIP_394 = "KIP-62", "KIP-134", "KIP-345", "KIP-389", "KIP-394"
BROKEN_RULES: Mapping[str, Rule] = {
    **caught("duplicate-instance-id", "static", {
        "has_no_initial_delay": (KIP_134, going_by(_set(initial_rebalance_delay_ms=0))),
        "tells_leader_of_itself_alone": (CLASSIC, answering(_alone)),
    }),
    **caught(CORNERS, "forming", {
        "does_not_extend_initial_delay": (
            KIP_134, as_if(always, lambda group, _: replace(group, new_member_added=False))
        ),
    }),
    **caught(CORNERS, "absent", {
        "drops_absent_static": (KIP_345, as_if(_ends_join_phase, _with_absent_as_dynamic)),
        "keeps_absent_dynamic": (KIP_62, keeps_absent_dynamic),
        "waits_for_ever": (KIP_62, ignoring(_ends_join_phase)),
        "waits_too_briefly": (
            KIP_62, sooner(TimerKind.JOIN, lambda group, _: group.state is not State.EMPTY)
        ),
    }),
    **caught(CORNERS, "pending", {
        "does_not_wait_for_the_pending": (KIP_394, does_not_wait_for_the_pending),
        "waits_for_the_pending_for_ever": (KIP_394, ignoring(_end_of_pending)),
    }),
    **caught(CORNERS, "mixed", {
        "gives_no_id_first": (KIP_394, taking(JoinReceived, _in_one_step)),
    }),
    **caught(CORNERS, "full", {
        "has_no_max_size": (KIP_389, going_by(_set(max_size=UNLIMITED))),
        "counts_one_too_many": (KIP_389, going_by(_counting_one_more)),
        "gives_everyone_the_leaders_share": (CLASSIC, gives_everyone_the_leaders_share),
    }),
    **caught(CORNERS, "leading", {
        "does_not_tell_of_rebalances": (CLASSIC, answering(_all_is_well)),
        "rebalances_for_unchanged_follower": (CLASSIC, as_if(_rejoins, _with_other_protocols)),
        "lets_leader_rejoin_quietly": (CLASSIC, lets_leader_rejoin_quietly),
        "keeps_generation": (CLASSIC, keeps_generation),
        "picks_another_leader": (CLASSIC, picks_another_leader),
        "answers_follower_before_leader": (CLASSIC, answers_follower_before_leader),
    }),
    **caught(CORNERS, "sessions", {
        "takes_heartbeats_of_old_generations": (CLASSIC, taking(HeartbeatReceived, _of_now)),
        "takes_commits_of_old_generations": (CLASSIC, taking(CommitReceived, _of_now)),
    }),
    **caught(CORNERS, "returning", {
        "takes_commits_while_completing": (CLASSIC, takes_commits_while_completing),
    }),
    **caught(CORNERS, "silent", {
        "never_evicts_the_unsynced": ("KAFKA-12890", ignoring(_end_of_unsynced)),
        "evicts_the_unsynced_early": ("KAFKA-12890", sooner(TimerKind.SYNC)),
    }),
    **caught("coordinator-failover", "static", {
        "forgets_the_group": (CLASSIC, _loading(lambda _: None)),
        "forgets_instance_ids": (
            KIP_345, _loading(_of_members(lambda m: replace(m, group_instance_id=None)))
        ),
        "forgets_assignments": (
            CLASSIC, _loading(_of_members(lambda m: replace(m, assignment="")))
        ),
        "forgets_the_generation": (CLASSIC, _loading(lambda record: replace(record, generation=0))),
        "rebalances_what_it_loads": (
            CLASSIC, rebalancing(Loaded, Reason.LEADER_REJOIN, lambda group: group.leader or "")
        ),
    }),
    **caught("failover-with-losses", "mixed", {
        "forgets_dynamic_members": (
            CLASSIC, _loading(_of_members(lambda m: m if m.is_static else None))
        ),
        "starts_no_sessions": (CLASSIC, without_sessions(Loaded)),
        "does_not_store_new_id": ("KAFKA-10284", does_not_store_new_id),
    }),
    **caught(CORNERS, "elsewhere", {
        "answers_when_not_coordinator": (
            CLASSIC, answering_at_once(HeartbeatReceived, _is_elsewhere, NO_ERROR)
        ),
    }),
}  # fmt: skip
"""By what a coordinator without the rule does wrong."""
