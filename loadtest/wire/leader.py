"""What a leader does: it reads its group's members, watches topics, and writes assignments.

kafka-python computes range, and cooperative-sticky where subscriptions differ. Not round robin: in
kafka-python 3.0 that fails where the members of a group subscribe to different topics. Its
cooperative-sticky takes 6 s for 1,000 members, in which no member of the process sends a heartbeat.
"""

import time
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

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
    assigned = ASSIGNORS[assignor](_in_order(members), counts)
    return {member_id: Assignment(tuple(share)).encode() for member_id, share in assigned.items()}


def _in_order(members: Sequence[Member]) -> list[Member]:
    """Static members by instance id, then dynamic ones by member id (KIP-345)."""
    return sorted(
        members, key=lambda m: (m.group_instance_id is None, m.group_instance_id or m.member_id)
    )


def _round_robin(members: Sequence[Member], counts: Mapping[str, int]) -> Shares:
    """Deal partitions in turn; a member that does not subscribe to a topic stays first in line."""
    shares: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    wanted = {topic for member in members for topic in member.subscription.topics}
    line = deque(members)
    for topic in sorted(wanted):
        for number in range(counts.get(topic, 0)):
            while topic not in line[0].subscription.topics:
                line.rotate(-1)
            shares[line[0].member_id].append(TopicPartition(topic, number))
            line.rotate(-1)
    return shares


@dataclass(frozen=True, slots=True)
class _Topics:
    """What kafka-python's assignors ask of a cluster's metadata."""

    counts: Mapping[str, int]

    def topics(self) -> set[str]:
        return {topic for topic, count in self.counts.items() if count}

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self.counts[topic])) if self.counts.get(topic) else None


def _cooperative_sticky(members: Sequence[Member], counts: Mapping[str, int]) -> Shares:
    """Let members keep what they own, up to an even share, and deal out the rest (KIP-429).

    What another member owns is dealt to nobody: its owner gives it up and the group joins again.
    """
    topics = {tuple(sorted(member.subscription.topics)) for member in members}
    if len(topics) != 1:
        return _BY_KAFKA_PYTHON(members, counts)
    wanted = [
        TopicPartition(topic, n) for topic in topics.pop() for n in range(counts.get(topic, 0))
    ]
    owners = {one: claim[0] if len(claim) == 1 else "" for one, claim in _claims(members).items()}
    least, larger = divmod(len(wanted), len(members))
    shares: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    free: deque[TopicPartition] = deque()
    for one in wanted:
        share = shares.get(owners.get(one, ""))
        if share is None or len(share) > least or (len(share) == least and not larger):
            free.append(one)
            continue
        larger -= len(share) == least
        share.append(one)
    for share in shares.values():
        size = max(len(share), least)
        if larger and size == least:
            size, larger = least + 1, larger - 1
        share += [free.popleft() for _ in range(size - len(share))]
    return {
        member_id: [one for one in share if owners.get(one, member_id) == member_id]
        for member_id, share in shares.items()
    }


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


def _by(assignor: Any) -> Callable[[Sequence[Member], Mapping[str, int]], Shares]:
    """Let an assignor of kafka-python compute the shares.

    It would withhold a partition of two claims from the one that counts, too.
    """

    def assign(members: Sequence[Member], counts: Mapping[str, int]) -> Shares:
        claims = _claims(members)
        assigned = assignor().assign(_Topics(counts), [_known(one, claims) for one in members])
        return {
            member_id: [
                TopicPartition(topic, number)
                for topic, numbers in assignment.assigned_partitions
                for number in numbers
            ]
            for member_id, assignment in assigned.items()
        }

    return assign


def _known(member: Member, claims: Mapping[TopicPartition, Sequence[str]]) -> SimpleNamespace:
    """Return a member as kafka-python's assignors know it, with the claims that count."""
    said = member.subscription
    metadata = ConsumerProtocolSubscription(
        topics=list(said.topics),
        user_data=said.user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=one.topic, partitions=[one.partition])
            for one in said.owned
            if member.member_id in claims[one]
        ],
        generation_id=said.generation,
    )
    return SimpleNamespace(
        member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=metadata
    )


_BY_KAFKA_PYTHON = _by(CooperativeStickyAssignor)
ASSIGNORS: Mapping[str, Callable[[Sequence[Member], Mapping[str, int]], Shares]] = {
    "range": _by(RangePartitionAssignor),
    "roundrobin": _round_robin,
    "cooperative-sticky": _cooperative_sticky,
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
