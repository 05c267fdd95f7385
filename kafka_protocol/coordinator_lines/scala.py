"""What the Scala coordinator writes from 3.0 on: Kafka 3.2, 3.8 and 3.9, seen on live brokers.

Template names are those of the Java coordinator: a line means the same, whoever wrote it.
"""

from kafka_protocol.coordinator_lines.grammar import Grammar, Template

PREFIX = (
    r"^(?:\[(?:GroupCoordinator |GroupMetadataManager brokerId=)(\d+)\]:? )?"
    r"()((?s:.*))$"
)
"""Broker id where the line has one, nothing, message: a partition stands in messages alone."""

COORDINATOR = "kafka.coordinator.group.GroupCoordinator"
MANAGER = "kafka.coordinator.group.GroupMetadataManager"
GROUP = "kafka.coordinator.group.GroupMetadata"
LOADED = "kafka.coordinator.group.GroupMetadata$"

PARTITION = r"\(__consumer_offsets-(\d+)\)"
_MEMBER = r"MemberMetadata\(memberId=(.+?), groupInstanceId=.*\)"
OFFSETS = r"__consumer_offsets-(\d+)"


def coordinator_line(name: str, regex: str, *fields: str) -> Template:
    """Make the template of a line of the coordinator's own logger."""
    return Template(name, (COORDINATOR,), f"^{regex}$", fields)


def manager_line(name: str, regex: str, *fields: str) -> Template:
    """Make the template of a line of the logger of its storage."""
    return Template(name, (MANAGER,), f"^{regex}$", fields)


TEMPLATES: tuple[Template, ...] = (
    # the life of a rebalance
    coordinator_line(
        "preparing",
        r"Preparing to rebalance group (.+) in state PreparingRebalance "
        rf"with old generation (-?\d+) {PARTITION} \(reason: (.*)\)",
        "group",
        "generation",
        "partition",
        "reason",
    ),
    coordinator_line(
        "stabilized",
        rf"Stabilized group (.+) generation (\d+) {PARTITION} with (\d+) members",
        "group",
        "generation",
        "partition",
        "members",
    ),
    coordinator_line(
        "assignment",
        r"Assignment received from leader (.+) for group (.+) for generation (\d+)\. "
        r"The group has (\d+) members, (\d+) of which are static\.",
        "member",
        "group",
        "generation",
        "members",
        "static_members",
    ),
    coordinator_line(
        "empty",
        rf"Group (.+) with generation (\d+) is now empty {PARTITION}",
        "group",
        "generation",
        "partition",
    ),
    # members coming
    coordinator_line(
        "dynamic_given_id",
        r"Dynamic member with unknown member id joins group (.+) in \w+ state\. "
        r"Created a new member id (.+) and request the member to rejoin with this id\.",
        "group",
        "member",
    ),
    coordinator_line(
        "dynamic_added",
        r"Dynamic Member with unknown member id joins group (.+) in \w+ state\. "
        r"Created a new member id (.+) for this member and add to the group\.",
        "group",
        "member",
    ),
    coordinator_line(
        "pending_joins",
        r"Pending dynamic member with id (.+) joins group (.+) in \w+ state\. "
        r"Adding to the group now\.",
        "member",
        "group",
    ),
    coordinator_line(
        "static_added",
        r"Static member with groupInstanceId=(.+) and unknown member id joins group (.+) "
        r"in \w+ state\. Created a new member id (.+) for this member and add to the group\.",
        "instance",
        "group",
        "member",
    ),
    coordinator_line(
        "static_replaced",
        r"Static member with groupInstanceId=(.+) and unknown member id joins group (.+) "
        r"in \w+ state\. Replacing previously mapped member (.+) with this groupInstanceId\.",
        "instance",
        "group",
        "member",
    ),
    coordinator_line(
        "static_no_rebalance",
        r"Static member which joins during Stable stage and doesn't affect selectProtocol "
        r"will not trigger rebalance\.",
    ),
    # writes that fail: while a replica is down they time out
    coordinator_line("persist_failed", r"Failed to persist metadata for group (.+): .*", "group"),
    coordinator_line("empty_failed", r"Failed to write empty metadata for group (.+): .*", "group"),
    manager_line(
        "commit_failed",
        r"Offset commit Map\(.*\) from group (.+), consumer (.*) with generation (-?\d+) "
        r"failed when appending to log due to .*",
        "group",
        "member",
        "generation",
    ),
    manager_line(
        "metadata_failed",
        r"(?:Metadata from|Appending metadata message for) group (.+?) (?:with )?generation (\d+) "
        r"failed .*",
        "group",
        "generation",
    ),
    coordinator_line(
        "fenced",
        r"Request memberId=(.*) for static member with groupInstanceId=(.+) is fenced by current "
        r"memberId=.+ during operation [\w-]+",
        "member",
        "instance",
    ),
    coordinator_line(
        "unexpected_rejoin",
        r"Attempt to add rejoining member (.+) of group (.+) in unexpected group state \w+",
        "member",
        "group",
    ),
    # members going
    coordinator_line(
        "session_expired",
        r"Member (.+) in group (.+) has failed, removing it from the group",
        "member",
        "group",
    ),
    coordinator_line(
        "pending_expired",
        r"Pending member (.+) in group (.+) has been removed after session timeout expiration\.",
        "member",
        "group",
    ),
    coordinator_line(
        "left",
        rf"Member {_MEMBER} has left group (.+) through explicit `LeaveGroup`"
        r"(?: request|; client reason: .*)",  # until and from 3.2 on (KIP-800)
        "member",
        "group",
    ),
    coordinator_line(
        "pending_left",
        r"Pending member with memberId=(.+) has left group (.+) "
        r"through explicit `LeaveGroup` request",
        "member",
        "group",
    ),
    coordinator_line(
        "already_removed", r"Member (.+) has already been removed from the group\.", "member"
    ),
    coordinator_line(
        "heartbeat_of_nobody",
        r"Member id (.+) was not found in (.+) during heartbeat completion check",
        "member",
        "group",
    ),
    coordinator_line(
        "expiry_after_delete",
        r"Received notification of heartbeat expiration for member (.+) after group (.+) "
        r"had already been unloaded or deleted\.",
        "member",
        "group",
    ),
    # the join and sync phases
    coordinator_line(
        "absent_dynamic_removed",
        r"Group (.+) removed dynamic members who haven't joined: .*",
        "group",
    ),
    Template(
        "leader_absent",
        (GROUP,),
        r"^Group leader \[member\.id: (.+), group\.instance\.id: .+\] failed to join before "
        r"rebalance timeout, .*$",
        ("member",),
    ),
    coordinator_line(
        "nobody_rejoined",
        r"Group (.+) could not complete rebalance because no members rejoined",
        "group",
    ),
    coordinator_line("dead", r"Group (.+) is dead, skipping rebalance stage", "group"),
    coordinator_line(
        "unsynced_removed",
        r"Group (.+) removed members who haven't sent their sync request: .*",
        "group",
    ),
    coordinator_line(
        "late_sync_timer",
        r"Received unexpected notification of sync expiration (?:for|after group) (.+?) "
        r"(?:with an old generation|already transitioned).*",
        "group",
    ),
    coordinator_line(
        "empty_assignments",
        r"Setting empty assignments for members .+ of (.+) for generation (\d+)",
        "group",
        "generation",
    ),
    coordinator_line(
        "empty_assignment_sent",
        r"Sending empty assignment to member (.+) of (.+) for generation (\d+) with no errors",
        "member",
        "group",
        "generation",
    ),
    coordinator_line("simple_group", r"Creating simple consumer group (.+) via manual .*", "group"),
    # the coordinator's own coming and going
    coordinator_line(
        "group_loaded",
        r"Loading group metadata for (.+) with generation (-?\d+)",
        "group",
        "generation",
    ),
    Template(
        "member_loaded",
        (LOADED,),
        rf"^Loaded member {_MEMBER} in group (.+) with generation (-?\d+)\.$",
        ("member", "group", "generation"),
    ),
    manager_line("record_loaded", r"Loaded group metadata GroupMetadata\(.*"),
    coordinator_line(
        "group_unloaded",
        r"Unloading group metadata for (.+) with generation (-?\d+)",
        "group",
        "generation",
    ),
    coordinator_line("groups_deleted", r"The following groups were deleted: .*"),
    manager_line("group_expired", r"Group (.+) transitioned to Dead in generation \d+", "group"),
    manager_line("offsets_expired", r"Removed \d+ expired offsets in \d+ milliseconds\."),
    coordinator_line(
        "offsets_removed", r"Removed \d+ offsets associated with deleted partitions: .*\."
    ),
    coordinator_line("elected", r"Elected as the group coordinator for partition \d+ in epoch \d+"),
    coordinator_line(
        "resigned", r"Resigned as the group coordinator for partition \d+ in epoch .*"
    ),
    manager_line(
        "load_scheduled",
        rf"Scheduling loading of offsets and group metadata from {OFFSETS} for epoch \d+",
        "partition",
    ),
    manager_line(
        "loading",
        rf"Started loading offsets and group metadata from {OFFSETS} for epoch \d+",
        "partition",
    ),
    manager_line(
        "loaded",
        rf"Finished loading offsets and group metadata from {OFFSETS} in .* for epoch (\d+), .*",
        "partition",
        "epoch",
    ),
    manager_line(
        "load_ignored",
        rf"(?:Not loading|Already loading) offsets and group metadata (?:for|from) {OFFSETS}.*",
        "partition",
    ),
    manager_line(
        "unload_scheduled",
        rf"Scheduling unloading of offsets and group metadata from {OFFSETS}",
        "partition",
    ),
    manager_line(
        "unload_started",
        rf"Started unloading offsets and group metadata for {OFFSETS} for coordinator epoch .*",
        "partition",
    ),
    manager_line(
        "unloaded",
        rf"Finished unloading {OFFSETS} for coordinator epoch .*",
        "partition",
    ),
    manager_line(
        "unload_ignored",
        rf"Not removing offsets and group metadata for {OFFSETS} in epoch .*",
        "partition",
    ),
    coordinator_line("starting", r"Starting up\."),
    coordinator_line("started", r"Startup complete\."),
    coordinator_line("shutting_down", r"Shutting down\."),
    coordinator_line("shut_down", r"Shutdown complete\."),
)

REASONS: tuple[tuple[str, str], ...] = (
    ("new_member", r"^Adding new member (.+) with group instance id "),
    ("static_replaced", r"^Updating metadata for static member (.+) with instance id "),
    ("member_metadata", r"^Updating metadata for member (.+) during "),
    ("leader_rejoin", r"^Leader (.+) re-joining group during "),
    ("protocol_change", r"^Group's selectedProtocol will change because static member (.+) with "),
    ("session_expired", r"^removing member (.+) on heartbeat expiration"),
    ("leave", r"^Removing member (.+) on LeaveGroup"),
    ("pending_sync", r"^Removing (?:Hash)?Set\((.*)\) on pending sync request expiration"),
    ("over_capacity", r"^Freshly-loaded group is over capacity \((.+)\)"),
    (
        "assignment_error",
        r"^Error .* when storing group assignment during SyncGroup \(member: (.+)\)",
    ),
)

SCALA = Grammar(
    coordinator="scala",
    prefix=PREFIX,
    loggers="kafka.coordinator.group.",
    loggers_without_prefix=(GROUP, LOADED),
    irrelevant_loggers=(),
    templates=TEMPLATES,
    reasons=REASONS,
    first_words="]: Starting up.",
    last_template="shut_down",
)
"""The Scala coordinator of Kafka 3.x."""
