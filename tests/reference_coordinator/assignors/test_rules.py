"""The rule of each assignor, in cases small enough to work out by hand."""

import pytest

from reference_coordinator.assignors import ASSIGNORS, AssignorError, Member, Subscription
from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.members import in_order
from reference_coordinator.assignors.sticky_data import encode
from tests.reference_coordinator.assignors.leaders import in_order_of_librdkafka


def parts(text: str) -> tuple[TopicPartition, ...]:
    """`a0 b12` are partition 0 of topic a and 12 of b."""
    return tuple(TopicPartition(word[0], int(word[1:])) for word in text.split())


def member(member_id: str, topics: str, had: str = "", since: int = -1) -> Member:
    """`C1` is dynamic, `I=C1` has the instance id I. Every assignor receives what it owned."""
    instance, _, own_id = member_id.rpartition("=")
    data = encode(parts(had), since) if had else None
    subscription = Subscription(tuple(topics.split()), data, parts(had), since)
    return Member(own_id, subscription, instance or None)


def assigned(assignor: str, topics: dict[str, int], *members: Member) -> dict[str, str]:
    """Each member's share, in order, as one reads it."""
    shares = ASSIGNORS[assignor](members, topics)
    return {
        key: " ".join(sorted(f"{topic}{number}" for topic, number in share))
        for key, share in shares.items()
    }


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_member_without_existing_topics_gets_nothing(assignor):
    assert assigned(assignor, {}, member("C1", "a")) == {"C1": ""}
    assert assigned(assignor, {"a": 0}, member("C1", "a")) == {"C1": ""}
    assert assigned(assignor, {"b": 2}, member("C1", "a"), member("C2", "b")) == {
        "C1": "", "C2": "b0 b1",
    }  # fmt: skip
    assert assigned(assignor, {"a": 3}) == {}


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_one_member_gets_all_that_it_wants(assignor):
    assert assigned(assignor, {"a": 2, "b": 1, "c": 9}, member("C1", "b a")) == {"C1": "a0 a1 b0"}


def test_range_gives_the_first_members_one_more_of_every_topic():
    two = member("C1", "a b"), member("C0", "a b")
    assert assigned("range", {"a": 3, "b": 3}, *two) == {"C0": "a0 a1 b0 b1", "C1": "a2 b2"}


def test_range_looks_at_each_topic_for_itself():
    three = member("C0", "a"), member("C1", "a b"), member("C2", "a")
    assert assigned("range", {"a": 3, "b": 2}, *three) == {"C0": "a0", "C1": "a1 b0 b1", "C2": "a2"}


def test_range_gives_nothing_to_members_beyond_the_last_partition():
    assert assigned("range", {"a": 1}, member("C1", "a"), member("C0", "a")) == {
        "C0": "a0", "C1": "",
    }  # fmt: skip


def test_round_robin_goes_on_from_topic_to_topic():
    two = member("C0", "a b"), member("C1", "a b")
    assert assigned("roundrobin", {"a": 3, "b": 3}, *two) == {"C0": "a0 a2 b1", "C1": "a1 b0 b2"}


def test_round_robin_skips_members_without_the_topic():
    """A member that is skipped is not reconsidered: the example of Kafka's documentation."""
    three = member("C0", "a"), member("C1", "a b"), member("C2", "a b c")
    assert assigned("roundrobin", {"a": 1, "b": 2, "c": 3}, *three) == {
        "C0": "a0", "C1": "b0", "C2": "b1 c0 c1 c2",
    }  # fmt: skip


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_static_members_come_first_by_instance_id(assignor):
    mixed = member("C1", "a"), member("I2=C9", "a"), member("I1=D0", "a"), member("C0", "a")
    assert assigned(assignor, {"a": 4}, *mixed) == {"D0": "a0", "C9": "a1", "C0": "a2", "C1": "a3"}


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_the_sticky_ones_know_no_instance_ids(assignor):
    two = member("I2=C0", "a"), member("I1=C1", "a")
    assert assigned(assignor, {"a": 2}, *two) == {"C0": "a0", "C1": "a1"}


def test_librdkafka_compares_by_member_id_where_one_has_no_instance_id():
    mixed = member("z=I1-x", "a"), member("C0", "a"), member("y=J0-x", "a")
    assert [one.member_id for one in in_order(mixed)] == ["J0-x", "I1-x", "C0"]
    two = member("z=I1", "a"), member("D0", "a")
    assert [one.member_id for one in in_order(two)] == ["I1", "D0"]
    assert [one.member_id for one in in_order_of_librdkafka(two)] == ["D0", "I1"]
    static = member("z=I1", "a"), member("y=J0", "a")
    assert in_order_of_librdkafka(static) == in_order(static)


def test_members_compare_by_utf_16_units():
    """A name beyond the basic plane sorts before one at its end: Java's order, not Python's."""
    two = member("\uffff", "a"), member("\U0001f600", "a")
    assert assigned("range", {"a": 1}, *two) == {"\U0001f600": "a0", "\uffff": ""}


def test_sticky_assigns_unowned_partitions():
    two = member("C1", "a b"), member("C0", "a b")
    assert assigned("sticky", {"a": 3, "b": 2}, *two) == {"C0": "a0 a2 b1", "C1": "a1 b0"}


def test_sticky_moves_surplus_partitions_to_a_newcomer():
    """The ones with the highest numbers go."""
    three = member("C0", "a", "a0 a2 a4", 1), member("C1", "a", "a1 a3 a5", 1), member("C2", "a")
    assert assigned("sticky", {"a": 6}, *three) == {"C0": "a0 a2", "C1": "a1 a3", "C2": "a4 a5"}


def test_sticky_reassigns_partitions_of_a_member_that_left():
    two = member("C0", "a", "a0 a3", 1), member("C2", "a", "a2 a5", 1)
    assert assigned("sticky", {"a": 6}, *two) == {"C0": "a0 a1 a3", "C2": "a2 a4 a5"}


def test_sticky_keeps_all_where_topics_differ_and_nobody_has_two_more():
    """C2 has nothing, but only C1 has what it wants, and has one."""
    three = member("C0", "a", "a0 a1", 1), member("C1", "a b", "b0", 1), member("C2", "b")
    assert assigned("sticky", {"a": 2, "b": 1}, *three) == {"C0": "a0 a1", "C1": "b0", "C2": ""}


def test_sticky_evens_out_where_topics_differ():
    """C1 alone can have b, so it gives up of a until C0 has as many as it, or one less."""
    two = member("C0", "a"), member("C1", "a b", "a0 a1 a2 a3", 1)
    shares = assigned("sticky", {"a": 4, "b": 2}, *two)
    assert len(shares["C0"].split()) == 3
    assert set(shares["C1"].split()) > {"b0", "b1"}


def test_sticky_takes_partitions_of_dropped_topics():
    two = member("C0", "b", "a0 a1", 1), member("C1", "a b", "b0 b1", 1)
    assert assigned("sticky", {"a": 2, "b": 2}, *two) == {"C0": "b0 b1", "C1": "a0 a1"}


def test_a_partition_claimed_twice_in_one_generation_is_kept_by_neither():
    """Of a0 nobody is the owner, so it is dealt anew: to C1, which has less."""
    two = member("C0", "a", "a0 a1 a2", 4), member("C1", "a", "a0", 4)
    assert assigned("cooperative-sticky", {"a": 4}, *two) == {"C0": "a1 a2", "C1": "a3"}
    assert assigned("sticky", {"a": 4}, *two) == {"C0": "a1 a2", "C1": "a0 a3"}


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_later_generation_beats_an_earlier_one(assignor):
    stale, fresh = member("C0", "a", "a0 a1", 3), member("C1", "a", "a0 a2", 4)
    for both in ((stale, fresh), (fresh, stale)):
        assert assigned(assignor, {"a": 4}, *both) == {"C0": "a1 a3", "C1": "a0 a2"}


def test_cooperative_withholds_partitions_until_they_are_revoked():
    """The next rebalance, when C0 has given up a2 and a3, hands them over."""
    first = member("C0", "a", "a0 a1 a2 a3", 1), member("C1", "a")
    assert assigned("cooperative-sticky", {"a": 4}, *first) == {"C0": "a0 a1", "C1": ""}
    second = member("C0", "a", "a0 a1", 2), member("C1", "a", "", 2)
    assert assigned("cooperative-sticky", {"a": 4}, *second) == {"C0": "a0 a1", "C1": "a2 a3"}


def test_cooperative_withholds_moved_partitions_with_different_subscriptions():
    two = member("C0", "a b", "a0 a1 a2 a3", 1), member("C1", "a")
    shares = assigned("cooperative-sticky", {"a": 4, "b": 1}, *two)
    assert shares["C1"] == ""
    assert "b0" in shares["C0"]
    assert len(shares["C0"].split()) == 3


def test_unreadable_user_data_is_ignored():
    garbled = Member("C0", Subscription(("a",), b"\0\0\0\1\0"))
    assert assigned("sticky", {"a": 2}, garbled, member("C1", "a", "a0", 1)) == {
        "C0": "a1", "C1": "a0",
    }  # fmt: skip


def test_data_of_the_first_version_has_no_generation():
    """Its claim loses against any that has one."""
    old = Member("C0", Subscription(("a",), encode(parts("a0 a1"), 9)[:-4]))
    new = member("C1", "a", "a0", 1)
    assert assigned("sticky", {"a": 2}, old, new) == {"C0": "a1", "C1": "a0"}


def test_claims_to_partitions_that_do_not_exist_count_for_nothing():
    """After a topic was made anew with fewer partitions."""
    two = member("C0", "a", "a0 a7 a8", 1), member("C1", "a", "a1", 1)
    assert assigned("sticky", {"a": 2}, *two) == {"C0": "a0", "C1": "a1"}


def test_kafka_asks_former_owners_that_take_no_part_any_more():
    """C0 missed the last generation and now wants b, which it has to itself.

    Kafka's assignor, which would like to give a partition of a back to it, ends in a
    NullPointerException.
    """
    members = (
        member("C0", "b", "a0 a1", 1),
        member("C1", "a", "a0 a1 a2 a3", 2),
        member("C2", "a", "", 2),
    )
    with pytest.raises(AssignorError, match="C0, which had a-0, is settled"):
        assigned("cooperative-sticky", {"a": 4, "b": 1}, *members)


def test_kafka_gives_former_owners_back_what_they_no_longer_want():
    """C0 shares c with C3 and so takes part; that it does not want a any more nobody asks."""
    members = (
        member("C0", "b c", "a0 a1", 1),
        member("C1", "a", "a0 a1 a2 a3 a4 a5", 2),
        member("C2", "a", "", 2),
        member("C3", "c", "c0", 2),
    )
    assert assigned("sticky", {"a": 6, "b": 1, "c": 2}, *members) == {
        "C0": "a0 a1 b0", "C1": "a4 a5", "C2": "a2 a3", "C3": "c0 c1",
    }  # fmt: skip
