"""Parts of a group: its members, its record, what their metadata asks for; and the README."""

import re
from base64 import b64encode
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_coordinator.classic as package
from kafka_protocol.consumer_protocol import Subscription
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.records import StoredMembers
from reference_coordinator.classic.rejoin_reasons import same_subscription
from reference_coordinator.classic.state import Member
from reference_coordinator.frozen import replace_fields

MEMBERS = st.builds(
    Member,
    member_id=st.sampled_from("abcd"),
    group_instance_id=st.none(),
    session_timeout_ms=st.just(1),
    rebalance_timeout_ms=st.integers(1, 3),
    protocol_type=st.just("consumer"),
    protocols=st.sampled_from([(("x", ""),), (("x", ""), ("y", "")), (("y", ""), ("x", ""))]),
    join=st.none() | st.just("waits"),
)


@given(st.lists(MEMBERS | st.sampled_from("abcd")))
def test_kept_counts_are_those_of_all_members(changes: list[Member | str]) -> None:
    members, states = Members(), list[tuple[Members, dict[str, Member]]]()
    for change in changes:
        members = members.put(change) if isinstance(change, Member) else members.without(change)
        states.append((members, dict(members)))
    for kept, as_it_was in states:  # older ones, too, are what they were
        assert dict(kept) == as_it_was
        everyone = list(kept.values())
        names = [[name for name, _ in member.protocols] for member in everyone]
        assert kept.awaiting == sum(member.join is not None for member in everyone)
        assert kept.rebalance_timeout_ms == max(
            (m.rebalance_timeout_ms for m in everyone), default=0
        )
        assert kept.all_support("y") == all("y" in each for each in names)
        votes = [next(n for n in each if n in kept.common_protocols) for each in names]
        assert kept.votes == {vote: votes.count(vote) for vote in votes}


def member(name: str, **fields: str) -> Member:
    protocols = (("range", f"{name}:topics"), ("sticky", f"{name}:owned"))
    return Member(name, None, 30_000, 60_000, "consumer", protocols, **fields)


ONE, TWO = member("one"), member("two")
BOTH = {"one": ONE, "two": TWO}
GIVEN = {"one": "0", "two": "1"}
ASSIGNED = {name: replace_fields(BOTH[name], assignment=work) for name, work in GIVEN.items()}
OTHER_CLIENT = BOTH | {"two": replace_fields(TWO, client_id="other")}


def test_only_the_selected_protocol_and_no_pending_request_is_stored() -> None:
    waiting = member("one", join="request-1", sync="request-2")
    (stored,) = StoredMembers({"one": waiting}, "range", {"one": "0"})
    assert (stored.protocols, stored.assignment) == ((("range", "one:topics"),), "0")
    assert (stored.join, stored.sync, stored.is_new) == (None, None, False)


def test_records_are_the_same_if_they_store_the_same() -> None:
    record = StoredMembers(BOTH, "range", GIVEN)
    waiting = BOTH | {"two": member("two", join="request-1")}
    for members in (dict(BOTH), {"two": TWO, "one": ONE}, waiting):
        assert record == StoredMembers(members, "range", dict(GIVEN))
    assert record == StoredMembers(ASSIGNED, "range", None)


@pytest.mark.parametrize(
    "other",
    [
        ({"one": ONE}, "range", GIVEN),
        (OTHER_CLIENT, "range", GIVEN),
        (BOTH, "sticky", GIVEN),
        (BOTH, "range", {"one": "1", "two": "0"}),
        (BOTH, "range", None),
    ],
    ids=["members", "client", "protocol", "assignment", "no assignment"],
)
def test_records_differ_if_anything_stored_does(other) -> None:
    assert StoredMembers(BOTH, "range", GIVEN) != StoredMembers(*other)


def test_a_consumer_that_is_back_asks_for_its_topics() -> None:
    """Seen on 4.3.0: a Java consumer that restarts no longer tells a generation."""
    before, same, other = (
        b64encode(subscription.encode()).decode()
        for subscription in (
            Subscription(("a", "b"), generation=7),
            Subscription(("b", "a")),
            Subscription(("a",)),
        )
    )
    assert same_subscription(before, same)
    assert not same_subscription(before, other)
    # of metadata whose length alone is known nothing is decided
    assert not same_subscription(before, "(39 bytes)")
    assert same_subscription("(39 bytes)", "(47 bytes)")


def test_the_readme_names_modules_and_functions_that_exist() -> None:
    folder = Path(package.__file__).parent
    text = (folder / "README.md").read_text("utf-8")
    named = re.findall(r"`([a-z_]+)\.(?!py`)([A-Za-z_]+)`", text)
    assert len(named) > 20
    for module, name in named:
        assert hasattr(import_module(f"{package.__name__}.{module}"), name), f"{module}.{name}"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "step"}
    missing = {name for name in modules if not re.search(rf"\b{name}\b", text)}
    assert missing <= {"heartbeat", "sync_group"}
