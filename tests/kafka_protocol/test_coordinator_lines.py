"""Lines that the recordings do not hold: of failed writes, and of other releases."""

import re

import pytest

from kafka_protocol.coordinator_lines import GRAMMARS, Grammar, grammar_of
from kafka_protocol.coordinator_lines.scala import SCALA
from reports.judgement.timelines import timeline

MANAGER = "kafka.coordinator.group.GroupMetadataManager"
SERVICE = "kafka.coordinator.group.GroupCoordinator"
JAVA = "org.apache.kafka.coordinator.group.GroupMetadataManager"
RUNTIME = "org.apache.kafka.coordinator.group.runtime.CoordinatorRuntime"
COMMON_RUNTIME = "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"
LED = (
    "For requests intended only for the leader, this error indicates that the broker is not the"
    " current leader. For requests intended for any replica, this error indicates that the broker"
    " is not a replica of the topic partition."
)
TIMED_OUT = "org.apache.kafka.common.errors.TimeoutException"

SAMPLES = [
    pytest.param(
        "scala",
        MANAGER,
        "Offset commit Map(AAAAAAAAAAAAAAAAAAAAAA:orders-0 -> OffsetAndMetadata(offset=37,"
        " leaderEpoch=Optional[0], metadata=, commitTimestamp=1795284610697, expireTimestamp=None))"
        " from group static, consumer static-0-cab3ef88-21d1-40f8-9fea-7b06ff534044 with generation"
        f" 1 failed when appending to log due to {TIMED_OUT}",
        "commit_failed",
        ("static", "static-0-cab3ef88-21d1-40f8-9fea-7b06ff534044", "1"),
        id="seen on 3.9.1 while the leader of another partition was down",
    ),
    pytest.param(
        "java",
        RUNTIME,
        f"Writing records to __consumer_offsets-4 failed due to: {LED}.",
        "write_failed",
        ("4",),
        id="seen on 3.9.1 as its broker was stopped",
    ),
    pytest.param(
        "java",
        RUNTIME,
        f"Execution of FlushBatch failed due to {LED}.",
        "flush_failed",
        (),
        id="seen on 3.9.1 right after that",
    ),
    pytest.param(
        "java",
        COMMON_RUNTIME,
        "Failed to write records to __consumer_offsets-4 because this broker is no longer the"
        " leader of the partition.",
        "write_failed",
        ("4",),
        id="seen on 4.4.0 as its broker was stopped, level DEBUG",
    ),
    pytest.param(
        "java",
        COMMON_RUNTIME,
        "Failed to write a batch of 1 record(s) to __consumer_offsets-0 because it is larger than"
        " the maximum batch size of 2048 bytes. This usually means that a single record is too"
        " large. Consider increasing the maximum batch size.",
        "batch_too_large",
        ("0",),
        id="seen on 4.4.0",
    ),
    # the others as Kafka's source has them (3.9)
    (
        "scala",
        MANAGER,
        f"Metadata from group g with generation 3 failed when appending to log due to {TIMED_OUT}",
        "metadata_failed",
        ("g", "3"),
    ),
    (
        "scala",
        MANAGER,
        "Appending metadata message for group g generation 3 failed due to unexpected error: x",
        "metadata_failed",
        ("g", "3"),
    ),
    (
        "scala",
        SERVICE,
        "Failed to write empty metadata for group g: The request timed out.",
        "empty_failed",
        ("g",),
    ),
    (
        "java",
        JAVA,
        "Failed to write empty metadata for group g: The request timed out.",
        "empty_failed",
        ("g",),
    ),
]


GROUP = "kafka.coordinator.group.GroupMetadata"
NEW, OLD = (f"static-6-{n:08}-7972-404a-b410-0a3e924e4948" for n in (2, 1))

BEFORE_3 = [
    # seen on 2.8.1
    (
        SERVICE,
        (
            f"Dynamic Member with specific member id {NEW} joins group g in Stable state."
            " Adding to the group now."
        ),
        "pending_joins",
        (NEW, "g"),
    ),
    (
        SERVICE,
        (
            "Static Member with unknown member id joins group g in PreparingRebalance state."
            f" Created a new member id {NEW} for this member and add to the group."
        ),
        "static_added",
        ("g", NEW),
    ),
    (
        SERVICE,
        f"Adding new static member Some(static-6) to group g with member id {NEW}.",
        "static_mapped",
        ("static-6", "g", NEW),
    ),
    (
        SERVICE,
        (
            "Static member Some(static-6) of group g with unknown member id rejoins, assigning new"
            f" member id {NEW}, while old member id {OLD} will be removed."
        ),
        "static_replaced",
        ("static-6", "g", OLD),
    ),
    (
        SERVICE,
        (
            f"Member[group.instance.id None, member.id {NEW}] in group g has left,"
            " removing it from the group"
        ),
        "left",
        (NEW, "g"),
    ),
    (
        SERVICE,
        (
            "Assignment received from leader for group g for generation 7. The group has 8 members,"
            " 3 of which are static."
        ),
        "assignment",
        ("g", "7", "8", "3"),
    ),
    # as Kafka's source has them (2.8)
    (SERVICE, f"Pending member {NEW} is leaving group g.", "pending_left", (NEW, "g")),
    (
        GROUP,
        (
            f"given member.id {OLD} is identified as a known static member static-6, but not"
            f" matching the expected member.id Some({NEW}) during sync-group, will respond with"
            " instance fenced error"
        ),
        "fenced",
        (OLD, "static-6"),
    ),
]


@pytest.mark.parametrize(("logger", "message", "name", "fields"), BEFORE_3)
def test_the_scala_coordinator_before_3_0(
    logger: str, message: str, name: str, fields: tuple[str, ...]
) -> None:
    assert parsed_by(grammar_of("2.8.1", "scala"), logger, message) == [(name, fields)]
    assert parsed_by(grammar_of("3.0.0", "scala"), logger, message) == []


BEFORE_2_8 = [
    # seen on 2.4.1
    (
        "2.4.1",
        SERVICE,
        "Stabilized group g generation 7 (__consumer_offsets-3)",
        "stabilized",
        ("g", "7", "3"),
    ),
    (
        "2.4.1",
        SERVICE,
        "Assignment received from leader for group g for generation 7",
        "assignment",
        ("g", "7"),
    ),
    (
        "2.4.1",
        SERVICE,
        (
            "Dynamic member with unknown member id rejoins group g in Empty state. Created a new"
            f" member id {NEW} and request the member to rejoin with this id."
        ),
        "dynamic_given_id",
        ("g", NEW),
    ),
    (
        "2.4.1",
        SERVICE,
        (
            "Dynamic member with unknown member id rejoins group g in PreparingRebalance state."
            f" Created a new member id {NEW} for this member and add to the group."
        ),
        "member_added",
        ("g", NEW),
    ),
    (
        "2.4.1",
        SERVICE,
        (
            "Static member Some(static-6) with unknown member id rejoins, assigning new member id"
            f" {NEW}, while old member {OLD} will be removed."
        ),
        "static_replaced",
        ("static-6", OLD),
    ),
    (
        "2.4.1",
        SERVICE,
        "Static member joins during Stable stage will not trigger rebalance.",
        "static_no_rebalance",
        (),
    ),
    (
        "2.4.1",
        GROUP,
        (
            f"given member.id {OLD} is identified as a known static member"
            f" static-6,but not matching"
            f" the expected member.id {NEW}"
        ),
        "fenced",
        (OLD, "static-6"),
    ),
    (
        "2.4.1",
        MANAGER,
        "Scheduling loading of offsets and group metadata from __consumer_offsets-3",
        "loading",
        ("3",),
    ),
    (
        "2.4.1",
        MANAGER,
        "Finished loading offsets and group metadata from __consumer_offsets-3 in 12 milliseconds.",
        "loaded",
        ("3",),
    ),
    (
        "2.4.1",
        MANAGER,
        "Scheduling unloading of offsets and group metadata from __consumer_offsets-3",
        "unload_started",
        ("3",),
    ),
    (
        "2.4.1",
        MANAGER,
        "Finished unloading __consumer_offsets-3. Removed 0 cached offsets and 1 cached groups.",
        "unloaded",
        ("3",),
    ),
    # as Kafka's source has them
    (
        "2.4.1",
        SERVICE,
        f"Member id {OLD} was not found in g during heartbeat expiration.",
        "heartbeat_of_nobody",
        (OLD, "g"),
    ),
    (
        "2.5.1",
        f"{GROUP}$",
        (
            f"Static member MemberMetadata(memberId={NEW}, groupInstanceId=Some(static-6))"
            f".groupInstanceId of group g loaded with member id {NEW} at generation 7."
        ),
        "member_loaded",
        ("g", NEW, "7"),
    ),
    (
        "2.6.0",
        SERVICE,
        "Static member joins during Stable stage will not trigger rebalance.",
        "static_no_rebalance",
        (),
    ),
    (
        "2.6.1",
        SERVICE,
        (
            "Static member which joins during Stable stage and doesn't affect"
            " selectProtocol will not"
            " trigger rebalance."
        ),
        "static_no_rebalance",
        (),
    ),
    (
        "2.6.1",
        MANAGER,
        (
            "Finished loading offsets and group metadata from __consumer_offsets-3"
            " in 12 milliseconds,"
            " of which 1 milliseconds was spent in the scheduler."
        ),
        "loaded",
        ("3",),
    ),
    (
        "2.7.2",
        SERVICE,
        f"Group g remove dynamic members who haven't joined: Set({OLD})",
        "absent_dynamic_removed",
        ("g",),
    ),
]


@pytest.mark.parametrize(("version", "logger", "message", "name", "fields"), BEFORE_2_8)
def test_the_scala_coordinator_before_2_8(
    version: str, logger: str, message: str, name: str, fields: tuple[str, ...]
) -> None:
    assert parsed_by(grammar_of(version, "scala"), logger, message) == [(name, fields)]


REASONS_BEFORE_2_8 = [
    ("2.4.1", f"Adding new member {NEW} with group instanceid Some(static-6)", "new_member"),
    ("2.5.1", f"Adding new member {NEW} with group instance id Some(static-6)", "new_member"),
    (
        "2.5.1",
        f"Updating metadata for static member {NEW} with instance id Some(static-6)",
        "static_replaced",
    ),
    ("2.6.0", f"Updating metadata for member {NEW}", "member_metadata"),
    ("2.6.1", f"Updating metadata for member {NEW} during Stable", "member_metadata"),
    ("2.6.1", f"leader {NEW} re-joining group during Stable", "leader_rejoin"),
    ("2.7.2", f"removing member {NEW} on LeaveGroup", "leave"),
]


@pytest.mark.parametrize(("version", "text", "name"), REASONS_BEFORE_2_8)
def test_why_it_rebalanced_before_2_8(version: str, text: str, name: str) -> None:
    grammar = grammar_of(version, "scala")
    assert timeline.reason({"reason": text}, grammar) == (name, NEW)


def test_a_leader_that_rejoins_has_no_reason_of_its_own_until_2_6_1() -> None:
    instead = {v: grammar_of(v, "scala").reasons_instead for v in ("2.4.1", "2.6.0", "2.6.1")}
    assert instead["2.4.1"] == instead["2.6.0"] == {"leader_rejoin": "member_metadata"}
    assert instead["2.6.1"] == {}


def test_leave_lines_before_client_reasons() -> None:
    """KIP-800, 3.2."""
    member = f"MemberMetadata(memberId={NEW}, groupInstanceId=None, clientId=c)"
    left = f"Member {member} has left group g through explicit `LeaveGroup`"
    for how in (" request", "; client reason: not provided"):
        assert parsed_by(SCALA, SERVICE, left + how) == [("left", (NEW, "g"))]


def parsed_by(grammar: Grammar, logger: str, message: str) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (template.name, match.groups())
        for template in grammar.templates
        if logger in template.loggers and (match := re.match(template.regex, message))
    ]


@pytest.mark.parametrize(("coordinator", "logger", "message", "name", "fields"), SAMPLES)
def test_a_failed_write_is_understood(
    coordinator: str, logger: str, message: str, name: str, fields: tuple[str, ...]
) -> None:
    assert parsed_by(GRAMMARS[coordinator], logger, message) == [(name, fields)]
