"""Static rejoin: a known group.instance.id joins without a member id and gets a new one (KIP-345).

The new id replaces the old one, pending requests with the old id are fenced, and the session
restarts, with the old timeout. What follows depends on the state:

- PreparingRebalance: the JoinGroup counts for the rebalance under way.
- CompletingRebalance: a new rebalance, since the leader would assign to the old id (KAFKA-9801,
  2.5.0).
- Stable: no rebalance if the selected protocol stays (`rejoin_reasons.static_rejoin_reason`). The
  new id is stored, then the JoinGroup is answered (`record_writes.replacement_written`;
  KAFKA-10284, 2.6.1). From v9 on a leader learns that it leads (skipAssignment, KIP-814).
- Empty: has no members, so this is no static rejoin: the member is new. Where an instance id
  outlived its member (before 2.8.0), Kafka fails (`join_group.join_static`).
- Dead: refused with COORDINATOR_NOT_AVAILABLE (`join_group.check_group`).
- `group.max.size` is checked before, and may refuse the rejoin (`join_group.accepts_size`).
"""

from dataclasses import replace

from kafka_protocol.versions import FIRST_JOIN_WITH_SKIP_ASSIGNMENT
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import JoinReceived
from reference_coordinator.classic.membership import fields_of_join, replace_member_id
from reference_coordinator.classic.rebalance import (
    complete_if_all_joined,
    generation_response,
    prepare,
    rebalance_or_complete,
)
from reference_coordinator.classic.rejoin_reasons import static_rejoin_reason
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    STABLE,
    Member,
    Write,
)


def replace_static(context: Context, event: JoinReceived, old: Member, new_id: str) -> None:
    """Give a static member that rejoins a new member id, and go on as the group's state says."""
    leader_before, state = context.group.leader, context.group.state
    member = replace_member_id(context, old, new_id, fields_of_join(context, event, old))
    # As in Kafka, the first session still runs with the old timeout.
    context.keep_alive(member, old.session_timeout_ms)
    rules = context.profile
    if state is not STABLE and rules.every_return_is_stored:
        store_new_id(context, old.member_id, new_id)
    if state is PREPARING_REBALANCE:
        complete_if_all_joined(context)
    elif state is COMPLETING_REBALANCE and rules.return_makes_completing_group_rebalance:
        prepare(context, Reason.STATIC_REPLACED, new_id)
    elif (reason := static_rejoin_reason(context, event, old, new_id)) is not None:
        rebalance_or_complete(context, reason, new_id)
    elif rules.return_is_stored:
        store_replacement(context, event, old, new_id, leader_before)
    else:
        response = generation_response(context.group, new_id, leader=leader_before or "")
        context.answer_join(context.group.members[new_id], response)


def store_replacement(
    context: Context, event: JoinReceived, old: Member, new_id: str, leader_before: str | None
) -> None:
    """Begin to store the new id; the response waits for the outcome of the write."""
    write = Write(
        request=event.request,
        generation=context.group.generation,
        member_id=new_id,
        replaced=old,
        skip_assignment_version=event.api_version >= FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
        leader_before=leader_before,
    )
    context.persist(event.request, writes={**context.group.writes, event.request: write})


def store_new_id(context: Context, old_id: str, new_id: str) -> None:
    """Write the last stored record again with a member's new id; no response waits for it."""
    record = context.group.stored
    if record is None or old_id not in {member.member_id for member in record.members}:
        return
    members = tuple(
        replace(member, member_id=new_id) if member.member_id == old_id else member
        for member in record.members
    )
    leader = new_id if record.leader == old_id else record.leader
    context.store(None, replace(record, leader=leader, members=members))
