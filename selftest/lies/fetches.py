"""Lies about committed offsets: a member that goes on gets another offset than the last one."""

import json
from collections.abc import Callable, Iterator

from kafka_protocol.apis import OFFSET_FETCH, ApiKey
from selftest.lies.answers import FAULTY, QUIET
from selftest.lies.group_lines import GroupLines, Json, Lie, Lines, rewritten

Partition = tuple[str, int]
VERSION = 9


def fetching(offset_of: Callable[[int, int], int]) -> Callable[[GroupLines], Lines | None]:
    """Add the OffsetFetch that follows the last SyncGroup of a member that committed before.

    `offset_of` returns what it is answered, given the offset of the partition that was committed
    last, and the one before. The recorded logs have no OffsetFetch, but skip a number for it.
    """

    def tell(log: GroupLines) -> Lines | None:
        for place in reversed(log.answered("SYNC_GROUP")):
            before = _before_a_hole(log, place)
            found = _committed(log, before, log.recorded[place].row["client_id"])
            if found is not None:
                asked, last, earlier = found
                offset = offset_of(last, earlier)
                fetch = lambda logged: _fetch(logged, log.group, asked, offset)  # noqa: B023
                return [*log.lines, rewritten(log.lines[before], fetch)]
        return None

    return tell


def _before_a_hole(log: GroupLines, place: int) -> int:
    """Return the request from a place on after which a number of its connection is skipped."""
    row = log.recorded[place].row
    rows = {
        line.row["correlation_id"]: at
        for at, line in enumerate(log.recorded)
        if line.request is not None and line.row["connection"] == row["connection"]
    }
    number = row["correlation_id"]
    while number + 1 in rows:
        number += 1
    return rows[number]


def _committed(log: GroupLines, place: int, client: str) -> tuple[Partition, int, int] | None:
    """Find what a client committed last before a place; return the last two offsets of it."""
    offsets: dict[Partition, list[int]] = {}
    for at in log.answered("OFFSET_COMMIT"):
        row = log.recorded[at].row
        if at < place and row["client_id"] == client:
            for topic in json.loads(row["request"])["topics"]:
                for one in topic["partitions"]:
                    name = topic["name"], one["partitionIndex"]
                    offsets[name] = [*offsets.pop(name, ()), one["committedOffset"]]
    for name in reversed(offsets):
        *before, last = dict.fromkeys(offsets[name])
        if before:
            return name, last, before[-1]
    return None


def _fetch(logged: Json, group: str, partition: Partition, offset: int) -> None:
    name, number = partition
    logged["requestHeader"] |= {
        "requestApiKey": int(ApiKey.OFFSET_FETCH),
        "requestApiVersion": VERSION,
        "correlationId": logged["requestHeader"]["correlationId"] + 1,
        "requestApiKeyName": OFFSET_FETCH,
    }
    asked = {"name": name, "partitionIndexes": [number]}
    answered = {
        "partitionIndex": number, "committedOffset": offset, "committedLeaderEpoch": 0,
        "metadata": "", "errorCode": 0,
    }  # fmt: skip
    logged["request"] = {
        "groups": [{"groupId": group, "memberId": None, "memberEpoch": -1, "topics": [asked]}],
        "requireStable": True,
    }
    topics = [{"name": name, "partitions": [answered]}]
    logged["response"] = {
        "throttleTimeMs": 0,
        "groups": [{"groupId": group, "topics": topics, "errorCode": 0}],
    }
    parts = ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs",
             "sendTimeMs")  # fmt: skip
    logged |= dict.fromkeys(parts, 0.1) | {"totalTimeMs": 0.5}


def _lies() -> Iterator[Lie]:
    wrong: dict[str, Callable[[int, int], int]] = {
        "nothing_fetched": lambda *_: -1,
        "older_offset_fetched": lambda _, before: before,
        "first_offset_fetched": lambda *_: 0,
        "newer_offset_fetched": lambda last, _: last + 1_000,
    }
    for name, offset_of in wrong.items():
        yield Lie(f"{name}_without_a_fault", "offsets", *QUIET, fetching(offset_of))
        yield Lie(f"{name}_after_failover", "offsets", *FAULTY, fetching(offset_of))


FETCHES = tuple(_lies())
