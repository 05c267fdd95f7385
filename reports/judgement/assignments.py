"""Whose the partitions are, as the coordinator has it: what leaders hand in with SyncGroup.

The coordinator itself never reads an assignment; it is written by the group's leader in the
consumer protocol. Where a blob is of another protocol it gives nobody anything.
"""

import base64
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from reference_coordinator.assignors import Assignment, ConsumerProtocolError, Subscription
from reports.judgement.members import Request

Json = dict[str, Any]
Row = Mapping[str, Any]
Blob = TypeVar("Blob", Subscription, Assignment)

ASSIGNED = """
    group STRING, generation INT, at_ms DOUBLE, topics STRING, partitions STRING
"""
"""Every assignment that was taken, when, and of which partitions (`topic-number`, with commas).
`topics` are those that members subscribed to when they joined that generation, with commas."""


def assigned(requests: Iterable[Request]) -> Iterator[Json]:
    """Yield every assignment that the coordinator took, without its group."""
    wanted: dict[int, set[str]] = defaultdict(set)
    taken: list[Request] = []
    for one in requests:
        if one.told["error_code"] != 0:
            continue
        if one.told["api"] == "JOIN_GROUP":
            wanted[one.response["generationId"]] |= _topics(one)
        elif one.told["api"] == "SYNC_GROUP" and one.request["assignments"]:
            taken.append(one)
    for one in taken:
        generation = one.request["generationId"]
        yield {
            "generation": generation,
            "at_ms": one.told["answered_ms"],
            "topics": ",".join(sorted(wanted[generation])),
            "partitions": ",".join(sorted(_partitions(one))),
        }


def unowned(
    assigned: Iterable[Row],
    observed: Iterable[Row],
    end_ms: float,
    topics: Iterable[str],
    partitions: Mapping[str, int],
) -> list[str]:
    """List the partitions of a group's topics that nobody has at a time.

    What counts is the last assignment taken by then; once another rebalance has begun, nobody has
    anything. `topics` are those of a group that never had an assignment, `partitions` tells how
    many each topic has at that time.
    """
    last = max((row for row in assigned if row["at_ms"] <= end_ms), key=_taken_ms, default=None)
    given: set[str] = set()
    if last is not None:
        topics = last["topics"].split(",")
        begun = (row["started_ms"] for row in observed if row["started_ms"] is not None)
        if not any(last["at_ms"] < started_ms <= end_ms for started_ms in begun):
            given = set(last["partitions"].split(","))
    wanted = (f"{topic}-{n}" for topic in topics for n in range(partitions.get(topic, 0)))
    return [partition for partition in wanted if partition not in given]


def _taken_ms(row: Row) -> float:
    return float(row["at_ms"])


def _topics(join: Request) -> set[str]:
    """Name what a member subscribes to, by the protocol that it was answered with."""
    chosen = join.response.get("protocolName")
    blobs = [one["metadata"] for one in join.request["protocols"] if one["name"] == chosen]
    return {topic for blob in blobs for topic in _read(Subscription, blob).topics}


def _partitions(sync: Request) -> set[str]:
    blobs = [one["assignment"] for one in sync.request["assignments"]]
    return {f"{topic}-{n}" for blob in blobs for topic, n in _read(Assignment, blob).partitions}


def _read(kind: type[Blob], blob: str) -> Blob:
    try:
        return kind.decode(base64.b64decode(blob))
    except (ConsumerProtocolError, ValueError):
        return kind(())
