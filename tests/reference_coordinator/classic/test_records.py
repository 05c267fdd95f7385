"""What a record stores of members, and when two records store the same."""

from collections.abc import Mapping

import pytest

from reference_coordinator.classic.records import StoredMembers
from reference_coordinator.classic.state import Member
from reference_coordinator.frozen import replace_fields


def member(name: str, **fields: str) -> Member:
    protocols = (("range", f"{name}:topics"), ("sticky", f"{name}:owned"))
    return Member(name, None, 30_000, 60_000, "consumer", protocols, **fields)


ONE, TWO = member("one"), member("two")
BOTH = {"one": ONE, "two": TWO}
GIVEN = {"one": "0", "two": "1"}


def test_only_the_selected_protocol_and_no_pending_request_is_stored() -> None:
    waiting = member("one", join="request-1", sync="request-2")
    (stored,) = StoredMembers({"one": waiting}, "range", {"one": "0"})
    assert (stored.protocols, stored.assignment) == ((("range", "one:topics"),), "0")
    assert (stored.join, stored.sync, stored.is_new) == (None, None, False)


@pytest.mark.parametrize(
    ("members", "protocol", "assignment"),
    [
        (BOTH, "range", GIVEN),
        (dict(BOTH), "range", dict(GIVEN)),
        ({"two": TWO, "one": ONE}, "range", GIVEN),
        ({"one": member("one"), "two": member("two", join="request-1")}, "range", GIVEN),
        ({"one": member("one", assignment="0"), "two": member("two", assignment="1")}, "range",
         None),
    ],
)  # fmt: skip
def test_records_are_the_same_if_they_store_the_same(
    members: Mapping[str, Member], protocol: str, assignment: Mapping[str, str] | None
) -> None:
    assert StoredMembers(BOTH, "range", GIVEN) == StoredMembers(members, protocol, assignment)


@pytest.mark.parametrize(
    ("members", "protocol", "assignment"),
    [
        ({"one": ONE}, "range", GIVEN),
        ({"one": ONE, "two": replace_fields(TWO, client_id="other")}, "range", GIVEN),
        (BOTH, "sticky", GIVEN),
        (BOTH, "range", {"one": "1", "two": "0"}),
        (BOTH, "range", None),
    ],
)
def test_records_differ_if_anything_stored_does(
    members: Mapping[str, Member], protocol: str, assignment: Mapping[str, str] | None
) -> None:
    assert StoredMembers(BOTH, "range", GIVEN) != StoredMembers(members, protocol, assignment)
