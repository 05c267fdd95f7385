"""The example of KIP-345 why the leader receives instance ids: A, B and C, nine partitions."""

import pytest

from reference_coordinator.assignors import ASSIGNORS, Member, Subscription
from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.sticky_data import encode

PARTITIONS = {"topic": 9}
WANTED = Subscription(("topic",))


def shares(*members: Member) -> dict[str, list[int]]:
    """The numbers of the partitions that each member gets."""
    assigned = ASSIGNORS["range"](members, PARTITIONS)
    return {key: [number for _, number in share] for key, share in assigned.items()}


def test_without_instance_ids_a_restart_shuffles_everything():
    """The member with id 1 comes back with id 4, and all get what another had."""
    before = shares(Member("1", WANTED), Member("2", WANTED), Member("3", WANTED))
    assert before == {"1": [0, 1, 2], "2": [3, 4, 5], "3": [6, 7, 8]}
    after = shares(Member("2", WANTED), Member("3", WANTED), Member("4", WANTED))
    assert after == {"2": [0, 1, 2], "3": [3, 4, 5], "4": [6, 7, 8]}


def test_with_instance_ids_everybody_has_the_same_after_a_restart():
    b, c = Member("2", WANTED, "B"), Member("3", WANTED, "C")
    assert shares(Member("1", WANTED, "A"), b, c) == {
        "1": [0, 1, 2], "2": [3, 4, 5], "3": [6, 7, 8],
    }  # fmt: skip
    assert shares(b, c, Member("4", WANTED, "A")) == {
        "4": [0, 1, 2], "2": [3, 4, 5], "3": [6, 7, 8],
    }  # fmt: skip


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_sticky_assignor_needs_no_instance_id_for_that(assignor):
    """The others keep what they have, and what is left is what A had."""
    members = [Member("4", WANTED), Member("2", having(3, 4, 5)), Member("3", having(6, 7, 8))]
    assigned = ASSIGNORS[assignor](members, PARTITIONS)
    assert {key: sorted(number for _, number in share) for key, share in assigned.items()} == {
        "4": [0, 1, 2], "2": [3, 4, 5], "3": [6, 7, 8],
    }  # fmt: skip


def having(*numbers: int) -> Subscription:
    """A subscription of generation 5 that says in both ways what its member has."""
    owned = tuple(TopicPartition("topic", number) for number in numbers)
    return Subscription(("topic",), encode(owned, 5), owned, 5)
