"""Owners of partitions: the assignments that leaders send, and partitions without owner."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.assignors import Assignment, Subscription, TopicPartition
from reports.judgement.assignments import Assignments, unowned
from reports.judgement.logged import REQUEST, Requests
from tests.reports.page_run import ZERO_MS, MadeUpRun, made_up

Json = dict[str, Any]
PARTITIONS = {"orders": 3, "more": 1}


Row = tuple[Any, ...]


def request_of(api: str, at_ms: float, request: Json, response: Json) -> Row:
    values = dict.fromkeys(REQUEST, "x")
    times = dict.fromkeys(("earliest_ms", "at_ms", "latest_ms", "answered_ms"), at_ms)
    texts = {"request": json.dumps(request), "response": json.dumps(response)}
    row = {**values, **times, **texts, "error_code": response["errorCode"], "api": api}
    return tuple(row.values())


def assigned(requests: list[Row]) -> list[Json]:
    """Return the rows of all requests, which come in one by one."""
    assignments = Assignments()
    for request in requests:
        assignments.add(Requests.decoded([request]))
    return list(assignments.rows())


def join(generation: int, *topics: str, error: int = 0, at_ms: float = 1.0) -> Row:
    blob = base64.b64encode(Subscription(topics).encode()).decode()
    other = base64.b64encode(Subscription(("unchosen",)).encode()).decode()
    protocols = [{"name": "roundrobin", "metadata": other}, {"name": "range", "metadata": blob}]
    response = {"errorCode": error, "generationId": generation, "protocolName": "range"}
    return request_of("JOIN_GROUP", at_ms, {"protocols": protocols}, response)


def blob(*partitions: tuple[str, int]) -> str:
    share = Assignment(tuple(TopicPartition(*partition) for partition in partitions))
    return base64.b64encode(share.encode()).decode()


def sync(generation: int, *shares: str, error: int = 0, at_ms: float = 2.0) -> Row:
    assignments = [{"memberId": str(n), "assignment": share} for n, share in enumerate(shares)]
    request = {"generationId": generation, "assignments": assignments}
    return request_of("SYNC_GROUP", at_ms, request, {"errorCode": error})


def test_an_assignment_is_the_leader_s_sync_group_that_succeeded() -> None:
    whole = sync(1, blob(("orders", 0), ("orders", 2)), blob(("orders", 1)))
    refused = sync(1, blob(("orders", 0)), error=Error.REBALANCE_IN_PROGRESS)
    follower = sync(1)
    assert assigned([join(1, "orders"), refused, whole, follower]) == [
        {
            "generation": 1,
            "at_ms": 2.0,
            "topics": "orders",
            "partitions": "orders-0,orders-1,orders-2",
        }
    ]


def test_topics_are_those_of_all_members_of_the_generation() -> None:
    joins = [join(1, "orders"), join(1, "more", at_ms=9.0), join(2, "other")]
    refused = join(1, "refused", error=Error.FENCED_INSTANCE_ID)
    (row,) = assigned([*joins, refused, sync(1, blob(("orders", 0)))])
    assert row["topics"] == "more,orders"


def test_a_blob_of_another_protocol_gives_nobody_anything() -> None:
    (row,) = assigned([join(1, "orders"), sync(1, "c2hhcmU=", "", blob(("orders", 1)))])
    assert row["partitions"] == "orders-1"


FIRST = {"generation": 1, "at_ms": 10.0, "topics": "orders", "partitions": "orders-0,orders-1"}
SECOND = FIRST | {"generation": 2, "at_ms": 20.0, "partitions": "orders-0,orders-1,orders-2"}


@pytest.mark.parametrize(
    ("rows", "starts", "end_ms", "left"),
    [
        ([FIRST], [5.0], 99.0, ["orders-2"]),
        ([SECOND, FIRST], [5.0, 15.0], 99.0, []),
        ([SECOND, FIRST], [5.0, 15.0], 14.0, ["orders-2"]),
        ([FIRST], [5.0, 15.0], 99.0, ["orders-0", "orders-1", "orders-2"]),
        ([FIRST], [5.0, 15.0], 14.0, ["orders-2"]),
        ([FIRST], [None, 5.0], 99.0, ["orders-2"]),
        ([], [], 99.0, ["more-0"]),
    ],
)
def test_partitions_without_owner_after_the_last_assignment(
    rows: list[Json], starts: list[float | None], end_ms: float, left: list[str]
) -> None:
    observed = [{"started_ms": started_ms} for started_ms in starts]
    assert unowned(rows, observed, end_ms, ("more",), PARTITIONS) == left


# in the verdict


GROWTH = [
    {"event": "intent", "fault_id": "f9.1", "fault": "topic.add-partitions", "cause": None,
     "target": "orders", "group": None, "args": {"topic": "orders", "to": 10}, "kind": "one-shot"},
    {"event": "injected", "fault_id": "f9.1"},
    {"event": "verified", "fault_id": "f9.1", "verified": True, "witness": "the brokers"},
]  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> MadeUpRun:
    """A run whose static group has all that there was of its topic, and is to have all."""
    made = made_up(tmp_path / "run")
    made.owners = "  - {group: static, unowned: 0}\n"
    partitions = ",".join(f"orders-{number}" for number in range(made.size))
    row = {"group": "static", "generation": 1, "topics": "orders", "partitions": partitions}
    made.assigned.append(row | {"at_ms": ZERO_MS + 4_000})
    return made


def test_a_group_that_owns_its_topics_is_as_expected(made: MadeUpRun) -> None:
    _, verdict, *_ = made.finish()
    assert verdict["verdict"] == "pass"
    assert verdict["groups"]["static"]["unowned"] == []
    assert verdict["groups"]["dynamic"]["unowned"] is None


def test_partitions_that_were_added_and_given_to_nobody_make_it_fail(made: MadeUpRun) -> None:
    made.journal[3:3] = [{"at_ms": ZERO_MS + 20_000, **entry} for entry in GROWTH]
    _, verdict, *_ = made.finish()
    assert verdict["verdict"] == "fail"
    assert verdict["groups"]["static"]["unowned"] == ["orders-8", "orders-9"]
    assert verdict["expectations_unmet"] == [
        {
            "group": "static",
            "phase": "the end",
            "what": "partitions without owner",
            "expected": "0",
            "observed": 2,
        }
    ]


def test_partitions_that_nobody_added_after_all_are_not_missed(made: MadeUpRun) -> None:
    made.journal[3:3] = [{"at_ms": ZERO_MS + 20_000, **GROWTH[0]}]
    _, verdict, *_ = made.finish()
    assert verdict["groups"]["static"]["unowned"] == []


def test_a_group_that_never_had_an_assignment_owns_nothing(made: MadeUpRun) -> None:
    made.assigned.clear()
    _, verdict, *_ = made.finish()
    assert verdict["verdict"] == "fail"
    assert len(verdict["groups"]["static"]["unowned"]) == made.size
