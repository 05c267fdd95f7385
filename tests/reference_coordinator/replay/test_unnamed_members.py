"""Members whose broker-given ids show only in later responses."""

from dataclasses import replace

from reference_coordinator.classic.effects import JoinResponse
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group
from reference_coordinator.replay.member_ids import UnnamedMembers, named, renamed
from tests.reference_coordinator.replay.test_armed_timers import member

MADE, GIVEN = "c?1", "c-0000"
A = ("a", None, "")
OURS = JoinResponse(0, "a", 1, leader="a", members=frozenset({A, (MADE, None, "")}))
THEIRS = JoinResponse(0, "a", 1, leader="a", members=frozenset({A, (GIVEN, None, "")}))


def test_a_leaders_response_names_a_member() -> None:
    assert list(named(OURS, THEIRS, {MADE: "c"})) == [(MADE, GIVEN)]
    assert renamed(OURS, {MADE: GIVEN}) == THEIRS


def test_an_id_that_begins_otherwise_is_no_name() -> None:
    assert list(named(OURS, THEIRS, {MADE: "x"})) == []


def test_what_is_known_of_a_member_must_be_the_same() -> None:
    other = JoinResponse(0, "a", 1, leader="a", members=frozenset({(GIVEN, "instance", "")}))
    assert list(named(OURS, other, {MADE: "c"})) == []


def test_two_members_get_two_names() -> None:
    ours = JoinResponse(0, "a", 1, members=frozenset({("c?1", None, ""), ("c?2", None, "")}))
    theirs = JoinResponse(0, "a", 1, members=frozenset({("c-1", None, ""), ("c-2", None, "")}))
    found = dict(named(ours, theirs, {"c?1": "c", "c?2": "c"}))
    assert sorted(found.values()) == ["c-1", "c-2"]


def test_a_leader_that_is_unnamed_is_found_by_its_prefix() -> None:
    unnamed = UnnamedMembers().with_member(MADE, "c")
    group = Group("g", members=Members.of([member(MADE)]))
    assert unnamed.leader_in(group, GIVEN) == MADE
    assert unnamed.leader_in(group, "x-0000") == "x-0000"
    assert UnnamedMembers().leader_in(group, GIVEN) == GIVEN


def test_a_response_with_another_members_id_is_known_by_its_request() -> None:
    unnamed = UnnamedMembers().with_member(MADE, "c")
    assert unnamed.names_another("1")
    assert not unnamed.names_another("11")


def test_what_is_known_is_not_changed_in_place() -> None:
    first = UnnamedMembers().with_member(MADE, "c")
    second = first.with_name(MADE, GIVEN)
    assert first.names == {}
    assert second.names == {MADE: GIVEN}


def test_members_of_a_record_without_names() -> None:
    ids = {"a-1": "a", "b-?7": "b", "c?1": None}
    members = tuple(replace(member(id_), group_instance_id=of) for id_, of in ids.items())
    record = GroupRecord(1, "consumer", "range", None, members)
    assert UnnamedMembers.of_record(record).prefixes == {"b-?7": "b-"}
    assert UnnamedMembers.of_record(None).prefixes == {}
