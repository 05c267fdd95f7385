"""SyncGroup: followers wait for the leader, whose assignment is stored before anyone is answered.

What follows from the outcome of that write is in `record_writes`.
"""

from kafka_protocol.errors import NO_ERROR, Error
from kafka_protocol.versions import FIRST_SYNC_WITH_PROTOCOL
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import AssignmentReceived, SyncResponse
from reference_coordinator.classic.events import SyncReceived
from reference_coordinator.classic.heartbeat import request_error
from reference_coordinator.classic.membership import received_sync
from reference_coordinator.classic.rebalance import settle_leader, sync_response
from reference_coordinator.classic.record_writes import store_assignment
from reference_coordinator.classic.state import PREPARING_REBALANCE, STABLE
from reference_coordinator.frozen import replace_fields


def sync(context: Context, event: SyncReceived) -> None:
    """Handle SyncGroup."""
    error = sync_error(context, event)
    if error is not NO_ERROR:
        context.answer(event.request, SyncResponse(error))
        return
    received_sync(context, event.member_id)
    settle_leader(context)
    group = context.group
    member = group.members[event.member_id]
    if group.state is STABLE:
        context.answer(event.request, sync_response(group, member, NO_ERROR))
        if context.profile.sync_in_stable_restarts_session:
            context.keep_alive(member)
        return
    context.put(replace_fields(member, sync=event.request))
    if group.leader == event.member_id:
        context.effects.append(
            AssignmentReceived(
                leader=event.member_id,
                generation=group.generation,
                members=len(group.members),
                static_members=len(group.static_ids),
            )
        )
        store_assignment(context, event)


def sync_error(context: Context, event: SyncReceived) -> Error:
    """Make the checks of SyncGroup, in Kafka's order."""
    group = context.group
    kind, protocol = event.protocol_type, event.protocol
    if event.api_version >= FIRST_SYNC_WITH_PROTOCOL and (kind is None or protocol is None):
        return Error.INCONSISTENT_GROUP_PROTOCOL  # checked before the coordinator is called
    error = request_error(context, event.member_id, event.group_instance_id, event.generation)
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
        return context.profile.sync_while_loading
    if error is not NO_ERROR:
        return error
    if kind not in (None, group.protocol_type) or protocol not in (None, group.protocol):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if group.state is PREPARING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return NO_ERROR
