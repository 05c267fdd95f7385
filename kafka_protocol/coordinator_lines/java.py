"""What the Java coordinator writes: Kafka 3.9 and 4.x to 4.4, seen on live brokers.

The wording of classic-group lines is unchanged since 3.7; in 3.9 the runtime's loggers stand in
another package, and its share of the lines is a little smaller. 4.4 words failed writes anew, by
what failed; where the broker no longer leads the partition it does so at level DEBUG.
"""

from kafka_protocol.coordinator_lines.grammar import Grammar
from kafka_protocol.coordinator_lines.template import Reason, Template

PREFIX = r"^\[GroupCoordinator id=(\d+)(?: topic=__consumer_offsets partition=(\d+))?\] ((?s:.*))$"
"""Broker id, offsets partition if the line is a shard's, message."""
PRINTED_PREFIX = "[GroupCoordinator id={broker} topic=__consumer_offsets partition={partition}] "

MANAGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
SHARD = "org.apache.kafka.coordinator.group.GroupCoordinatorShard"
OFFSETS = "org.apache.kafka.coordinator.group.OffsetMetadataManager"
CLASSIC_GROUP = "org.apache.kafka.coordinator.group.classic.ClassicGroup"
SERVICE = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
_PACKAGES = (
    "org.apache.kafka.coordinator.common.runtime",
    "org.apache.kafka.coordinator.group.runtime",
)
RUNTIME = tuple(f"{package}.CoordinatorRuntime" for package in _PACKAGES)
EVENTS = tuple(f"{package}.MultiThreadedEventProcessor" for package in _PACKAGES)
"""The first of each from 4.0 on, the other up to 3.9."""


def _manager(name: str, text: str) -> Template:
    return Template(name, (MANAGER, SHARD, CLASSIC_GROUP, OFFSETS), text)


def _runtime(name: str, text: str) -> Template:
    return Template(name, (*RUNTIME, SERVICE, *EVENTS), text)


TEMPLATES: tuple[Template, ...] = (
    # the phases of a rebalance
    _manager(
        "preparing",
        "Preparing to rebalance group {group} in state PreparingRebalance with old "
        "generation {generation:int} (reason: {reason:any}).",
    ),
    _manager(
        "stabilized",
        "Stabilized group {group} generation {generation:count} with {members:count} members.",
    ),
    _manager(
        "assignment",
        "Assignment received from leader {member} for group {group} for generation "
        "{generation:count}. The group has {members:count} members, {static_members:count} "
        "of which are static.",
    ),
    _manager("empty", "Group {group} with generation {generation:count} is now empty."),
    # members that join
    _manager(
        "dynamic_given_id",
        "Dynamic member with unknown member id joins group {group} in {*state:word} state. "
        "Created a new member id {member} and requesting the member to rejoin with this id.",
    ),
    _manager(
        "dynamic_added",
        "Dynamic member with unknown member id joins group {group} in state {*state:word}. "
        "Created a new member id {member} and added the member to the group.",
    ),
    _manager(
        "pending_joins",
        "Pending dynamic member with id {member} joins group {group} in {*state:word} "
        "state. Adding to the group now.",
    ),
    _manager(
        "static_added",
        "Static member with groupInstanceId={instance} and unknown member id joins group "
        "{group} in {*state:word} state. Created a new member id {member} for this member "
        "and added to the group.",
    ),
    _manager(
        "static_replaced",
        "Static member with groupInstanceId={instance} and unknown member id joins group "
        "{group} in {*state:word} state. Replacing previously mapped member {member} with "
        "this groupInstanceId.",
    ),
    _manager(
        "static_no_rebalance",
        "Static member which joins during Stable stage and doesn't affect the selected "
        "protocol will not trigger a rebalance.",
    ),
    _manager("empty_failed", "Failed to write empty metadata for group {group}: {*rest:any}"),
    _manager(
        "persist_failed",
        "Failed to persist metadata for group {group} static member {member} with group "
        "instance id {instance} due to {*error:any}. Reverting to old member id {*old_member}.",
    ),
    _manager(
        "fenced",
        "Request memberId={member:any} for static member with groupInstanceId={instance} is"
        " fenced by existing memberId={*holder} during operation {*operation:dashed}",
    ),
    _manager(
        "unexpected_rejoin",
        "Attempt to add rejoining member {member} of group {group} in unexpected group "
        "state {*state:word}",
    ),
    # members that leave
    _manager(
        "session_expired",
        "Member {member} in group {group} has failed, removing it from the group.",
    ),
    _manager(
        "pending_expired",
        "Pending member {member} in group {group} has been removed after session timeout "
        "expiration.",
    ),
    _manager(
        "left",
        "[Group {group:shortest}] Member {member} has left group through explicit "
        "`LeaveGroup` request; client reason: {*client_reason:any}",
    ),
    _manager(
        "pending_left",
        "[Group {group:shortest}] Pending member {member} has left group through explicit "
        "`LeaveGroup` request; client reason: {*client_reason:any}",
    ),
    _manager("already_removed", "Member {member} has already been removed from the group."),
    _manager(
        "expiry_after_delete",
        "Received notification of heartbeat expiration for member {member} after group "
        "{group} had already been {*rest:any}",
    ),
    # the join and sync phases
    _manager(
        "absent_dynamic_removed",
        "Group {group} removed dynamic members who haven't joined: [{*removed:any}]",
    ),
    _manager(
        "leader_absent",
        "Group leader [memberId: {member}, groupInstanceId: {*instance}] failed to join before"
        " the rebalance timeout{*rest:any}",
    ),
    _manager(
        "nobody_rejoined", "Group {group} could not complete rebalance because no members rejoined."
    ),
    _manager("join_incomplete", "Cannot complete join phase of group {group} because {*rest:any}."),
    _manager(
        "unsynced_removed",
        "Group {group} removed members who haven't sent their sync requests: [{*removed:any}]",
    ),
    _manager(
        "late_sync_timer",
        "Received unexpected notification of sync expiration {*how:for|after group} "
        "{group:shortest} {*why:with an old generation|already transitioned}{*rest:any}",
    ),
    _manager(
        "empty_assignments",
        "Setting empty assignments for members {*members} of {group} for generation "
        "{generation:count}.",
    ),
    _manager(
        "empty_assignment_sent",
        "Sending empty assignment to member {member} of {group} for generation "
        "{generation:count} with no errors",
    ),
    _manager(
        "simple_group",
        "[GroupId {group:shortest}] Creating a simple consumer group via manual {*rest:any}",
    ),
    # the coordinator: load, unload, start and stop
    _manager("group_loaded", "Loaded classic group {group} with {members:count} members."),
    _manager("member_loaded", "Loaded member {member} in classic group {group}."),
    _manager(
        "group_unloaded",
        "[GroupId={group}] Unloading group metadata for generation {generation:int}.",
    ),
    _manager("groups_deleted", "The following groups were deleted: {*rest:any}"),
    _manager(
        "tombstones",
        "Generated {*count:count} tombstone records while cleaning up group metadata in "
        "{*took_ms:count} milliseconds.",
    ),
    _manager(
        "offsets_removed",
        "Generated {*count:count} tombstone records in {*took_ms:count} milliseconds while "
        "deleting offsets for {*rest:any}.",
    ),
    _manager(
        "share_state_removed",
        "Generated {*count:count} records in {*took_ms:count} milliseconds while cleaning share "
        "group state for topics {*rest:any}.",
    ),
    _runtime(
        "loading",
        "Scheduling loading of metadata from __consumer_offsets-{partition:count} with "
        "epoch {*epoch:count}",
    ),
    _runtime(
        "loaded",
        "Finished loading of metadata from __consumer_offsets-{partition:count} with epoch "
        "{epoch:count} in {*rest:any}",
    ),
    _runtime(
        "load_ignored",
        "{*how:Ignored loading metadata from|The coordinator} "
        "__consumer_offsets-{partition:count} {*why:since current epoch …|is already "
        "active.|is already loading metadata.}",
    ),
    _runtime(
        "load_failed",
        "Failed to load metadata from __consumer_offsets-{partition:count} with epoch "
        "{*count:count} due to {*error:any}",
    ),
    _runtime(
        "unload_scheduled",
        "Scheduling unloading of metadata for __consumer_offsets-{partition:count} with "
        "epoch {*rest:any}",
    ),
    _runtime(
        "unload_started",
        "Started unloading metadata for __consumer_offsets-{partition:count} with epoch "
        "{*rest:any}",
    ),
    _runtime(
        "unloaded",
        "Finished unloading metadata for __consumer_offsets-{partition:count} with epoch "
        "{*rest:any}",
    ),
    _runtime(
        "unload_ignored",
        "Ignored unloading metadata for __consumer_offsets-{partition:count} in epoch {*rest:any}",
    ),
    # a failed write, as after the broker lost the partition: the responses show the error
    _runtime(
        "write_failed",
        "{*how:Writing|Failed to write} records to __consumer_offsets-{partition:count} "
        "{*error:failed due to: …|because …|due to an unexpected error: …}",
    ),
    _runtime(
        "batch_too_large",
        "Failed to write a batch of {*count:count} record(s) to "
        "__consumer_offsets-{partition:count} because it is larger than {*rest:any}",
    ),
    _runtime(
        "marker_failed",
        "Failed to write the transaction marker to __consumer_offsets-{partition:count} "
        "{*error:because …|due to an unexpected error: …}",
    ),
    _runtime(
        "empty_batch", "Tried to flush an empty batch for __consumer_offsets-{partition:count}."
    ),
    _runtime("flush_failed", "Execution of FlushBatch failed due to {*cause:cause}"),
    # events that arrive while the broker shuts down
    _runtime("closed_event", "Execution of {*rest:any} failed due to EventProcessor is closed.."),
    _runtime("starting", "Starting up."),
    _runtime("started", "Startup complete."),
    _runtime("shutting_down", "Shutting down."),
    _runtime("runtime_closing", "Closing coordinator runtime."),
    _runtime("runtime_closed", "Coordinator runtime closed."),
    _runtime("events_closing", "Shutting down event processor."),
    _runtime("events_closed", "Event processor closed."),
    _runtime("shut_down", "Shutdown complete."),
)

REASONS: tuple[Reason, ...] = (
    Reason("new_member", "Adding new member {member} with group instance id {*instance:any}"),
    Reason(
        "static_replaced",
        "Updating metadata for static member {member} with instance id {*instance:any}",
    ),
    Reason("member_metadata", "Updating metadata for member {member} during {*state:any}"),
    Reason("leader_rejoin", "Leader {member} re-joining group during {*state:any}"),
    Reason(
        "protocol_change",
        "Group's selectedProtocol will change because static member {member} "
        "with instance id {*instance:any} joined with change of protocol",
    ),
    Reason("session_expired", "removing member {member} on heartbeat expiration."),
    Reason("leave", "explicit `LeaveGroup` request for ({member:any}) members."),
    Reason("pending_sync", "Removing [{member:any}] on pending sync request expiration"),
    Reason("over_capacity", "Freshly-loaded group {group} (size {*size:any}"),
    Reason(
        "assignment_error",
        "Error {*rest:any} when storing group assignment{*space: |}during SyncGroup "
        "(member: {member})",
    ),
)

JAVA = Grammar(
    coordinator="java",
    prefix=PREFIX,
    printed_prefix=PRINTED_PREFIX,
    loggers="org.apache.kafka.coordinator.",
    loggers_without_prefix=(),
    irrelevant_loggers=tuple(
        f"{package}.{name}"
        for package in _PACKAGES
        for name in (
            "CoordinatorTimerImpl",
            "CoordinatorRuntime$EventBasedCoordinatorTimer",  # its name before 4.0
            "SnapshottableCoordinator",
        )
    ),
    templates=TEMPLATES,
    reasons=REASONS,
    first_line_end="] Starting up.",
    last_line_end=f"] Shutdown complete. ({SERVICE})",
    last_template="shut_down",
)
"""The Java coordinator, its lines in the form that 4.3 gives them."""
