"""Assignments that the coordinator accepted: what leaders sent with SyncGroup.

The coordinator never reads an assignment; the group's leader writes it in the consumer protocol.
Bytes of another protocol count as an empty assignment.
"""

import base64
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from reference_coordinator.assignors import Assignment, ConsumerProtocolError, Subscription
from reference_coordinator.replay import ObservedRequest
from reports.judgement.logged import Requests

Json = dict[str, Any]
Row = Mapping[str, Any]
Blob = TypeVar("Blob", Subscription, Assignment)

ASSIGNED = """
    group STRING, generation INT, at_ms DOUBLE, topics STRING, partitions STRING
"""
"""Every assignment that was accepted: when, and its partitions (`topic-number`, comma-separated).
`topics` are those that the members of that generation subscribed to, comma-separated."""


@dataclass(slots=True)
class Assignments:
    """The assignments that a group's coordinator accepted, as its requests come in."""

    _subscribed: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    _accepted: list[Json] = field(default_factory=list)

    def add(self, requests: Requests) -> None:
        """Take requests."""
        for seen, error in zip(requests.observed, requests.error_codes, strict=True):
            if error != 0:
                continue
            if seen.api == "JOIN_GROUP":
                self._subscribed[seen.response_fields["generationId"]] |= _topics(seen)
            elif seen.api == "SYNC_GROUP" and seen.request["assignments"]:
                accepted = {
                    "generation": seen.request["generationId"],
                    "at_ms": seen.answered_ms,
                    "partitions": ",".join(sorted(_partitions(seen))),
                }
                self._accepted.append(accepted)

    def rows(self) -> Iterator[Json]:
        """Yield the rows of `ASSIGNED`, without their group."""
        for row in self._accepted:
            yield {**row, "topics": ",".join(sorted(self._subscribed[row["generation"]]))}


def unowned(
    assigned: Iterable[Row],
    observed: Iterable[Row],
    end_ms: float,
    topics: Iterable[str],
    partitions: Mapping[str, int],
) -> list[str]:
    """List the partitions of a group's topics that are assigned to no member at `end_ms`.

    The last assignment accepted by then counts; if a rebalance started after it, no partition is
    assigned. `topics` are the group's topics if it never had an assignment. `partitions` is the
    number of partitions of each topic at `end_ms`.
    """
    last = max((row for row in assigned if row["at_ms"] <= end_ms), key=_accepted_ms, default=None)
    given: set[str] = set()
    if last is not None:
        topics = last["topics"].split(",")
        begun = (row["started_ms"] for row in observed if row["started_ms"] is not None)
        if not any(last["at_ms"] < started_ms <= end_ms for started_ms in begun):
            given = set(last["partitions"].split(","))
    expected = (f"{topic}-{n}" for topic in topics for n in range(partitions.get(topic, 0)))
    return [partition for partition in expected if partition not in given]


def _accepted_ms(row: Row) -> float:
    return float(row["at_ms"])


def _topics(join: ObservedRequest) -> set[str]:
    """Return the topics a member subscribes to, by the protocol that the response names."""
    chosen = join.response_fields.get("protocolName")
    blobs = [one["metadata"] for one in join.request["protocols"] if one["name"] == chosen]
    return {topic for blob in blobs for topic in _topics_of(blob)}


@lru_cache(maxsize=1_000)
def _topics_of(subscription: str) -> tuple[str, ...]:
    """Decode a subscription; the members of a group have the same again and again."""
    return tuple(_read(Subscription, subscription).topics)


def _partitions(sync: ObservedRequest) -> set[str]:
    blobs = [one["assignment"] for one in sync.request["assignments"]]
    return {f"{topic}-{n}" for blob in blobs for topic, n in _read(Assignment, blob).partitions}


def _read(kind: type[Blob], blob: str) -> Blob:
    try:
        return kind.decode(base64.b64decode(blob))
    except (ConsumerProtocolError, ValueError):
        return kind(())
