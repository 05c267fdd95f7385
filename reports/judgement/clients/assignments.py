"""Assignments that the coordinator accepted: what leaders sent with SyncGroup.

The coordinator never reads an assignment; the group's leader writes it in the consumer protocol.
Bytes of another protocol count as an empty assignment, and are not judged.

An assignment gives no partition to two members, and gives every partition of the topics that its
members subscribe to. A cooperative one withholds what another member has to give up first (KIP-429,
`AbstractStickyAssignor`): only what a member of that generation says that it owns.
"""

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from math import inf
from typing import TypeVar

from kafka_protocol.consumer_protocol import (
    Assignment,
    ConsumerProtocolError,
    Subscription,
    TopicPartition,
)
from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach, breach
from reports.judgement.logged import Requests
from reports.judgement.rows import Json
from reports.judgement.run_context import RunContext
from reports.timing import TOPIC_KNOWN_MS

Blob = TypeVar("Blob", Subscription, Assignment)

EAGER = ("range", "roundrobin", "sticky")
"""The assignors of Kafka's clients whose members give everything up before they join again. Those
under other names may be cooperative, as `stream` of Kafka Streams is (KIP-429)."""
COOPERATIVE = ("cooperative-sticky",)
"""The assignors of the cooperative protocol (KIP-429), under librdkafka as under Java."""
ASSIGNORS = EAGER + COOPERATIVE
"""Those of Kafka's clients, by the names under which members propose them."""
SHOWN = 5  # how many partitions a breach names


ASSIGNED = """
    group STRING, generation INT, at_ms DOUBLE, topics STRING, partitions STRING
"""
"""Every assignment that was accepted: when, and its partitions (`topic-number`, comma-separated).
`topics` are those that the members of that generation subscribed to, comma-separated."""


@dataclass(slots=True)
class Subscribed:
    """What the members of one generation said when they joined."""

    topics: set[str] = field(default_factory=set)
    owned: set[TopicPartition] = field(default_factory=set)
    assignor: str = ""
    broker: str = ""  # which coordinator it joined
    is_assigned: bool = False
    """Whether its leader's assignment was accepted: the coordinator ignores any later one."""


@dataclass(slots=True)
class Assignments:
    """The assignments that a group's coordinator accepted, as its requests come in.

    In an outage a leader may not know its topics: nothing is missing then. In the first
    TOPIC_KNOWN_MS of the group it may not know one at all: that is not proven. A topic that is
    deleted is not due from then on; members of some clients go on to subscribe to it.
    """

    context: RunContext
    _subscribed: dict[int, Subscribed] = field(default_factory=lambda: defaultdict(Subscribed))
    _last: tuple[Json, Subscribed] | None = None  # the last assignment that was accepted
    _first_ms: float = inf  # when the first JoinGroup was answered

    def add(self, requests: Requests) -> Iterator[tuple[str, Json]]:
        """Take requests; yield rows of `breaches` and `assigned`, each with its table's name."""
        for seen, error in zip(requests.observed, requests.error_codes, strict=True):
            if error == 0 and seen.api == "JOIN_GROUP":
                self._join(seen)
            elif error == 0 and seen.api == "SYNC_GROUP" and seen.request["assignments"]:
                yield from self._accepted(seen)

    def end(self) -> Iterator[tuple[str, Json]]:
        """Yield the row of the last assignment: no member of its generation joins any more."""
        if self._last is not None:
            row, of = self._last
            yield "assigned", {**row, "topics": ",".join(sorted(of.topics))}
            self._last = None

    def _accepted(self, seen: ObservedRequest) -> Iterator[tuple[str, Json]]:
        """Take an assignment; forget the generations before."""
        yield from self.end()
        generation = seen.request["generationId"]
        for before in [one for one in self._subscribed if one < generation]:
            del self._subscribed[before]
        of = self._subscribed[generation]
        shares = [read(Assignment, one["assignment"]) for one in seen.request["assignments"]]
        given = Counter(chain.from_iterable(one.partitions for one in shares if one))
        row = {
            "generation": generation,
            "at_ms": seen.answered_ms,
            "partitions": ",".join(sorted(map(named, given))),
        }
        self._last = row, of
        if None not in shares and not of.is_assigned:
            yield from (("breaches", found) for found in self._judged(seen, given, of))
        of.is_assigned = True

    def _join(self, seen: ObservedRequest) -> None:
        joined = seen.response_fields
        generation = joined["generationId"]
        self._first_ms = min(self._first_ms, seen.answered_ms)
        of = self._subscribed[generation]
        if of.broker != seen.broker and not of.is_assigned:
            # a coordinator that did not store a generation; the next one gives its number again
            of = self._subscribed[generation] = Subscribed()
        of.broker = seen.broker
        of.assignor = joined.get("protocolName") or ""
        for one in seen.request["protocols"]:
            if one["name"] == of.assignor:
                said = subscription_in(one["metadata"])
                of.topics.update(said.topics)
                of.owned.update(said.owned)

    def _judged(
        self, seen: ObservedRequest, given: Mapping[TopicPartition, int], of: Subscribed
    ) -> Iterator[Json]:
        row = partial(breach, at_ms=seen.answered_ms, shown_by=seen)
        twice = [one for one, times in given.items() if times > 1]
        if twice:
            yield row(
                Breach.ASSIGNED_TWICE,
                expected="each partition is assigned to one member",
                observed=f"{_are(twice)} assigned to more than one",
            )
        in_outage = any(one.has(seen.answered_ms) for one in self.context.outages)
        if of.assignor not in ASSIGNORS or in_outage:
            return
        gone = {
            name for name, one in self.context.deleted.items() if seen.answered_ms >= one.from_ms
        }
        topics = sorted(of.topics - gone)
        withheld = of.owned if of.assignor in COOPERATIVE else frozenset()
        due = (
            TopicPartition(topic, number)
            for topic in topics
            for number in range(self.context.partitions.get(topic, 0))
        )
        missing = [one for one in due if one not in given and one not in withheld]
        if missing:
            names = {one.topic for one in missing}
            early = seen.answered_ms <= self._first_ms + TOPIC_KNOWN_MS
            yield row(
                Breach.NOT_ASSIGNED,
                proven=not (early and names.isdisjoint(one.topic for one in given)),
                expected=f"every partition of {', '.join(topics)} is assigned",
                observed=f"{_are(missing)} assigned to no member",
            )


@lru_cache(maxsize=1_000)
def subscription_in(blob: str) -> Subscription:
    """Decode a subscription; the members of a group have the same again and again."""
    return read(Subscription, blob) or Subscription(())


def read(kind: type[Blob], blob: str) -> Blob | None:
    """Decode bytes of the consumer protocol; None if they are of another."""
    try:
        return kind.decode(base64.b64decode(blob))
    except (ConsumerProtocolError, ValueError):
        return None


def named(partition: TopicPartition) -> str:
    """Write a partition as `topic-number`."""
    return f"{partition.topic}-{partition.partition}"


def listed(names: Sequence[str]) -> str:
    """List partitions, the first few by name."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _are(partitions: Iterable[TopicPartition]) -> str:
    names = [*map(named, sorted(partitions))]
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'}"
