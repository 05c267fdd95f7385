"""What the Java coordinator writes: Kafka 3.9 and 4.x, seen on live brokers.

The wording of classic-group lines is unchanged since 3.7; in 3.9 the runtime's loggers stand in
another package, and its share of the lines is a little smaller.
"""

from kafka_protocol.coordinator_lines.grammar import Grammar, Template

PREFIX = r"^\[GroupCoordinator id=(\d+)(?: topic=__consumer_offsets partition=(\d+))?\] ((?s:.*))$"
"""Broker id, offsets partition if the line is a shard's, message."""

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


def _manager(name: str, regex: str, *fields: str) -> Template:
    return Template(name, (MANAGER, SHARD, CLASSIC_GROUP, OFFSETS), f"^{regex}$", fields)


def _runtime(name: str, regex: str, *fields: str) -> Template:
    return Template(name, (*RUNTIME, SERVICE, *EVENTS), f"^{regex}$", fields)


_LOAD = r"__consumer_offsets-(\d+)"

TEMPLATES: tuple[Template, ...] = (
    # the life of a rebalance
    _manager(
        "preparing",
        r"Preparing to rebalance group (.+) in state PreparingRebalance "
        r"with old generation (-?\d+) \(reason: (.*)\)\.",
        "group",
        "generation",
        "reason",
    ),
    _manager(
        "stabilized",
        r"Stabilized group (.+) generation (\d+) with (\d+) members\.",
        "group",
        "generation",
        "members",
    ),
    _manager(
        "assignment",
        r"Assignment received from leader (.+) for group (.+) for generation (\d+)\. "
        r"The group has (\d+) members, (\d+) of which are static\.",
        "member",
        "group",
        "generation",
        "members",
        "static_members",
    ),
    _manager("empty", r"Group (.+) with generation (\d+) is now empty\.", "group", "generation"),
    # members coming
    _manager(
        "dynamic_given_id",
        r"Dynamic member with unknown member id joins group (.+) in \w+ state\. "
        r"Created a new member id (.+) and requesting the member to rejoin with this id\.",
        "group",
        "member",
    ),
    _manager(
        "dynamic_added",
        r"Dynamic member with unknown member id joins group (.+) in state \w+\. "
        r"Created a new member id (.+) and added the member to the group\.",
        "group",
        "member",
    ),
    _manager(
        "pending_joins",
        r"Pending dynamic member with id (.+) joins group (.+) in \w+ state\. "
        r"Adding to the group now\.",
        "member",
        "group",
    ),
    _manager(
        "static_added",
        r"Static member with groupInstanceId=(.+) and unknown member id joins group (.+) "
        r"in \w+ state\. Created a new member id (.+) for this member and added to the group\.",
        "instance",
        "group",
        "member",
    ),
    _manager(
        "static_replaced",
        r"Static member with groupInstanceId=(.+) and unknown member id joins group (.+) "
        r"in \w+ state\. Replacing previously mapped member (.+) with this groupInstanceId\.",
        "instance",
        "group",
        "member",
    ),
    _manager(
        "static_no_rebalance",
        r"Static member which joins during Stable stage and doesn't affect the selected protocol "
        r"will not trigger a rebalance\.",
    ),
    _manager("empty_failed", r"Failed to write empty metadata for group (.+): .*", "group"),
    _manager(
        "persist_failed",
        r"Failed to persist metadata for group (.+) static member (.+) with group instance id "
        r"(.+) due to .*\. Reverting to old member id .+\.",
        "group",
        "member",
        "instance",
    ),
    _manager(
        "fenced",
        r"Request memberId=(.*) for static member with groupInstanceId=(.+) is fenced by existing "
        r"memberId=.+ during operation [\w-]+",
        "member",
        "instance",
    ),
    _manager(
        "unexpected_rejoin",
        r"Attempt to add rejoining member (.+) of group (.+) in unexpected group state \w+",
        "member",
        "group",
    ),
    # members going
    _manager(
        "session_expired",
        r"Member (.+) in group (.+) has failed, removing it from the group\.",
        "member",
        "group",
    ),
    _manager(
        "pending_expired",
        r"Pending member (.+) in group (.+) has been removed after session timeout expiration\.",
        "member",
        "group",
    ),
    _manager(
        "left",
        r"\[Group (.+?)\] Member (.+) has left group through explicit `LeaveGroup` request; "
        r"client reason: .*",
        "group",
        "member",
    ),
    _manager(
        "pending_left",
        r"\[Group (.+?)\] Pending member (.+) has left group through explicit `LeaveGroup` "
        r"request; client reason: .*",
        "group",
        "member",
    ),
    _manager("already_removed", r"Member (.+) has already been removed from the group\.", "member"),
    _manager(
        "expiry_after_delete",
        r"Received notification of heartbeat expiration for member (.+) after group (.+) "
        r"had already been .*",
        "member",
        "group",
    ),
    # the join and sync phases
    _manager(
        "absent_dynamic_removed",
        r"Group (.+) removed dynamic members who haven't joined: \[.*\]",
        "group",
    ),
    _manager(
        "leader_absent",
        r"Group leader \[memberId: (.+), groupInstanceId: .+\] failed to join before the "
        r"rebalance timeout.*",
        "member",
    ),
    _manager(
        "nobody_rejoined",
        r"Group (.+) could not complete rebalance because no members rejoined\.",
        "group",
    ),
    _manager(
        "join_incomplete",
        r"Cannot complete join phase of group (.+) because .*\.",
        "group",
    ),
    _manager(
        "unsynced_removed",
        r"Group (.+) removed members who haven't sent their sync requests: \[.*\]",
        "group",
    ),
    _manager(
        "late_sync_timer",
        r"Received unexpected notification of sync expiration (?:for|after group) (.+?) "
        r"(?:with an old generation|already transitioned).*",
        "group",
    ),
    _manager(
        "empty_assignments",
        r"Setting empty assignments for members .+ of (.+) for generation (\d+)\.",
        "group",
        "generation",
    ),
    _manager(
        "empty_assignment_sent",
        r"Sending empty assignment to member (.+) of (.+) for generation (\d+) with no errors",
        "member",
        "group",
        "generation",
    ),
    # the coordinator's own coming and going
    _manager("group_loaded", r"Loaded classic group (.+) with (\d+) members\.", "group", "members"),
    _manager("member_loaded", r"Loaded member (.+) in classic group (.+)\.", "member", "group"),
    _manager(
        "group_unloaded",
        r"\[GroupId=(.+)\] Unloading group metadata for generation (-?\d+)\.",
        "group",
        "generation",
    ),
    _manager(
        "groups_deleted",
        r"The following groups were deleted: .*",
    ),
    _manager(
        "tombstones",
        r"Generated \d+ tombstone records while cleaning up group metadata in \d+ milliseconds\.",
    ),
    _runtime(
        "loading", rf"Scheduling loading of metadata from {_LOAD} with epoch \d+", "partition"
    ),
    _runtime(
        "loaded",
        rf"Finished loading of metadata from {_LOAD} with epoch (\d+) in .*",
        "partition",
        "epoch",
    ),
    _runtime(
        "load_ignored",
        rf"(?:Ignored loading metadata from|The coordinator) {_LOAD} "
        r"(?:since current epoch .*|is already active\.|is already loading metadata\.)",
        "partition",
    ),
    _runtime(
        "load_failed",
        rf"Failed to load metadata from {_LOAD} with epoch \d+ due to .*",
        "partition",
    ),
    _runtime(
        "unload_scheduled",
        rf"Scheduling unloading of metadata for {_LOAD} with epoch .*",
        "partition",
    ),
    _runtime(
        "unload_started", rf"Started unloading metadata for {_LOAD} with epoch .*", "partition"
    ),
    _runtime("unloaded", rf"Finished unloading metadata for {_LOAD} with epoch .*", "partition"),
    _runtime("unload_ignored", rf"Ignored unloading metadata for {_LOAD} in epoch .*", "partition"),
    # a write that failed, as where the broker leads the partition no longer: its answers tell
    _runtime("write_failed", rf"Writing records to {_LOAD} failed due to: .*", "partition"),
    _runtime("flush_failed", r"Execution of FlushBatch failed due to (?!EventProcessor is).*"),
    # events that came when the broker was on its way out
    _runtime("closed_event", r"Execution of .* failed due to EventProcessor is closed\.\."),
    _runtime("starting", r"Starting up\."),
    _runtime("started", r"Startup complete\."),
    _runtime("shutting_down", r"Shutting down\."),
    _runtime("runtime_closing", r"Closing coordinator runtime\."),
    _runtime("runtime_closed", r"Coordinator runtime closed\."),
    _runtime("events_closing", r"Shutting down event processor\."),
    _runtime("events_closed", r"Event processor closed\."),
    _runtime("shut_down", r"Shutdown complete\."),
)

REASONS: tuple[tuple[str, str], ...] = (
    ("new_member", r"^Adding new member (.+) with group instance id "),
    ("static_replaced", r"^Updating metadata for static member (.+) with instance id "),
    ("member_metadata", r"^Updating metadata for member (.+) during "),
    ("leader_rejoin", r"^Leader (.+) re-joining group during "),
    ("protocol_change", r"^Group's selectedProtocol will change because static member (.+) with "),
    ("session_expired", r"^removing member (.+) on heartbeat expiration"),
    ("leave", r"^explicit `LeaveGroup` request for \((.*)\) members\."),
    ("pending_sync", r"^Removing \[(.*)\] on pending sync request expiration"),
    ("over_capacity", r"^Freshly-loaded group (.+) \(size "),
    (
        "assignment_error",
        r"^Error .* when storing group assignment ?during SyncGroup \(member: (.+)\)",
    ),
)

JAVA = Grammar(
    coordinator="java",
    prefix=PREFIX,
    loggers="org.apache.kafka.coordinator.",
    loggers_without_prefix=(),
    irrelevant_loggers=tuple(
        f"{package}.{name}"
        for package in _PACKAGES
        for name in ("CoordinatorTimerImpl", "SnapshottableCoordinator")
    ),
    templates=TEMPLATES,
    reasons=REASONS,
    first_words="] Starting up.",
    last_template="shut_down",
)
"""The Java coordinator, its lines in the form that 4.3 gives them."""
