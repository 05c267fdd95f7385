"""The return of a static member: a known instance joins without a member id and gets a new one.

Whoever still waits with the old id is fenced, and the member is replaced, in every state of the
group (KIP-345).
"""

from dataclasses import replace

from kafka_protocol.versions import FIRST_JOIN_WITH_SKIP_ASSIGNMENT
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import JoinReceived
from reference_coordinator.classic.join_reasons import wants_rebalance
from reference_coordinator.classic.membership import said_by, swap_member
from reference_coordinator.classic.rebalance import (
    allowed_protocols,
    complete_if_all_joined,
    generation_answer,
    prepare,
    rebalance_or_complete,
)
from reference_coordinator.classic.state import Member, State, Write
from reference_coordinator.classic.subscriptions import ask_for_the_same


def replace_static(context: Context, event: JoinReceived, old: Member, new_id: str) -> None:
    """Give a returning instance a new member id.

    Stable: no rebalance as long as the selected protocol stays (KAFKA-10284 stores the new id).
    CompletingRebalance: a rebalance, or the leader would assign to the old id (KAFKA-9801).
    PreparingRebalance: the join counts for the rebalance under way.
    """
    leader_before, state = context.group.leader, context.group.state
    newcomer = swap_member(context, old, new_id, **said_by(context, event))
    # As in Kafka, the first session still runs with the old timeout.
    context.keep_alive(newcomer, old.session_timeout_ms)
    if context.profile.every_return_is_stored and state is not State.STABLE:
        store_new_id(context, old.member_id, new_id)
    if state is State.PREPARING_REBALANCE:
        complete_if_all_joined(context)
    elif (
        state is State.COMPLETING_REBALANCE
        and context.profile.return_makes_completing_group_rebalance
    ):
        prepare(context, Reason.STATIC_REPLACED, new_id)
    elif (reason := reason_to_rebalance(context, event, old, new_id)) is not None:
        rebalance_or_complete(context, reason, new_id)
    elif context.profile.return_is_stored:
        store_return(context, event, old, new_id, leader_before)
    else:
        member = context.group.members[new_id]
        answer = generation_answer(context.group, new_id, leader=leader_before or "")
        context.answer_join(member, answer)


def reason_to_rebalance(
    context: Context, event: JoinReceived, old: Member, new_id: str
) -> Reason | None:
    """Tell why a return makes a Stable group rebalance, if it does."""
    group, profile = context.group, context.profile
    if profile.return_may_change_protocol and not protocol_stays(context, event):
        return Reason.PROTOCOL_CHANGE
    member = group.members[new_id]
    if profile.changed_subscription_rebalances and not ask_for_the_same(
        member.metadata(group.protocol), old.metadata(group.protocol)
    ):
        return Reason.MEMBER_METADATA
    if wants_rebalance(context, event, leads=group.leader == new_id):
        return Reason.JOIN_REASON
    return None


def protocol_stays(context: Context, event: JoinReceived) -> bool:
    """Tell whether the group would select its protocol again; a tie is bound by the offer."""
    allowed = allowed_protocols(context.group)
    picked = event.choices.protocol
    return context.group.protocol in allowed and (
        len(allowed) == 1 or picked in ("", context.group.protocol)
    )


def store_return(
    context: Context, event: JoinReceived, old: Member, new_id: str, leader_before: str | None
) -> None:
    """Begin to store the new id; the answer waits for the outcome."""
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
    """Write the record stored last anew, with a member's new id in it; nobody waits for it."""
    record = context.group.stored
    if record is None or old_id not in {member.member_id for member in record.members}:
        return
    members = tuple(
        replace(member, member_id=new_id) if member.member_id == old_id else member
        for member in record.members
    )
    leader = new_id if record.leader == old_id else record.leader
    context.store(None, replace(record, leader=leader, members=members))
