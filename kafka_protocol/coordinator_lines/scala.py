"""What the Scala coordinator writes from 3.0 on: Kafka 3.2, 3.8 and 3.9, seen on live brokers.

Template names are those of the Java coordinator: a line of either means the same.
"""

from kafka_protocol.coordinator_lines.grammar import Grammar
from kafka_protocol.coordinator_lines.template import Reason, Template

PREFIX = (
    r"^(?:\[(?:GroupCoordinator |GroupMetadataManager brokerId=)(\d+)\]:? )?"
    r"()((?s:.*))$"
)
"""Broker id where the line has one, nothing, message: a partition stands in messages alone."""
PRINTED_PREFIX = "[GroupCoordinator {broker}]: "

COORDINATOR = "kafka.coordinator.group.GroupCoordinator"
MANAGER = "kafka.coordinator.group.GroupMetadataManager"
GROUP = "kafka.coordinator.group.GroupMetadata"
LOADED = "kafka.coordinator.group.GroupMetadata$"


def coordinator_line(name: str, text: str) -> Template:
    """Make the template of a line of the coordinator's own logger."""
    return Template(name, (COORDINATOR,), text)


def manager_line(name: str, text: str) -> Template:
    """Make the template of a line of the logger of its storage."""
    return Template(name, (MANAGER,), text)


TEMPLATES: tuple[Template, ...] = (
    # the phases of a rebalance
    coordinator_line(
        "preparing",
        "Preparing to rebalance group {group} in state PreparingRebalance with old "
        "generation {generation:int} (__consumer_offsets-{partition:count}) (reason: "
        "{reason:any})",
    ),
    coordinator_line(
        "stabilized",
        "Stabilized group {group} generation {generation:count} "
        "(__consumer_offsets-{partition:count}) with {members:count} members",
    ),
    coordinator_line(
        "assignment",
        "Assignment received from leader {member} for group {group} for generation "
        "{generation:count}. The group has {members:count} members, {static_members:count} "
        "of which are static.",
    ),
    coordinator_line(
        "empty",
        "Group {group} with generation {generation:count} is now empty "
        "(__consumer_offsets-{partition:count})",
    ),
    # members that join
    coordinator_line(
        "dynamic_given_id",
        "Dynamic member with unknown member id joins group {group} in {*state:word} state. "
        "Created a new member id {member} and request the member to rejoin with this id.",
    ),
    coordinator_line(
        "dynamic_added",
        "Dynamic Member with unknown member id joins group {group} in {*state:word} state. "
        "Created a new member id {member} for this member and add to the group.",
    ),
    coordinator_line(
        "pending_joins",
        "Pending dynamic member with id {member} joins group {group} in {*state:word} "
        "state. Adding to the group now.",
    ),
    coordinator_line(
        "static_added",
        "Static member with groupInstanceId={instance} and unknown member id joins group "
        "{group} in {*state:word} state. Created a new member id {member} for this member "
        "and add to the group.",
    ),
    coordinator_line(
        "static_replaced",
        "Static member with groupInstanceId={instance} and unknown member id joins group "
        "{group} in {*state:word} state. Replacing previously mapped member {member} with "
        "this groupInstanceId.",
    ),
    coordinator_line(
        "static_no_rebalance",
        "Static member which joins during Stable stage and doesn't affect selectProtocol "
        "will not trigger rebalance.",
    ),
    # writes that fail: while a replica is down they time out
    coordinator_line("persist_failed", "Failed to persist metadata for group {group}: {*rest:any}"),
    coordinator_line(
        "empty_failed", "Failed to write empty metadata for group {group}: {*rest:any}"
    ),
    manager_line(
        "commit_failed",
        "Offset commit Map({*rest:any}) from group {group}, consumer {member:any} with "
        "generation {generation:int} failed when appending to log due to {*error:any}",
    ),
    manager_line(
        "metadata_failed",
        "{*how:Metadata from|Appending metadata message for} group {group:shortest} "
        "{*with:with |}generation {generation:count} failed {*rest:any}",
    ),
    coordinator_line(
        "fenced",
        "Request memberId={member:any} for static member with groupInstanceId={instance} is"
        " fenced by current memberId={*holder} during operation {*operation:dashed}",
    ),
    coordinator_line(
        "unexpected_rejoin",
        "Attempt to add rejoining member {member} of group {group} in unexpected group "
        "state {*state:word}",
    ),
    # members that leave
    coordinator_line(
        "session_expired", "Member {member} in group {group} has failed, removing it from the group"
    ),
    coordinator_line(
        "pending_expired",
        "Pending member {member} in group {group} has been removed after session timeout "
        "expiration.",
    ),
    # until and from 3.2 on (KIP-800)
    coordinator_line(
        "left",
        "Member MemberMetadata(memberId={member:shortest}, groupInstanceId={*more:any}) has"
        " left group {group} through explicit `LeaveGroup`"
        "{*ending: request|; client reason: …}",
    ),
    coordinator_line(
        "pending_left",
        "Pending member with memberId={member} has left group {group} through explicit "
        "`LeaveGroup` request",
    ),
    coordinator_line("already_removed", "Member {member} has already been removed from the group."),
    coordinator_line(
        "heartbeat_of_nobody",
        "Member id {member} was not found in {group} during heartbeat completion check",
    ),
    coordinator_line(
        "expiry_after_delete",
        "Received notification of heartbeat expiration for member {member} after group "
        "{group} had already been unloaded or deleted.",
    ),
    # the join and sync phases
    coordinator_line(
        "absent_dynamic_removed",
        "Group {group} removed dynamic members who haven't joined: {*removed:any}",
    ),
    Template(
        "leader_absent",
        (GROUP,),
        "Group leader [member.id: {member}, group.instance.id: {*instance}] failed to join "
        "before rebalance timeout, {*rest:any}",
    ),
    coordinator_line(
        "nobody_rejoined", "Group {group} could not complete rebalance because no members rejoined"
    ),
    coordinator_line("dead", "Group {group} is dead, skipping rebalance stage"),
    coordinator_line(
        "unsynced_removed",
        "Group {group} removed members who haven't sent their sync request: {*removed:any}",
    ),
    coordinator_line(
        "late_sync_timer",
        "Received unexpected notification of sync expiration {*how:for|after group} "
        "{group:shortest} {*why:with an old generation|already transitioned}{*rest:any}",
    ),
    coordinator_line(
        "empty_assignments",
        "Setting empty assignments for members {*members} of {group} for generation "
        "{generation:count}",
    ),
    coordinator_line(
        "empty_assignment_sent",
        "Sending empty assignment to member {member} of {group} for generation "
        "{generation:count} with no errors",
    ),
    coordinator_line(
        "simple_group", "Creating simple consumer group {group} via manual {*rest:any}"
    ),
    # the coordinator: load, unload, start and stop
    coordinator_line(
        "group_loaded", "Loading group metadata for {group} with generation {generation:int}"
    ),
    Template(
        "member_loaded",
        (LOADED,),
        "Loaded member MemberMetadata(memberId={member:shortest}, "
        "groupInstanceId={*rest:any}) in group {group} with generation {generation:int}.",
    ),
    manager_line("record_loaded", "Loaded group metadata GroupMetadata({*rest:any}"),
    coordinator_line(
        "group_unloaded", "Unloading group metadata for {group} with generation {generation:int}"
    ),
    coordinator_line("groups_deleted", "The following groups were deleted: {*rest:any}"),
    manager_line(
        "group_expired", "Group {group} transitioned to Dead in generation {*count:count}"
    ),
    manager_line(
        "offsets_expired",
        "Removed {*count:count} expired offsets in {*took_ms:count} milliseconds.",
    ),
    coordinator_line(
        "offsets_removed",
        "Removed {*count:count} offsets associated with deleted partitions: {*rest:any}.",
    ),
    coordinator_line(
        "elected",
        "Elected as the group coordinator for partition {*partition:count} in epoch {*epoch:count}",
    ),
    coordinator_line(
        "resigned",
        "Resigned as the group coordinator for partition {*partition:count} in epoch {*rest:any}",
    ),
    manager_line(
        "load_scheduled",
        "Scheduling loading of offsets and group metadata from "
        "__consumer_offsets-{partition:count} for epoch {*epoch:count}",
    ),
    manager_line(
        "loading",
        "Started loading offsets and group metadata from "
        "__consumer_offsets-{partition:count} for epoch {*epoch:count}",
    ),
    manager_line(
        "loaded",
        "Finished loading offsets and group metadata from "
        "__consumer_offsets-{partition:count} in {*rest:any} for epoch {epoch:count}, "
        "{*error:any}",
    ),
    manager_line(
        "load_ignored",
        "{*how:Not loading|Already loading} offsets and group metadata {*why:for|from} "
        "__consumer_offsets-{partition:count}{*rest:any}",
    ),
    manager_line(
        "unload_scheduled",
        "Scheduling unloading of offsets and group metadata from "
        "__consumer_offsets-{partition:count}",
    ),
    manager_line(
        "unload_started",
        "Started unloading offsets and group metadata for "
        "__consumer_offsets-{partition:count} for coordinator epoch {*rest:any}",
    ),
    manager_line(
        "unloaded",
        "Finished unloading __consumer_offsets-{partition:count} for coordinator epoch {*rest:any}",
    ),
    manager_line(
        "unload_ignored",
        "Not removing offsets and group metadata for __consumer_offsets-{partition:count} "
        "in epoch {*rest:any}",
    ),
    coordinator_line("starting", "Starting up."),
    coordinator_line("started", "Startup complete."),
    coordinator_line("shutting_down", "Shutting down."),
    coordinator_line("shut_down", "Shutdown complete."),
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
    Reason("session_expired", "removing member {member} on heartbeat expiration"),
    Reason("leave", "Removing member {member} on LeaveGroup"),
    Reason(
        "pending_sync",
        "Removing {*hash:|Hash}Set({member:any}) on pending sync request expiration",
    ),
    Reason("over_capacity", "Freshly-loaded group is over capacity ({capacity})"),
    Reason(
        "assignment_error",
        "Error {*rest:any} when storing group assignment during SyncGroup (member: {member})",
    ),
)

SCALA = Grammar(
    coordinator="scala",
    prefix=PREFIX,
    printed_prefix=PRINTED_PREFIX,
    loggers="kafka.coordinator.group.",
    loggers_without_prefix=(GROUP, LOADED),
    irrelevant_loggers=(),
    templates=TEMPLATES,
    reasons=REASONS,
    first_line_end="]: Starting up.",
    last_line_end=f"]: Shutdown complete. ({COORDINATOR})",
    last_template="shut_down",
    lines_instead={"member_loaded": None},
)
"""The Scala coordinator of Kafka 3.x."""
