"""What holds in any group: everything is shared out, evenly, and nobody loses without need."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_coordinator.assignors import ASSIGNORS, Member, Subscription
from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.sticky_data import encode
from tests.reference_coordinator.assignors.histories import History, JoinedGroup

REBALANCES = 4
ENOUGH = 4
"""Rebalances until the cooperative assignor has everything where it shall be, topics differing:
what the first holds back the second may hand to another than it was meant for.
"""
Shares = dict[str, list[TopicPartition]]

in_any_group = settings(max_examples=25, derandomize=True)
randoms = st.integers(0, 2**32 - 1).map(Random)


def rebalances_of(rng, assignor: str, *, alike: bool) -> list[JoinedGroup]:
    """What the leader of a random group receives, rebalance after rebalance."""
    return list(History(rng, assignor, alike=alike).rebalances(REBALANCES))


def shares_of(group: JoinedGroup) -> Shares:
    return ASSIGNORS[group.assignor](group.members, group.partitions)


def owning(member: Member, share: list[TopicPartition], generation: int = 50) -> Member:
    """The member in the next rebalance, if it took its share. It says so in every way there is."""
    owned = tuple(share)
    said = Subscription(member.subscription.topics, encode(owned, generation), owned, generation)
    return replace(member, subscription=said)


def after(group: JoinedGroup, shares: Shares) -> JoinedGroup:
    """The next rebalance, if nothing happens."""
    members = [owning(member, shares[member.member_id]) for member in group.members]
    return replace(group, members=tuple(members))


def quiet(group: JoinedGroup, rebalances: int) -> JoinedGroup:
    """The rebalance after some in which nothing happens."""
    for _ in range(rebalances):
        group = after(group, shares_of(group))
    return group


def wanted(group: JoinedGroup) -> set[TopicPartition]:
    topics = {topic for member in group.members for topic in member.subscription.topics}
    return {
        TopicPartition(topic, number)
        for topic in topics
        for number in range(group.partitions.get(topic, 0))
    }


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
def test_every_subscribed_partition_has_one_subscribed_owner(assignor, alike):
    @in_any_group
    @given(randoms)
    def check(rng):
        for group in rebalances_of(rng, assignor, alike=alike):
            shares = shares_of(group)
            given_out = [partition for share in shares.values() for partition in share]
            assert sorted(given_out) == sorted(wanted(group))
            for member in group.members:
                assert {topic for topic, _ in shares[member.member_id]} <= set(
                    member.subscription.topics
                )

    check()


@pytest.mark.parametrize(
    ("assignor", "alike"), [("roundrobin", True), ("sticky", True), ("sticky", False)]
)
def test_no_member_has_two_more_than_another_that_could_take_one(assignor, alike):
    @in_any_group
    @given(randoms)
    def check(rng):
        for group in rebalances_of(rng, assignor, alike=alike):
            shares = shares_of(group)
            for member in group.members:
                for share in shares.values():
                    if any(topic in member.subscription.topics for topic, _ in share):
                        assert len(share) <= len(shares[member.member_id]) + 1

    check()


@in_any_group
@given(randoms)
def test_equal_subscriptions_lose_no_partition_without_need(rng):
    """All keep up to the smaller size, and one more as many as may have the larger size."""
    for group in rebalances_of(rng, "sticky", alike=True):
        first = after(group, shares_of(group))
        left = first.members[: rng.randint(1, len(first.members))]
        newcomers = [Member(f"new-{n}", Subscription(left[0].subscription.topics)) for n in (1, 2)]
        second = replace(first, members=(*left, *newcomers[: rng.randint(0, 2)]))
        small, more = divmod(sum(group.partitions.values()), len(second.members))
        had = {member.member_id: set(member.subscription.owned) for member in second.members}
        shares = shares_of(second)
        kept = {key: len(had[key] & set(share)) for key, share in shares.items()}
        assert all(kept[key] >= min(len(had[key]), small) for key in had)
        over = sum(len(one) > small for one in had.values())
        assert sum(kept.values()) == sum(min(len(one), small) for one in had.values()) + min(
            over, more
        )


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_an_unchanged_group_moves_no_partition(assignor, alike):
    @in_any_group
    @given(randoms)
    def check(rng):
        for group in rebalances_of(rng, assignor, alike=alike):
            again = quiet(group, rebalances=ENOUGH)
            shares, once_more = shares_of(again), shares_of(after(again, shares_of(again)))
            assert {key: set(share) for key, share in shares.items()} == {
                key: set(share) for key, share in once_more.items()
            }

    check()


@pytest.mark.parametrize("alike", [True, False])
def test_cooperative_partitions_are_revoked_before_they_are_assigned(alike):
    """What a member gets, nobody else has; what one gives up, the next rebalance hands over."""

    @in_any_group
    @given(randoms)
    def check(rng):
        for group in rebalances_of(rng, "cooperative-sticky", alike=alike):
            shares = shares_of(group)
            for member in group.members:
                had = set(member.subscription.owned)
                others = set().union(*(shares[o.member_id] for o in group.members if o != member))
                assert not (had - set(shares[member.member_id])) & others or _outdated(
                    member, group
                )
            settled = shares_of(quiet(group, rebalances=1 if alike else ENOUGH))
            given_out = [partition for share in settled.values() for partition in share]
            assert sorted(given_out) == sorted(wanted(group))

    check()


def _outdated(member: Member, group: JoinedGroup) -> bool:
    """Whether a member's claims do not count: it missed a generation."""
    return member.subscription.generation < max(m.subscription.generation for m in group.members)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
@pytest.mark.parametrize("alike", [True, False])
def test_static_members_keep_their_share_over_a_restart(assignor, alike):
    """New member ids in another order: every instance keeps its partitions (KIP-345)."""

    @in_any_group
    @given(randoms)
    def check(rng):
        for group in rebalances_of(rng, assignor, alike=alike):
            members = [
                replace(member, member_id=f"{rng.random()}-{member.group_instance_id}")
                if member.group_instance_id and rng.random() < 0.7
                else member
                for member in group.members
            ]
            rng.shuffle(members)
            restarted = replace(group, members=tuple(members))
            before, now = shares_of(group), shares_of(restarted)
            assert _by_name(group, before) == _by_name(restarted, now)

    check()


def _by_name(group: JoinedGroup, shares: Shares) -> dict[str, set[TopicPartition]]:
    """Shares by instance id, or by member id where there is none."""
    return {
        member.group_instance_id or member.member_id: set(shares[member.member_id])
        for member in group.members
    }
