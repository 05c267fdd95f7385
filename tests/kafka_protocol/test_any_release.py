"""Lines of any release: what stands in Kafka's source at the tags that are named, filled in."""

import pytest

from kafka_protocol.coordinator_lines import ALL_GRAMMARS
from kafka_protocol.coordinator_lines.member_ids import client_of
from kafka_protocol.coordinator_lines.parser import AnyRelease

ANY = AnyRelease(ALL_GRAMMARS)
ID = "app-11111111-1111-4111-8111-111111111111"
OTHER = "app-22222222-2222-4222-8222-222222222222"
JAVA = "[GroupCoordinator id=1 topic=__consumer_offsets partition=49] "
STORAGE = "[Group Metadata Manager on Broker 1]: "


@pytest.mark.parametrize(
    ("tag", "body", "template", "said"),
    [
        ("0.10.0.0", "Preparing to restabilize group g with old generation 4", "preparing", "g 4"),
        ("0.10.0.0", "Stabilized group g generation 5", "stabilized", "g 5"),
        ("0.10.0.0", "Group g generation 5 is dead and removed", "group_removed", "g 5"),
        ("0.10.0.0", "Assignment received from leader for group g for generation 5", "assignment",
         "g 5"),
        ("0.10.0.1", f"{STORAGE}Loading offsets and group metadata from [__consumer_offsets,7]",
         "loading", "7"),
        ("0.10.1.0", "Group g with generation 5 is now empty", "empty", "g 5"),
        ("0.10.2.0", f"{STORAGE}Finished loading offsets from __consumer_offsets-7 in 12 "
         "milliseconds.", "loaded", "7"),
        ("0.11.0.0", "Preparing to rebalance group g with old generation 4 (__consumer_offsets-7)",
         "preparing", "g 4 7"),
        ("0.11.0.0", f"Member {ID} in group g has failed", "session_expired", f"{ID} g"),
        ("0.11.0.1", f"Member {ID} in group g has left, removing it from the group", "left",
         f"{ID} g"),
        ("1.0.0", "[GroupMetadataManager brokerId=1] Offset load from __consumer_offsets-7 already"
         " in progress.", "load_ignored", "7"),
        ("2.2.0", f"Pending member {ID} is leaving group g.", "pending_left", f"{ID} g"),
        ("2.3.0", f"Static member Some(i) with unknown member id rejoins, assigning new member id "
         f"{OTHER}, while old member {ID} will be removed.", "static_replaced", f"i {ID}"),
        ("2.4.0", "The following offsets of the group g were deleted: t-0. A total of 1 offsets "
         "were removed.", "aside", ""),
        ("3.7.0", f"{JAVA}[Group g] Dynamic Member {ID} has left group through explicit "
         "`LeaveGroup` request; client reason: not provided", "left", f"g {ID}"),
        ("4.4.0", f"{JAVA}Group g is dead, skipping rebalance stage.", "dead", "g"),
    ],
)  # fmt: skip
def test_a_line_is_parsed_without_its_release_and_logger(
    tag: str, body: str, template: str, said: str
) -> None:
    """`said` are the fields that its template reports, in their order."""
    known = ANY.parsed(None, body if body.startswith("[") else f"[GroupCoordinator 1]: {body}")
    assert known is not None
    assert (known.broker, known.template) == ("1", template), tag
    reported = {
        template.fields
        for grammar in ALL_GRAMMARS
        for template in grammar.templates
        if template.name == known.template
    }
    values = [tuple(known.fields.get(name) for name in fields) for fields in reported]
    assert tuple(said.split()) in values


@pytest.mark.parametrize(
    ("reason", "name", "member"),
    [
        (f"Adding new member {ID}", "new_member", ID),  # 2.1.0
        (f"Adding new member {ID} with group instanceid None", "new_member", ID),  # 2.3.0
        (f"Updating metadata for member {ID}", "member_metadata", ID),  # 2.1.0
        (f"removing member {ID} on heartbeat expiration", "session_expired", ID),  # 2.1.0
        (f"removing member {ID} on LeaveGroup", "leave", ID),  # 2.1.0
        (f"Removing member {ID} on LeaveGroup; client reason: bye", "leave", ID),  # 3.2.0
        # those of forks: one class, whoever they name
        (f"moving {ID} and {OTHER}; client reason: {OTHER}", "moving … and …", f"{ID}, {OTHER}"),
        ("moving (1-1594907777335)", "moving (…)", "1-1594907777335"),
        ("a whim", "a whim", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("state", ["PreparingRebalance", "Stable"])
def test_the_reason_is_a_class_that_names_nobody(
    reason: str, name: str, member: str, state: str
) -> None:
    """The state of a fork is the one before the rebalance."""
    text = f"Preparing to rebalance group g in state {state} with old generation 4"
    for body in (
        f"[GroupCoordinator 1]: {text} (__consumer_offsets-49) (reason: {reason})",
        f"{JAVA}{text} (reason: {reason}).",
    ):
        known = ANY.parsed(None, body)
        assert known is not None
        assert known.template == "preparing"
        if name in ("session_expired", "leave") and body.startswith(JAVA):
            continue  # Java words them otherwise
        assert (known.fields["reason"], known.fields["member"]) == (name, member)


def test_nobody_began_a_rebalance_whose_assignment_could_not_be_stored() -> None:
    """The error is the broker's; the leader only waited for the write."""
    known = ANY.parsed(
        "kafka.coordinator.group.GroupCoordinator",
        "[GroupCoordinator 1]: Preparing to rebalance group g in state PreparingRebalance with old "
        "generation 9 (__consumer_offsets-49) (reason: Error NOT_COORDINATOR when storing group "
        f"assignment during SyncGroup (member: {ID}))",
    )
    assert known is not None
    assert known.fields["reason"] == "assignment_error"
    assert "member" not in known.fields
    assert known.fields["leader"] == ID


@pytest.mark.parametrize("tail", ["", ".", " during join-group, will respond with an error", ";"])
@pytest.mark.parametrize("comma", [",", ", "])
def test_a_fenced_line_may_end_as_it_likes(comma: str, tail: str) -> None:
    text = (
        f"given member.id 1-1594907777335 is identified as a known static member 1{comma}but not "
        f"matching the expected member.id 1-1594907777144{tail}"
    )
    for logger in (None, "GroupMetadata", "kafka.coordinator.group.GroupMetadata"):
        known = ANY.parsed(logger, text)
        assert known is not None
        assert known.template == "fenced"
        assert (known.fields["member"], known.fields["instance"]) == ("1-1594907777335", "1")


@pytest.mark.parametrize(
    ("message", "group"),
    [
        ("[GroupId g] Converted the classic group to a consumer group.", "g"),
        ("[GroupId g][MemberId m] Static member m with instance id i joins.", "g"),
        ("[GroupId=g] Unloaded group metadata for group epoch 3.", "g"),
        ("Loaded share group g with 3 members.", "g"),
    ],
)
def test_groups_of_other_protocols_are_named(message: str, group: str) -> None:
    known = ANY.parsed(None, JAVA + message)
    assert known is not None
    assert known.template == "other_protocol"
    assert known.fields["other"] == group
    assert "group" not in known.fields


def test_where_a_line_begins() -> None:
    for body in (
        "[GroupCoordinator 1]: Starting up.",
        f"{STORAGE}Loading",
        f"Group leader [member.id: {ID}, group.instance.id: None] failed",
        f"given member.id {ID} is identified as a known static member 1",
    ):
        match = ANY.begins.search(f"kafka-1 | 2026 INFO {body}")
        assert match is not None
        assert match.start() == len("kafka-1 | 2026 INFO ")
    assert ANY.begins.search("Static member or not, Group leader of all: given member.id") is None


def test_lines_of_no_group() -> None:
    body = "[ShareCoordinator id=1 topic=__share_group_state partition=3] Loading."
    assert (
        ANY.parsed("org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime", body) is None
    )
    assert ANY.parsed(None, "Starting up.") is None
    known = ANY.parsed("k.c.group.GroupMetadata", "it fell over")
    assert known is not None
    assert known.template is None


def test_whom_a_member_id_names() -> None:
    assert client_of(ID) == "app"
    assert client_of("1-1594907777335") == "1"
    assert client_of("1-15949077773351") == "1-15949077773351"
