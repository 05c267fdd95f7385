"""Lies about answers: an error that nothing is a reason for, an offset that is another."""

import json
from collections.abc import Callable, Iterator
from functools import partial

from kafka_protocol.apis import OFFSET_FETCH
from kafka_protocol.errors import Error
from kafka_protocol.request_log import PARTS_MS, header
from selftest.lies.group_lines import (
    FAULTY,
    QUIET,
    GroupLines,
    Json,
    Lie,
    Lines,
    Tell,
    in_the_middle,
    rewritten,
)
from selftest.timing import REFUSED_MS

WRITES = (
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
    Error.UNKNOWN_SERVER_ERROR,
)
"""How a response shows that the write of a record failed."""
OF_HEARTBEATS = (
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
    Error.FENCED_INSTANCE_ID,
    Error.REQUEST_TIMED_OUT,
)
OF_COMMITS = (*OF_HEARTBEATS, Error.INVALID_COMMIT_OFFSET_SIZE)
OF_JOINS = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.REBALANCE_IN_PROGRESS)
WITHOUT_A_FAULT = {
    "HEARTBEAT": (*WRITES, *OF_HEARTBEATS),
    "OFFSET_COMMIT": (*WRITES, *OF_COMMITS),
    "JOIN_GROUP": (*WRITES, *OF_JOINS),
    "SYNC_GROUP": (*WRITES, *OF_JOINS, Error.ILLEGAL_GENERATION),
}
IN_AN_OUTAGE = {
    "HEARTBEAT": (*WRITES, Error.REQUEST_TIMED_OUT),
    "OFFSET_COMMIT": (*WRITES, *OF_COMMITS),
}
OF_ANSWERS = {"JOIN_GROUP": ("unexplained",), "SYNC_GROUP": ("unexplained",)}
"""The doubts by which a refused request shows, where later answers leave several orders."""
OF_FETCHES = ("fetched_offset_differs",)
"""The doubt by which an offset shows beside a hole in the numbers of its connection."""
FETCH_VERSION = 9


def refusals() -> Iterator[Lie]:
    """Yield what refuses a request that was answered without an error."""
    for api, errors in WITHOUT_A_FAULT.items():
        for error in errors:
            tell = in_the_middle(partial(GroupLines.answered, api=api), refusing(error))
            name, doubts = _named(api, error, "without_a_fault"), OF_ANSWERS.get(api, ())
            yield Lie(name, "answers", *QUIET, tell, doubts)
    for api, errors in IN_AN_OUTAGE.items():
        for error in errors:
            tell = in_the_middle(partial(_in_outage, api), refusing(error))
            yield Lie(_named(api, error, "in_an_outage"), "write failures", *FAULTY, tell)
    for api in IN_AN_OUTAGE:
        for error in WRITES:
            tell = partial(_refused_all, api, error)
            yield Lie(_named(api, error, "for_ten_seconds"), "write failures", *FAULTY, tell)


def _in_outage(api: str, log: GroupLines) -> list[int]:
    return log.in_outage(log.answered(api))


def _named(api: str, error: Error, when: str) -> str:
    return f"{api.lower()}_{error.name.lower()}_{when}"


def refusing(error: Error) -> Callable[[GroupLines, int], Lines]:
    """Answer every part of a request with an error."""

    def refuse(logged: Json) -> None:
        response = logged["response"]
        for topic in response.get("topics", ()):
            for part in topic["partitions"]:
                part["errorCode"] = error
        if "errorCode" in response:
            response["errorCode"] = error

    return lambda log, place: [rewritten(log.lines[place], refuse)]


def _refused_all(api: str, error: Error, log: GroupLines) -> Lines | None:
    """Refuse every request of ten seconds within an outage."""
    places = _in_outage(api, log)
    if not places:
        return None
    lines, until_ms = log.lines, log.recorded[places[0]].at_ms + REFUSED_MS
    for place in places:
        if log.recorded[place].at_ms <= until_ms:
            (lines[place],) = refusing(error)(log, place)
    return lines


def fetches() -> Iterator[Lie]:
    """Yield what gives a member that goes on another offset than the one committed last."""
    wrong: dict[str, Callable[[int, int], int]] = {
        "nothing_fetched": lambda *_: -1,
        "older_offset_fetched": lambda _, before: before,
        "first_offset_fetched": lambda *_: 0,
        "newer_offset_fetched": lambda last, _: last + 1_000,
    }
    for name, offset_of in wrong.items():
        for when, runs in (("without_a_fault", QUIET), ("after_failover", FAULTY)):
            yield Lie(f"{name}_{when}", "offsets", *runs, fetching(offset_of), OF_FETCHES)


def fetching(offset_of: Callable[[int, int], int]) -> Tell:
    """Add the OffsetFetch that follows the last SyncGroup of a member that committed before.

    `offset_of` returns what it is answered, given the offset of the partition that was committed
    last, and the one before. The recorded logs have no OffsetFetch, but skip a number for it.
    """

    def tell(log: GroupLines) -> Lines | None:
        for place in reversed(log.answered("SYNC_GROUP")):
            before = _before_a_hole(log, place)
            offsets = _committed(log, before, log.recorded[place].row["client_id"])
            for (topic, partition), (*earlier, last) in reversed(offsets.items()):
                if earlier:
                    offset = offset_of(last, earlier[-1])
                    fetch = partial(_fetch, log.group, topic, partition, offset)
                    return [*log.lines, rewritten(log.lines[before], fetch)]
        return None

    return tell


def _before_a_hole(log: GroupLines, place: int) -> int:
    """Return the request from a place on after which a number of its connection is skipped."""
    number = log.recorded[place].row["correlation_id"]
    for later in log.on_connection(place):
        if log.recorded[later].row["correlation_id"] != number + 1:
            break
        place, number = later, number + 1
    return place


def _committed(log: GroupLines, place: int, client: str) -> dict[tuple[str, int], list[int]]:
    """Return the offsets that a client committed before a place, the latest partition last."""
    offsets: dict[tuple[str, int], list[int]] = {}
    for at in log.answered("OFFSET_COMMIT"):
        row = log.recorded[at].row
        if at < place and row["client_id"] == client:
            for topic in json.loads(row["request"])["topics"]:
                for one in topic["partitions"]:
                    name = topic["name"], one["partitionIndex"]
                    before = dict.fromkeys(offsets.pop(name, ()))
                    before.setdefault(one["committedOffset"])
                    offsets[name] = list(before)
    return offsets


def _fetch(group: str, topic: str, partition: int, offset: int, logged: Json) -> None:
    """Make a logged request an OffsetFetch of one partition."""
    head = logged["requestHeader"]
    head |= header(OFFSET_FETCH, FETCH_VERSION, head["correlationId"] + 1, head["clientId"])
    asked = {"name": topic, "partitionIndexes": [partition]}
    answered = {
        "partitionIndex": partition, "committedOffset": offset, "committedLeaderEpoch": 0,
        "metadata": "", "errorCode": 0,
    }  # fmt: skip
    logged["request"] = {
        "groups": [{"groupId": group, "memberId": None, "memberEpoch": -1, "topics": [asked]}],
        "requireStable": True,
    }
    topics = [{"name": topic, "partitions": [answered]}]
    logged["response"] = {
        "throttleTimeMs": 0,
        "groups": [{"groupId": group, "topics": topics, "errorCode": 0}],
    }
    logged |= dict.fromkeys(PARTS_MS, 0.1) | {"totalTimeMs": 0.5}
