"""Going on after a violation: the oracle takes over what was observed.

So one wrong answer gives one violation, and not one more for each of its consequences.
"""

from collections.abc import Iterable

from kafka_protocol.errors import Error
from reference_coordinator.classic.bodies import rebalance_timeout
from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.state import Group, Member, State
from reference_coordinator.replay.evidence import ObservedRequest


def is_census(seen: ObservedRequest) -> bool:
    """Tell whether a response names the whole group: a leader's JoinGroup in a new generation."""
    return (
        seen.api == "JOIN_GROUP"
        and seen.response_fields.get("errorCode") == Error.NONE
        and bool(seen.response_fields.get("members"))
        and not seen.response_fields.get("skipAssignment")
    )


def next_census(requests: Iterable[ObservedRequest], after_ms: float) -> ObservedRequest | None:
    """Find the next census among requests, by when they were answered."""
    answers = sorted(requests, key=lambda seen: seen.answered_ms)
    return next((r for r in answers if is_census(r) and r.answered_ms > after_ms), None)


def latest_joins(
    requests: Iterable[ObservedRequest], until_ms: float
) -> tuple[dict[str, ObservedRequest], frozenset[str]]:
    """Collect each member's latest JoinGroup, and the pending ids: given out and not used yet."""
    joins: dict[str, ObservedRequest] = {}
    pending: set[str] = set()
    for seen in requests:
        if seen.api != "JOIN_GROUP" or seen.at_ms > until_ms:
            continue
        member_id = seen.response_fields.get("memberId") or ""
        error = seen.response_fields.get("errorCode")
        if error == Error.NONE:
            joins[member_id] = seen
            pending.discard(member_id)
        elif error == Error.MEMBER_ID_REQUIRED and seen.answered_ms <= until_ms:
            pending.add(member_id)
    return joins, frozenset(pending)


def newest_joins(requests: Iterable[ObservedRequest], until_ms: float) -> list[ObservedRequest]:
    """Leave out the JoinGroups of which `latest_joins` tells nothing at any time from then on."""
    joins = list(requests)
    old = [seen for seen in joins if max(seen.at_ms, seen.answered_ms) <= until_ms]
    latest, pending = latest_joins(old, until_ms)
    kept = {id(seen) for seen in latest.values()}
    gone = {
        id(seen)
        for seen in old
        if id(seen) not in kept and seen.response_fields.get("memberId") not in pending
    }
    return [seen for seen in joins if id(seen) not in gone]


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
    for member in body["members"]:
        joined = joins.get(member["memberId"], census)
        request = joined.request
        members[member["memberId"]] = Member(
            member_id=member["memberId"],
            group_instance_id=member.get("groupInstanceId"),
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
