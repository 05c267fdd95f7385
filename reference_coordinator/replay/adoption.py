"""Going on after a violation: take over what was observed, so that one lie is found once."""

from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.bodies import rebalance_timeout
from reference_coordinator.classic.effects import JoinResponse, Response
from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.state import Group, Member, State
from reference_coordinator.replay.evidence import ObservedRequest


def rename(group: Group, ours: Response, theirs: Response) -> Group:
    """Give a member the id that the broker gave it, where only that was wrong."""
    if not isinstance(ours, JoinResponse) or not isinstance(theirs, JoinResponse):
        return group
    old, new = ours.member_id, theirs.member_id
    if old not in group.members or not new or new == old or new in group.members:
        return group
    return with_member_id(group, old, new)


def with_member_id(group: Group, old: str, new: str) -> Group:
    """Write a member's other id wherever the old one stands."""
    member = replace(group.members[old], member_id=new)
    other = {old: new}
    return replace(
        group,
        members=group.members.without(old).put(member),
        static_ids={i: other.get(m, m) for i, m in group.static_ids.items()},
        leader=other.get(group.leader or "", group.leader),
        open_leaders=frozenset(other.get(m, m) for m in group.open_leaders),
        pending_syncs=frozenset(other.get(m, m) for m in group.pending_syncs),
        writes={
            request: replace(write, member_id=other.get(write.member_id or "", write.member_id))
            for request, write in group.writes.items()
        },
    )


def is_census(seen: ObservedRequest) -> bool:
    """Tell whether an answer names the whole group: what a leader is told of a new generation."""
    return (
        seen.api == "JOIN_GROUP"
        and seen.response_fields.get("errorCode") == Error.NONE
        and bool(seen.response_fields.get("members"))
        and not seen.response_fields.get("skipAssignment")
    )


def from_census(
    group_id: str,
    census: ObservedRequest,
    joins: dict[str, ObservedRequest],
    pending: frozenset[str],
) -> tuple[Group, dict[Timer, float]]:
    """Build the group as the leader's answer describes it, with its timers.

    `joins` holds each member's latest JoinGroup by the id it was answered with.
    """
    body, at_ms = census.response_fields, census.answered_ms
    members = {}
    for told in body["members"]:
        joined = joins.get(told["memberId"], census)
        request = joined.request
        members[told["memberId"]] = Member(
            member_id=told["memberId"],
            group_instance_id=told.get("groupInstanceId"),
            session_timeout_ms=request["sessionTimeoutMs"],
            rebalance_timeout_ms=rebalance_timeout(request),
            protocol_type=census.request["protocolType"],
            protocols=tuple((p["name"], p["metadata"]) for p in request["protocols"]),
            client_id=joined.client_id,
            client_host=joined.client_host,
        )
    group = Group(
        group_id,
        exists=True,
        state=State.COMPLETING_REBALANCE,
        previous_state=State.PREPARING_REBALANCE,
        generation=body["generationId"],
        protocol_type=census.request["protocolType"],
        protocol=body["protocolName"],
        leader=body["leader"],
        members=Members.of(members.values()),
        static_ids={
            member.group_instance_id: member.member_id
            for member in members.values()
            if member.group_instance_id is not None
        },
        pending_joins=pending,
        pending_syncs=frozenset(members),
    )
    timers = {
        Timer(TimerKind.SESSION, m.member_id): at_ms + m.session_timeout_ms
        for m in members.values()
    }
    timers[Timer(TimerKind.SYNC)] = at_ms + group.rebalance_timeout_ms
    return group, timers
