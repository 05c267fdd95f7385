"""Rules about members switched off: static membership (KIP-345), sessions, and LeaveGroup."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    Answer,
    Arm,
    CommitResponse,
    Effect,
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    Reason,
    Response,
    SyncResponse,
)
from reference_coordinator.classic.events import (
    CommitReceived,
    Event,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    RecordWritten,
    SyncReceived,
    TimerFired,
    TimerKind,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group, Service, State
from reference_coordinator.classic.step import step
from reference_coordinator.replay.member_ids import with_member_id
from selftest.broken_rules.form import (
    CLASSIC,
    Outcome,
    Rule,
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

HEARTBEAT_TAKEN, COMMIT_TAKEN = HeartbeatResponse(Error.NONE), CommitResponse(Error.NONE)
LAST_WITHOUT_SKIP_ASSIGNMENT = 8
"""The last version of JoinGroup that cannot tell a returning leader of its lead."""

# The return of an instance, and its fence.


def rebalances_on_static_replacement(group: Group, event: Event, profile: Profile) -> Outcome:
    """Treat a returning static member as if it were no longer of the group's protocol."""
    if returns(group, event) and group.state is State.STABLE:
        truth, protocol = group.protocol, "none of them"
        after, effects = step(replace(group, protocol=protocol), event, profile)
        return (after if after.protocol != protocol else replace(after, protocol=truth)), effects
    return step(group, event, profile)


def _without_instance(group: Group, event: Event) -> Group:
    """Forget the instance that returns; its old member stays."""
    assert isinstance(event, JoinReceived)
    others = {i: m for i, m in group.static_ids.items() if i != event.group_instance_id}
    return replace(group, static_ids=others)


def keeps_old_member_id(group: Group, event: Event, profile: Profile) -> Outcome:
    """Let a returning static member go on under its old id."""
    if isinstance(event, JoinReceived) and returns(group, event):
        old = group.static_ids[event.group_instance_id or ""]
        after, effects = step(group, event, profile)
        new = after.static_ids[event.group_instance_id or ""]
        return with_member_id(after, new, old), tuple(_renamed(e, new, old) for e in effects)
    return step(group, event, profile)


def _renamed(effect: Effect, new: str, old: str) -> Effect:
    if isinstance(effect, Arm) and effect.timer.member_id == new:
        return replace(effect, timer=effect.timer._replace(member_id=old))
    return effect


def _as_owner(
    group: Group, event: JoinReceived | SyncReceived | HeartbeatReceived | CommitReceived
) -> Event:
    """Take a request for one of the member that owns its instance id."""
    owner = group.static_ids.get(event.group_instance_id or "")
    return replace(event, member_id=owner) if owner is not None and event.member_id else event


def _whoever_is_named(group: Group, event: LeaveReceived) -> Event:
    owners = (("" if i in group.static_ids else m, i) for m, i in event.members)
    return replace(event, members=tuple(owners))


def _unknown(response: Response) -> Response:
    fenced = isinstance(response, JoinResponse | SyncResponse) and (
        response.error == Error.FENCED_INSTANCE_ID
    )
    return replace(response, error=Error.UNKNOWN_MEMBER_ID) if fenced else response


def _without_rebalance_while_completing(profile: Profile) -> Profile:
    return replace(profile, return_makes_completing_group_rebalance=False)


def _in_old_version(group: Group, event: JoinReceived) -> Event:
    if not returns(group, event):
        return event
    return replace(event, api_version=min(event.api_version, LAST_WITHOUT_SKIP_ASSIGNMENT))


# Sessions.


def _end_of_member(group: Group, event: Event) -> bool:
    return isinstance(event, TimerFired) and event.timer.member_id in group.members


def _end_of_waiting_member(group: Group, event: Event) -> bool:
    return (
        isinstance(event, TimerFired)
        and event.timer.kind is TimerKind.SESSION
        and event.timer.member_id in group.members
        and group.members[event.timer.member_id].is_awaiting
    )


def _with_new_member(group: Group, event: Event) -> Group:
    """Take the member whose session ends for a new one, whose session ends while it waits."""
    assert isinstance(event, TimerFired)
    member = group.members[event.timer.member_id]
    return replace(group, members=group.members.put(replace(member, is_new=True)))


def _is_strange(group: Group, event: HeartbeatReceived | CommitReceived) -> bool:
    served = group.service is Service.ACTIVE and group.exists
    return served and event.member_id not in {"", *group.members}


# LeaveGroup.


def removes_the_first_alone(group: Group, event: Event, profile: Profile) -> Outcome:
    """Remove only the first member of a batch, and answer as if all had been removed."""
    if isinstance(event, LeaveReceived):
        answer = _answers(step(group, event, profile)[1], event)
        after, effects = step(group, replace(event, members=event.members[:1]), profile)
        own = _answers(effects, event)
        return after, tuple(e for e in effects if e not in own) + answer
    return step(group, event, profile)


def _answers(effects: Iterable[Effect], event: LeaveReceived) -> tuple[Effect, ...]:
    return tuple(e for e in effects if isinstance(e, Answer) and e.request == event.request)


def _all_removed(response: Response) -> Response:
    if isinstance(response, LeaveResponse):
        unknown, fine = Error.UNKNOWN_MEMBER_ID, Error.NONE
        results = ((m, i, fine if e == unknown else e) for m, i, e in response.members)
        return replace(response, members=tuple(results))
    return response


def knows_no_instances(group: Group, event: Event, profile: Profile) -> Outcome:
    """Refuse to remove members that are named by their instance ids alone."""
    if not isinstance(event, LeaveReceived):
        return step(group, event, profile)
    named = tuple((m, i) for m, i in event.members if m or i is None)
    after, effects = step(group, replace(event, members=named), profile)

    def refusing(response: Response) -> Response:
        if not isinstance(response, LeaveResponse) or len(response.members) != len(named):
            return response
        results = iter(response.members)
        unknown = Error.UNKNOWN_MEMBER_ID
        merged = tuple(
            next(results) if m or i is None else (m, i, unknown) for m, i in event.members
        )
        return replace(response, members=merged)

    return after, answered(effects, refusing)


def does_not_rebalance_on_leave(group: Group, event: Event, profile: Profile) -> Outcome:
    """Remove members, and go on as if their partitions were still theirs."""
    if isinstance(event, LeaveReceived) and group.state is State.STABLE:
        after, effects = step(replace(group, state=State.EMPTY), event, profile)
        return replace(after, state=group.state), effects
    return step(group, event, profile)


def removes_no_sooner_than_sessions_end(group: Group, event: Event, profile: Profile) -> Outcome:
    """Answer as if members had been removed, and wait until their sessions expire."""
    if isinstance(event, LeaveReceived):
        return group, _answers(step(group, event, profile)[1], event)
    return step(group, event, profile)


CORNERS = "protocol-corners"
KIP_345 = "KIP-345"
BROKEN_RULES: Mapping[str, Rule] = {
    **caught("duplicate-instance-id", "static", {
        "rebalances_on_static_replacement": (KIP_345, rebalances_on_static_replacement),
        "takes_returning_static_for_new": (KIP_345, as_if(returns, _without_instance)),
        "keeps_old_member_id": (KIP_345, keeps_old_member_id),
        "does_not_fence_heartbeats": (KIP_345, taking(HeartbeatReceived, _as_owner)),
    }),
    **caught(CORNERS, "fencing", {
        "does_not_fence_syncs": (KIP_345, taking(SyncReceived, _as_owner)),
        "does_not_fence_commits": (KIP_345, taking(CommitReceived, _as_owner)),
        "does_not_fence_joins": (KIP_345, taking(JoinReceived, _as_owner)),
        "does_not_tell_returning_leader": ("KIP-814", taking(JoinReceived, _in_old_version)),
    }),
    **caught(CORNERS, "removal", {
        "does_not_fence_leaves": (KIP_345, taking(LeaveReceived, _whoever_is_named)),
        "accepts_unknown_members_heartbeat": (
            CLASSIC, answering_at_once(HeartbeatReceived, _is_strange, HEARTBEAT_TAKEN)
        ),
    }),
    **caught(CORNERS, "returning", {
        "calls_the_replaced_unknown": (KIP_345, answering(_unknown, returns)),
        "replaces_without_rebalance_while_completing": (
            "KAFKA-9801", going_by(_without_rebalance_while_completing)
        ),
    }),
    **caught(CORNERS, "sessions", {
        "never_expires": (CLASSIC, ignoring(_end_of_member)),
        "heartbeats_do_not_keep_alive": (CLASSIC, without_sessions(HeartbeatReceived)),
        "commits_do_not_keep_alive": (CLASSIC, without_sessions(CommitReceived)),
        "syncs_do_not_keep_alive": (CLASSIC, without_sessions(RecordWritten)),
        "stores_strangers_commits": (
            CLASSIC, answering_at_once(CommitReceived, _is_strange, COMMIT_TAKEN)
        ),
    }),
    **caught(CORNERS, "absent", {
        "expires_early": (CLASSIC, sooner(TimerKind.SESSION)),
        "expires_the_waiting": ("KIP-62", as_if(_end_of_waiting_member, _with_new_member)),
    }),
    **caught("batch-removal", "static", {
        "removes_the_first_alone": (KIP_345, removes_the_first_alone),
        "reports_unknown_member_removed": (KIP_345, answering(_all_removed)),
        "knows_no_instances": (KIP_345, knows_no_instances),
        "rebalances_though_nobody_left": (
            KIP_345, rebalancing(LeaveReceived, Reason.LEAVE, lambda _: "")
        ),
        "does_not_rebalance_on_leave": (CLASSIC, does_not_rebalance_on_leave),
        "removes_no_sooner_than_sessions_end": (KIP_345, removes_no_sooner_than_sessions_end),
    }),
}  # fmt: skip
"""By what a coordinator without the rule does wrong."""
