"""Lines of any release: what stands in Kafka's source at the tags that are named, filled in."""

import pytest

from kafka_protocol.coordinator_lines import OF_COORDINATORS
from kafka_protocol.coordinator_lines.member_ids import client_of
from kafka_protocol.coordinator_lines.parser import PREFIX, AnyRelease, KnownLine

JAVA, SCALA = map(AnyRelease, OF_COORDINATORS.values())
ID = "app-11111111-1111-4111-8111-111111111111"
OTHER = "app-22222222-2222-4222-8222-222222222222"
SHARD = "[GroupCoordinator id=1 topic=__consumer_offsets partition=49] "
SERVICE = "[GroupCoordinator 1]: "
STORAGE = "[Group Metadata Manager on Broker 1]: "
SAYS = ("member", "instance", "group", "generation", "partition")


def known(body: str) -> KnownLine:
    return (JAVA if JAVA.begins(body) else SCALA).parsed(body)


@pytest.mark.parametrize(
    ("tag", "message", "template", "says"),
    [
        ("0.10.0.0", "Preparing to restabilize group g with old generation 4", "preparing", "g 4"),
        ("0.10.0.0", "Stabilized group g generation 5", "stabilized", "g 5"),
        ("0.10.0.0", "Group g generation 5 is dead and removed", "group_removed", "g 5"),
        ("0.10.0.0", "Assignment received from leader for group g for generation 5",
         "assignment", "g 5"),
        ("0.10.0.1", "Loading offsets and group metadata from [__consumer_offsets,7]",
         "loading", "7"),
        ("0.10.1.0", "Group g with generation 5 is now empty", "empty", "g 5"),
        ("0.10.2.0", "Finished loading offsets from __consumer_offsets-7 in 12 milliseconds.",
         "loaded", "7"),
        ("0.11.0.0", "Preparing to rebalance group g with old generation 4 (__consumer_offsets-7)",
         "preparing", "g 4 7"),
        ("0.11.0.0", "Member m in group g has failed", "session_expired", "m g"),
        ("0.11.0.1", "Member m in group g has left, removing it from the group", "left", "m g"),
        ("1.0.0", "Offset load from __consumer_offsets-7 already in progress.",
         "load_ignored", "7"),
        ("2.2.0", "Pending member m is leaving group g.", "pending_left", "m g"),
        ("2.3.0", ("Static member Some(i) with unknown member id rejoins, assigning new member id "
                  "n, while old member m will be removed."), "static_replaced", "m i"),
        ("2.4.0", ("The following offsets of the group g were deleted: t-0. A total of 1 offsets "
                  "were removed."), "aside", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("prefix", [SERVICE, STORAGE, "[GroupMetadataManager brokerId=1] "])
def test_lines_of_scala(tag: str, message: str, template: str, says: str, prefix: str) -> None:
    line = known(prefix + message)
    assert PREFIX.match(prefix)
    assert (line.broker, line.template) == ("1", template), tag
    assert [line.fields[name] for name in SAYS if name in line.fields] == says.split()


@pytest.mark.parametrize(
    ("tag", "message", "template", "says"),
    [
        ("3.7.0", ("[Group g] Dynamic Member m has left group through explicit `LeaveGroup` "
                  "request; client reason: not provided"), "left", "m g"),
        ("3.7.0", ("[Group g] Static Member m with instance id i has left group through explicit "
                  "`LeaveGroup` request; client reason: not provided"), "left", "m i g"),
        ("4.4.0", "Group g is dead, skipping rebalance stage.", "dead", "g"),
        ("4.4.0", "Loaded share group g1 with 3 members.", "other_protocol", ""),
    ],
)  # fmt: skip
def test_lines_of_java(tag: str, message: str, template: str, says: str) -> None:
    line = known(SHARD + message)
    assert (line.broker, line.partition, line.template) == ("1", "49", template), tag
    assert [line.fields[name] for name in SAYS if name in line.fields] == says.split()


def preparing(reason: str, state: str = "PreparingRebalance") -> KnownLine:
    return known(
        f"{SERVICE}Preparing to rebalance group g in state {state} with old generation 4 "
        f"(__consumer_offsets-49) (reason: {reason})"
    )


@pytest.mark.parametrize(
    ("reason", "name", "member"),
    [
        (f"Adding new member {ID}", "new_member", ID),  # 2.1.0
        (f"Adding new member {ID} with group instanceid None", "new_member", ID),  # 2.3.0
        (f"Updating metadata for member {ID}", "member_metadata", ID),  # 2.1.0
        (f"removing member {ID} on heartbeat expiration", "session_expired", ID),  # 2.1.0
        (f"removing member {ID} on LeaveGroup", "leave", ID),  # 2.1.0
        (f"Removing member {ID} on LeaveGroup; client reason: bye", "leave", ID),  # 3.2.0
        # those of forks: one class, be it about this member or that
        (f"moving {ID} and {OTHER}; client reason: {OTHER}", "moving … and …", f"{ID}, {OTHER}"),
        ("moving (1-1594907777335)", "moving (…)", "1-1594907777335"),
        ("a whim", "a whim", ""),
    ],
)
@pytest.mark.parametrize("state", ["PreparingRebalance", "Stable"])
def test_a_reason_is_a_class_in_which_no_id_stands(
    reason: str, name: str, member: str, state: str
) -> None:
    """A fork writes the state before the rebalance."""
    line = preparing(reason, state)
    assert line.template == "preparing"
    assert (line.fields["reason"], line.fields["member"]) == (name, member)
    assert line.fields.get("client_reason", "") == reason.partition("; client reason: ")[2]


@pytest.mark.parametrize("begin", ["Error NOT_COORDINATOR when", "error when"])
def test_nobody_began_a_rebalance_whose_assignment_could_not_be_stored(begin: str) -> None:
    """2.1.0 words it without the error. The leader waited for the broker's write."""
    line = preparing(f"{begin} storing group assignment during SyncGroup (member: {ID})")
    assert line.fields["reason"] == "assignment_error"
    assert line.fields["leader"] == ID
    assert "member" not in line.fields


@pytest.mark.parametrize("tail", ["", ".", " during join-group, will respond with an error", ";"])
@pytest.mark.parametrize("comma", [",", ", "])
def test_a_fenced_line_may_end_otherwise(comma: str, tail: str) -> None:
    line = known(
        f"given member.id 1-1594907777335 is identified as a known static member 1{comma}but not "
        f"matching the expected member.id 1-1594907777144{tail}"
    )
    assert line.template == "fenced"
    assert (line.fields["member"], line.fields["instance"]) == ("1-1594907777335", "1")


def test_whom_a_member_id_names() -> None:
    """The time of 2.3.0 has 13 digits until the year 2286."""
    assert client_of(ID) == "app"
    assert client_of("1-1594907777335") == "1"
    assert client_of("app-159490777733") == "app-159490777733"
