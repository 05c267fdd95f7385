"""OffsetCommit and TxnOffsetCommit: the checks of the group. Offsets are not modelled."""

from kafka_protocol.errors import NO_ERROR, Error
from kafka_protocol.versions import (
    FIRST_COMMIT_WITH_GROUP_ERRORS,
    FIRST_TRANSACTION_WITH_GROUP_ERRORS,
)
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import CommitResponse
from reference_coordinator.classic.events import CommitReceived
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)


def commit(context: Context, event: CommitReceived) -> None:
    """Handle OffsetCommit; an accepted one restarts the session in Stable and PreparingRebalance.

    Without generation and ids it is accepted only while the group is Empty (simple consumers). In a
    transaction, ids and generation are checked if given, and the group's state is not.
    """
    error = check_coordinator(context, event)
    if error is NO_ERROR:
        if not context.group.exists:
            context.change(exists=True, created_ms=context.at_ms)
        separately = event.transactional and not context.profile.transaction_is_checked_as_a_whole
        error = separate_error(context, event) if separately else commit_error(context, event)
    group = context.group
    if (
        error is NO_ERROR
        and not event.transactional
        and event.member_id in group.members
        and group.state in (STABLE, PREPARING_REBALANCE)
    ):
        context.keep_alive(group.members[event.member_id])
    context.answer(event.request, CommitResponse(error))


def check_coordinator(context: Context, event: CommitReceived) -> Error:
    """Make the checks before those of the group: coordinator, existence."""
    group, profile = context.group, context.profile
    if event.transactional and not group.group_id:
        return Error.INVALID_GROUP_ID
    if (error := unavailable(group)) is not None:
        return error
    if group.exists or event.generation < 0:
        return NO_ERROR
    if event.transactional:
        if profile.transaction_creates_group:
            return NO_ERROR
        newer = event.api_version >= FIRST_TRANSACTION_WITH_GROUP_ERRORS
        return profile.transaction_to_unknown_group_v6 if newer else Error.ILLEGAL_GENERATION
    newer = event.api_version >= FIRST_COMMIT_WITH_GROUP_ERRORS
    return profile.commit_to_unknown_group_v9 if newer else Error.ILLEGAL_GENERATION


def commit_error(context: Context, event: CommitReceived) -> Error:
    """Make the checks of the group and its members, in Kafka's order."""
    group = context.group
    if group.state is DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    anonymous = event.generation < 0 and not event.member_id and event.group_instance_id is None
    if event.generation < 0 and group.state is EMPTY:
        if anonymous or context.profile.empty_group_takes_any_commit:
            return NO_ERROR
    elif anonymous:
        return NO_ERROR if event.transactional else Error.UNKNOWN_MEMBER_ID
    error = context.validate(event.member_id, event.group_instance_id)
    if error is not NO_ERROR:
        return error
    if event.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if group.state is COMPLETING_REBALANCE and not event.transactional:
        return Error.REBALANCE_IN_PROGRESS
    return NO_ERROR


def separate_error(context: Context, event: CommitReceived) -> Error:
    """Check instance id, member id and generation of a transaction each on its own."""
    group = context.group
    if group.state is DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    owner = group.static_ids.get(event.group_instance_id or "", event.member_id)
    if owner != event.member_id:
        return Error.FENCED_INSTANCE_ID
    if event.member_id and event.member_id not in group.members:
        return Error.UNKNOWN_MEMBER_ID
    if event.generation >= 0 and event.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    return NO_ERROR
