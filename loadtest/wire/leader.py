"""What a leader does: it reads its group's members, watches topics, and writes assignments.

Not by kafka-python's assignors: round robin of 3.0 fails where members want different topics, and
cooperative-sticky takes 6 s for 1,000 members, in which no member of the process sends a heartbeat.
"""

import time
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from heapq import heappush, heapreplace
from itertools import islice

from kafka_protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from kafka_protocol.errors import BrokerError, Error, name_of
from loadtest.timing import UNCLEAR_S
from loadtest.wire.member import JoinedMembers, WireMember

Shares = Mapping[str, Sequence[TopicPartition]]
"""Partitions by member id."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member, as a JoinGroup response tells its leader."""

    member_id: str
    subscription: Subscription
    group_instance_id: str | None = None


def members_of(joined: JoinedMembers) -> list[Member]:
    """Read the members of a leader's JoinGroup response. Raises ConsumerProtocolError."""
    return [
        Member(
            str(one["memberId"]),
            Subscription.decode(b64decode(one["metadata"])),
            one.get("groupInstanceId"),
        )
        for one in joined
    ]


def shares(assignor: str, members: Sequence[Member], counts: Mapping[str, int]) -> dict[str, bytes]:
    """Return the assignment of each member, by member id; `counts` are partitions by topic."""
    # static members by instance id, then dynamic ones by member id (KIP-345)
    place = lambda m: (m.group_instance_id is None, m.group_instance_id or m.member_id)
    assigned = ASSIGNORS[assignor](sorted(members, key=place), counts)
    return {member_id: Assignment(tuple(share)).encode() for member_id, share in assigned.items()}


def _range(members: Sequence[Member], counts: Mapping[str, int]) -> Shares:
    """Give each member that wants a topic a range of its partitions; the first get one more."""
    shares = _empty(members)
    for topic in sorted(topics_of(members)):
        takers = [one.member_id for one in members if topic in one.subscription.topics]
        least, larger = divmod(counts.get(topic, 0), len(takers))
        numbers = iter(range(counts.get(topic, 0)))
        for place, taker in enumerate(takers):
            size = least + (place < larger)
            shares[taker] += [TopicPartition(topic, n) for n in islice(numbers, size)]
    return shares


def _round_robin(members: Sequence[Member], counts: Mapping[str, int]) -> Shares:
    """Deal partitions in turn; a member that does not subscribe to a topic stays first in line."""
    shares, line = _empty(members), deque(members)
    for one in _partitions(members, counts):
        while one.topic not in line[0].subscription.topics:
            line.rotate(-1)
        shares[line[0].member_id].append(one)
        line.rotate(-1)
    return shares


def _instance_first(members: Sequence[Member], counts: Mapping[str, int]) -> Shares:
    """Give each partition to who ranks first for it, of those that are not full.

    Ranks are hashes of instance ids and partitions, and nothing else decides: new member ids move
    nothing, and neither does a member that was gone, once it is back. Shares are even where all
    want the same. Never shipped: KIP-345 has an assignor by instance id among its future work.
    """
    shares = _empty(members)
    takers = {
        topic: {
            one.member_id: _hash(one.group_instance_id or one.member_id)
            for one in members
            if topic in one.subscription.topics
        }
        for topic in topics_of(members)
    }
    partitions = sorted(_partitions(members, counts), key=lambda one: (one.partition, one.topic))
    least, larger = divmod(len(partitions), max(1, len(members)))
    for one in partitions:
        of_topic, key = takers[one.topic], _hash(f"{one.topic}-{one.partition}")
        most = least + (larger > 0)
        if not (free := [taker for taker in of_topic if len(shares[taker]) < most]):
            fewest = min(len(shares[taker]) for taker in of_topic)
            free = [taker for taker in of_topic if len(shares[taker]) == fewest]
        first = max(free, key=lambda taker: of_topic[taker] * key % _PRIME)
        larger -= len(shares[first]) == least
        shares[first].append(one)
    return shares


_PRIME = 2**61 - 1
"""Products of hashes modulo a prime are hashes of pairs, each as cheap as a product."""


def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) % _PRIME


def _cooperative_sticky(members: Sequence[Member], counts: Mapping[str, int]) -> Shares:
    """Let members keep what they own, deal out the rest, and level what is uneven (KIP-429).

    What another member owns is dealt to nobody: its owner gives it up and the group joins again.
    """
    topics = {member.member_id: frozenset(member.subscription.topics) for member in members}
    owners = {one: claim[0] if len(claim) == 1 else "" for one, claim in _claims(members).items()}
    # dicts as ordered sets: the search of a list for what moves would hold up all heartbeats
    shares = {member_id: dict[TopicPartition, None]() for member_id in topics}
    free = dict[TopicPartition, None]()
    for one in _partitions(members, counts):
        owner = owners.get(one, "")
        (shares[owner] if one.topic in topics.get(owner, ()) else free)[one] = None
    shortest = _shortest(topics, shares)
    for one in free:
        shares[shortest(one.topic)][one] = None
    is_level = False
    while not is_level:
        is_level, shortest = True, _shortest(topics, shares)
        for giver in sorted(shares, key=lambda member_id: -len(shares[member_id])):
            for one in reversed(list(shares[giver])):
                taker = shortest(one.topic)
                if len(shares[giver]) - len(shares[taker]) > 1:
                    del shares[giver][one]
                    shares[taker][one] = None
                    is_level = False
    return {
        member_id: [one for one in share if owners.get(one, member_id) == member_id]
        for member_id, share in shares.items()
    }


def _shortest(
    topics: Mapping[str, Collection[str]], shares: Mapping[str, Collection[TopicPartition]]
) -> Callable[[str], str]:
    """Return what finds the member with the shortest share, of those that want a topic.

    It may miss shares that become shorter meanwhile.
    """
    lines: dict[str, list[tuple[int, int, str]]] = {}
    for place, (member_id, wanted) in enumerate(topics.items()):
        for topic in wanted:
            heappush(lines.setdefault(topic, []), (len(shares[member_id]), place, member_id))

    def first(topic: str) -> str:
        line = lines[topic]
        while line[0][0] != (size := len(shares[line[0][2]])):
            heapreplace(line, (size, *line[0][1:]))
        return line[0][2]

    return first


def _claims(members: Sequence[Member]) -> Mapping[TopicPartition, Sequence[str]]:
    """Return which members claim each partition; a claim of an earlier generation does not count.

    So it is in Java from 3.4.1 on (KAFKA-14639).
    """
    latest: dict[TopicPartition, tuple[int, list[str]]] = {}
    for member in members:
        generation = member.subscription.generation
        for one in member.subscription.owned:
            known, claim = latest.get(one, (generation, []))
            if generation > known:
                known, claim = generation, []
            if generation == known:
                claim.append(member.member_id)
            latest[one] = known, claim
    return {one: claim for one, (_, claim) in latest.items()}


def _empty(members: Iterable[Member]) -> dict[str, list[TopicPartition]]:
    return {member.member_id: [] for member in members}


def topics_of(members: Iterable[Member]) -> set[str]:
    """Return the topics that any member wants."""
    return {topic for member in members for topic in member.subscription.topics}


def _partitions(members: Iterable[Member], counts: Mapping[str, int]) -> Iterator[TopicPartition]:
    """Yield all partitions that members want, in order."""
    for topic in sorted(topics_of(members)):
        yield from (TopicPartition(topic, number) for number in range(counts.get(topic, 0)))


ASSIGNORS: Mapping[str, Callable[[Sequence[Member], Mapping[str, int]], Shares]] = {
    "range": _range,
    "roundrobin": _round_robin,
    "cooperative-sticky": _cooperative_sticky,
    "instance-first": _instance_first,
}
"""All assignors of a wire member, by the names under which members propose them."""


class Topics:
    """The partition counts that a leader saw last, asked for again once they are old.

    `on_error` gets a text for each topic whose partitions cannot be seen, for want of a permission
    for example.
    """

    def __init__(self, max_age_s: float, on_error: Callable[[str], None]) -> None:
        self._max_age_s = max_age_s
        self._on_error = on_error
        self._wanted: set[str] = set()
        self._counts: dict[str, int] = {}
        self._ask_again_s = 0.0

    def counts_of(self, topics: Collection[str], member: WireMember) -> Mapping[str, int]:
        """Ask for the partitions of all topics of a group; those that do not exist are left out."""
        self._wanted = set(topics)
        self._ask(member)
        return self._counts

    def changed(self, member: WireMember) -> bool:
        """Whether what the leader knew has changed; asks only when its knowledge is old."""
        if not self._wanted or time.monotonic() < self._ask_again_s:
            return False
        before = self._counts
        self._ask(member)
        return before != self._counts

    def _ask(self, member: WireMember) -> None:
        answer = member.ask(
            "METADATA",
            topics=[{"name": topic} for topic in sorted(self._wanted)],
            allowAutoTopicCreation=False,
            includeClusterAuthorizedOperations=False,
            includeTopicAuthorizedOperations=False,
        )
        found: dict[str, int] = {}
        age_s = self._max_age_s
        for topic in answer["topics"]:
            name, error, count = topic["name"], int(topic["errorCode"]), len(topic["partitions"])
            if error == Error.NONE or count:
                found[name] = count
            elif error != BrokerError.UNKNOWN_TOPIC_OR_PARTITION:
                self._on_error(f"topic {name}: {name_of(error)}")
                age_s = min(age_s, UNCLEAR_S)
                if name in self._counts:
                    found[name] = self._counts[name]
        self._counts, self._ask_again_s = found, time.monotonic() + age_s
