"""What a wire member assigns as leader: lawful in any group, and fair.

Random groups go through rebalance after rebalance: members come, go, restart, change what they
want, miss an assignment, and claim what others have.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from loadtest.wire.leader import ASSIGNORS, Member, members_of, shares

COOPERATIVE = "cooperative-sticky"
REBALANCES = 5
SETTLED = 4
"""Rebalances until a cooperative group has everything assigned, if nothing else happens."""

in_any_group = settings(max_examples=30, derandomize=True)
randoms = st.integers(0, 2**32 - 1).map(Random)
Shares = dict[str, list[TopicPartition]]


@dataclass
class Group:
    """A group's members in the order of the leader's response, and its topics' partitions."""

    rng: Random
    alike: bool
    generation: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    version: int = 3
    """Of the subscriptions: before 2 they have no generation."""

    def __post_init__(self) -> None:
        self.version = self.rng.choice([3, 3, 2, 1])
        for number in range(self.rng.randint(1, 4)):
            self.counts[f"t{number}"] = self.rng.choice([1, 2, 3, 8, 13])
        self.members = [self._new() for _ in range(self.rng.randint(1, 8))]

    def _new(self) -> Member:
        taken = {member.group_instance_id for member in self.members}
        instance = self.rng.choice([None, *({f"s-{n}" for n in range(16)} - taken)])
        return Member(self._id(), self._subscription(), instance)

    def _id(self) -> str:
        return f"c-{self.rng.getrandbits(32):08x}"

    def _subscription(self) -> Subscription:
        names = sorted(self.counts) if self.alike else [*self.counts, "absent"]
        return Subscription(
            tuple(names if self.alike else self.rng.sample(names, self.rng.randint(1, len(names))))
        )

    def take(self, shares: Shares, missing: float = 0.0) -> None:
        """Let members take their shares, but for some that miss them, and rejoin."""
        self.generation += 1
        self.members = [
            replace(member, subscription=self._having(member, shares[member.member_id]))
            if self.rng.random() >= missing
            else member
            for member in self.members
        ]
        self.rng.shuffle(self.members)

    def _having(self, member: Member, share: list[TopicPartition]) -> Subscription:
        whole = replace(member.subscription, owned=tuple(share), generation=self.generation)
        return Subscription.decode(whole.encode(self.version))

    def live_on(self) -> None:
        """Let something happen to some members, or to a topic."""
        for _ in range(self.rng.randint(0, 3)):
            place = self.rng.randrange(len(self.members))
            match self.rng.choice(["leave", "join", "grow", "restart", "want"]):
                case "leave" if len(self.members) > 1:
                    del self.members[place]
                case "join":
                    self.members.append(self._new())
                case "grow":
                    self.counts[self.rng.choice(sorted(self.counts))] += 3
                case "restart":
                    fresh = Subscription(self.members[place].subscription.topics)
                    self.members[place] = replace(
                        self.members[place], member_id=self._id(), subscription=fresh
                    )
                case "want":
                    wanted = self._subscription().topics
                    self.members[place] = replace(
                        self.members[place],
                        subscription=replace(self.members[place].subscription, topics=wanted),
                    )


def assigned(assignor: str, group: Group) -> Shares:
    """Let the leader read its members, assign, and write; return what members would read."""
    joined = [
        {
            "memberId": one.member_id,
            "groupInstanceId": one.group_instance_id,
            "metadata": b64encode(one.subscription.encode(group.version)).decode(),
        }
        for one in group.members
    ]
    written = shares(assignor, members_of(joined), group.counts)
    return {key: list(Assignment.decode(blob).partitions) for key, blob in written.items()}


def rebalances(rng: Random, assignor: str, *, alike: bool) -> Iterator[tuple[Group, Shares]]:
    group = Group(rng, alike)
    for _ in range(REBALANCES):
        given_out = assigned(assignor, group)
        yield group, given_out
        group.take(given_out, missing=0.2 if group.version > 1 else 0.0)
        group.live_on()


def due(group: Group) -> set[TopicPartition]:
    topics = {topic for member in group.members for topic in member.subscription.topics}
    return {TopicPartition(topic, n) for topic in topics for n in range(group.counts.get(topic, 0))}


def settled(assignor: str, group: Group) -> tuple[Group, Shares]:
    """Let nothing more happen to a group; return it with the shares that it ends at."""
    quiet = copy(group)
    for _ in range(SETTLED):
        quiet.take(assigned(assignor, quiet))
    return quiet, assigned(assignor, quiet)


def claimed_from(one: Member, group: Group) -> set[TopicPartition]:
    """Return what others of its generation, or a later one, say that they own."""
    return {
        claimed
        for other in group.members
        if other is not one and other.subscription.generation >= one.subscription.generation
        for claimed in other.subscription.owned
    }


@pytest.mark.parametrize("alike", [True, False], ids=["all want the same", "each wants its own"])
@pytest.mark.parametrize("assignor", ASSIGNORS)
@in_any_group
@given(rng=randoms)
def test_each_partition_has_one_owner_that_subscribes_to_it(assignor, alike, rng):
    """A cooperative leader withholds only what a member says that it owns, and not for long."""
    for group, given_out in rebalances(rng, assignor, alike=alike):
        flat = [one for share in given_out.values() for one in share]
        assert len(flat) == len(set(flat))
        owned = {one for member in group.members for one in member.subscription.owned}
        withheld = due(group) - set(flat)
        assert withheld <= (owned if assignor == COOPERATIVE else set())
        for member in group.members:
            share = given_out[member.member_id]
            assert {one.topic for one in share} <= set(member.subscription.topics)
            if assignor == COOPERATIVE:
                new = set(share) - set(member.subscription.owned)
                assert not new & claimed_from(member, group)
        if assignor == COOPERATIVE:
            quiet, shares_then = settled(assignor, group)
            flat = [one for share in shares_then.values() for one in share]
            assert sorted(flat) == sorted(due(quiet))


@pytest.mark.parametrize("assignor", ASSIGNORS)
@in_any_group
@given(rng=randoms)
def test_shares_are_even_where_all_want_the_same_and_stay_where_they_are(assignor, rng):
    """Range shares each topic out evenly, the others all of them."""
    for group, _ in rebalances(rng, assignor, alike=True):
        quiet, given_out = settled(assignor, group)
        sizes = [len(share) for share in given_out.values()]
        assert max(sizes) - min(sizes) <= (len(quiet.counts) if assignor == "range" else 1)
        if assignor == COOPERATIVE:
            before = {one.member_id: set(one.subscription.owned) for one in quiet.members}
            assert {key: set(share) for key, share in given_out.items()} == before


@pytest.mark.parametrize(
    ("assignor", "expected"),
    [
        ("range", {"A": [0, 1], "B": [2, 3], "x": [4, 5]}),
        ("roundrobin", {"A": [0, 3], "B": [1, 4], "x": [2, 5]}),
    ],
)
def test_static_members_keep_their_share_over_a_restart(assignor, expected):
    """New member ids in another order, with a dynamic member between: KIP-345's example."""
    wanted = Subscription(("topic",))
    before = [Member("1", wanted, "A"), Member("x", wanted), Member("2", wanted, "B")]
    after = [Member("2", wanted, "B"), Member("x", wanted), Member("4", wanted, "A")]
    for members in (before, after):
        names = {one.member_id: one.group_instance_id or one.member_id for one in members}
        written = shares(assignor, members, {"topic": 6})
        read = {
            names[key]: [number for _, number in Assignment.decode(blob).partitions]
            for key, blob in written.items()
        }
        assert read == expected


# By instance id first.

FIRST = "instance-first"
SIZES = [(2, 3), (4, 16), (6, 24), (8, 30), (10, 100)]
"""Members, and partitions of the larger of two topics."""


def owners(
    count: int,
    partitions: int,
    without: int | None = None,
    assignor: str = FIRST,
    joined: str = "a",
) -> dict[TopicPartition, str]:
    """Return the instance that has each partition; all member ids come from `joined`."""
    wanted = Subscription(("t", "u"))
    members = [
        Member(f"{Random(f'{joined}{number}').getrandbits(64):x}", wanted, f"static-{number}")
        for number in range(count)
        if number != without
    ]
    names = {one.member_id: str(one.group_instance_id) for one in members}
    Random(joined).shuffle(members)  # the order of a response is not guaranteed (KIP-814)
    written = shares(assignor, members, {"t": partitions, "u": 1})
    return {
        one: names[member_id]
        for member_id, blob in written.items()
        for one in Assignment.decode(blob).partitions
    }


def moved(before: dict[TopicPartition, str], after: dict[TopicPartition, str]) -> int:
    return sum(after[one] != owner for one, owner in before.items())


@pytest.mark.parametrize(("count", "partitions"), SIZES)
def test_nothing_moves_where_the_instances_are_the_same(count, partitions):
    """All member ids are new, another one leads, in any generation."""
    at_first = owners(count, partitions)
    for joined in "bcd":
        assert owners(count, partitions, joined=joined) == at_first


def in_vain(count: int, partitions: int, assignor: str) -> int:
    """Return how many partitions of others move, over all members that may be gone."""
    whole = owners(count, partitions, assignor=assignor)
    had = Counter(whole.values())
    return sum(
        moved(whole, owners(count, partitions, gone, assignor, "b")) - had[f"static-{gone}"]
        for gone in range(count)
    )


@pytest.mark.parametrize(("count", "partitions"), SIZES)
def test_who_was_gone_gets_back_what_it_had(count, partitions):
    """It is back as a new member. Meanwhile nearly all that others have stays, and all is even."""
    whole = owners(count, partitions)
    for gone in range(count):
        sizes = Counter(owners(count, partitions, gone, joined="b").values())
        assert sizes.total() == partitions + 1
        assert len(sizes) == count - 1
        assert max(sizes.values()) - min(sizes.values()) <= 1
    assert owners(count, partitions, joined="c") == whole
    assert count == 2 or 2 * in_vain(count, partitions, FIRST) < in_vain(count, partitions, "range")


@pytest.mark.parametrize(("count", "partitions"), SIZES)
def test_a_topic_that_grows_moves_less_than_ranges_do(count, partitions):
    """Summed up over several sizes: each of them may be lucky for one of the two."""
    grown = [partitions + more for more in (1, 2, count, 2 * count)]
    for_each = {
        assignor: sum(
            moved(owners(count, partitions, assignor=assignor), owners(count, n, assignor=assignor))
            for n in grown
        )
        for assignor in (FIRST, "range")
    }
    assert for_each[FIRST] <= for_each["range"]


def test_a_claim_of_an_earlier_generation_does_not_count_beside_a_later_one():
    """Without another claim it does: its member may not know yet that it has to give up."""
    one = (TopicPartition("t", 0),)
    for late in ("a", "z"):
        stale = Member(late, Subscription(("t",), owned=one, generation=1))
        for owned, has_it in ((one, "m"), ((), late)):
            other = Member("m", Subscription(("t",), owned=owned, generation=2))
            written = shares(COOPERATIVE, [stale, other], {"t": 1})
            read = {key: Assignment.decode(blob).partitions for key, blob in written.items()}
            assert read == {late: (), "m": ()} | {has_it: one}


def test_a_partition_that_two_members_claim_in_one_generation_goes_to_neither_at_once():
    """Each may own it until it hears of the next assignment."""
    both = (TopicPartition("t", 0),)
    members = [Member(name, Subscription(("t",), owned=both, generation=2)) for name in ("a", "b")]
    written = shares(COOPERATIVE, members, {"t": 1})
    assert {Assignment.decode(blob).partitions for blob in written.values()} == {()}
