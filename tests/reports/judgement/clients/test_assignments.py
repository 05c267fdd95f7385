"""Owners of partitions: the assignments that leaders send, and partitions without owner."""

import base64
import json
from typing import Any

import pytest

from kafka_protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from kafka_protocol.errors import Error
from reference_coordinator.replay import Outage
from reports.judgement.breaches import Breach
from reports.judgement.clients.assignments import Assignments
from reports.judgement.logged import REQUEST, Requests
from reports.judgement.run.disturbance import Deletion
from tests.reports.judgement.contexts import context
from tests.reports.page_run import ZERO_MS

Json = dict[str, Any]
PARTITIONS = {"orders": 3, "more": 1}


Row = tuple[Any, ...]


def request_of(api: str, at_ms: float, request: Json, response: Json) -> Row:
    values = dict.fromkeys(REQUEST, "x") | {"id": "1:7"}
    times = dict.fromkeys(("earliest_ms", "at_ms", "latest_ms", "answered_ms"), at_ms)
    texts = {"request": json.dumps(request), "response": json.dumps(response)}
    row = {**values, **times, **texts, "error_code": response["errorCode"], "api": api}
    return tuple(row.values())


def assigned(requests: list[Row]) -> list[Json]:
    """Return the rows of all requests, which come in one by one."""
    assignments = Assignments(context())
    for request in requests:
        list(assignments.add(Requests.decoded([request])))
    return [row for _, row in assignments.end()]


def join(
    generation: int,
    *topics: str,
    error: int = 0,
    at_ms: float = 1.0,
    owned: tuple[int, ...] = (),
    assignor: str = "range",
) -> Row:
    claimed = tuple(TopicPartition(topics[0], number) for number in owned)
    blob = base64.b64encode(Subscription(topics, owned=claimed).encode()).decode()
    other = base64.b64encode(Subscription(("unchosen",)).encode()).decode()
    protocols = [{"name": "roundrobin", "metadata": other}, {"name": assignor, "metadata": blob}]
    response = {"errorCode": error, "generationId": generation, "protocolName": assignor}
    return request_of("JOIN_GROUP", at_ms, {"protocols": protocols}, response)


def blob(*partitions: tuple[str, int]) -> str:
    share = Assignment(tuple(TopicPartition(*partition) for partition in partitions))
    return base64.b64encode(share.encode()).decode()


def sync(generation: int, *shares: str, error: int = 0, at_ms: float = 2.0) -> Row:
    assignments = [{"memberId": str(n), "assignment": share} for n, share in enumerate(shares)]
    request = {"generationId": generation, "assignments": assignments}
    return request_of("SYNC_GROUP", at_ms, request, {"errorCode": error})


def test_an_assignment_is_the_leader_s_sync_group_that_succeeded():
    whole = sync(1, blob(("orders", 0), ("orders", 2)), blob(("orders", 1)))
    refused = sync(1, blob(("orders", 0)), error=Error.REBALANCE_IN_PROGRESS)
    follower = sync(1)
    assert assigned([join(1, "orders"), refused, whole, follower]) == [
        {"generation": 1, "at_ms": 2.0, "topics": "orders",
         "partitions": "orders-0,orders-1,orders-2"}
    ]  # fmt: skip


def test_topics_are_those_of_all_members_of_the_generation():
    joins = [join(1, "orders"), join(1, "more", at_ms=9.0), join(2, "other")]
    refused = join(1, "refused", error=Error.FENCED_INSTANCE_ID)
    (row,) = assigned([*joins, refused, sync(1, blob(("orders", 0)))])
    assert row["topics"] == "more,orders"


def test_a_blob_of_another_protocol_gives_nobody_anything():
    (row,) = assigned([join(1, "orders"), sync(1, "c2hhcmU=", "", blob(("orders", 1)))])
    assert row["partitions"] == "orders-1"


def judged(requests: list[Row], **known: Any) -> list[Json]:
    assignments = Assignments(context(partitions=PARTITIONS, **known))
    found = (pair for one in requests for pair in assignments.add(Requests.decoded([one])))
    return [row for table, row in found if table == "breaches"]


WHOLE = (blob(("orders", 0), ("orders", 2)), blob(("orders", 1)))
AGAIN = (*WHOLE, WHOLE[1])
LESS = (blob(("orders", 0), ("orders", 1)),)
MORE = ("orders", "more")
MANY = blob(*(("more", number) for number in range(7)))
TWICE = ["orders-1 is assigned to more than one"]
LEFT_OUT = ["orders-2 is assigned to no member"]
NO_MORE = ["more-0 is assigned to no member"]


def deleted(topic: str, from_ms: float) -> dict[str, Any]:
    return {"deleted": {topic: Deletion(from_ms, from_ms)}}


def cooperative(assignor: str, *owned: int) -> list[Row]:
    return [join(1, "orders", assignor=assignor, owned=owned), join(2, "orders"), sync(1, *LESS)]


def of_another(broker: str) -> list[Row]:
    """A generation that was never stored: the next coordinator gives its number again."""
    first, second = join(3, *MORE), join(3, "orders")
    place = REQUEST.index("broker")
    second = (*second[:place], broker, *second[place + 1 :])
    return [first, second, sync(3, *WHOLE, at_ms=20_000.0)]


ASSIGNED = {
    "whole": ([join(1, "orders"), sync(1, *WHOLE)], {}, []),
    "a partition twice": ([join(1, "orders"), sync(1, *AGAIN)], {}, TWICE),
    "a second one, which the coordinator ignores":
        ([join(1, "orders"), sync(1, *WHOLE), sync(1, *AGAIN)], {}, []),
    "a refused one":
        ([join(1, "orders"), sync(1, *AGAIN, error=Error.REBALANCE_IN_PROGRESS)], {}, []),
    "a partition left out": ([join(1, "orders"), sync(1, *LESS)], {}, LEFT_OUT),
    "a topic left out": ([join(1, *MORE), sync(1, *WHOLE)], {}, NO_MORE),
    "an unknown topic": ([join(1, "unknown"), sync(1, blob())], {}, []),
    "no assignment of Kafka's": ([join(1, "orders"), sync(1, "c2hhcmU=")], {}, []),
    "own assignor, a partition twice":
        ([join(1, "orders", assignor="own"), sync(1, *AGAIN)], {}, TWICE),
    "own assignor, nothing": ([join(1, "orders", assignor="own"), sync(1, blob())], {}, []),
    "many partitions twice": ([join(1, "more"), sync(1, MANY, MANY)], {},
         ["more-0, more-1, more-2, more-3, more-4 and 2 more are assigned to more than one"]),
    "cooperative, and owned": (cooperative("cooperative-sticky", 2), {}, []),
    "cooperative, another is owned": (cooperative("cooperative-sticky", 1), {}, LEFT_OUT),
    "cooperative, none is owned": (cooperative("cooperative-sticky"), {}, LEFT_OUT),
    "eager, and owned": (cooperative("sticky", 2), {}, LEFT_OUT),
    "in an outage": ([join(1, "orders"), sync(1, *LESS)], {"outages": [Outage(1.0, 2.0)]}, []),
    "after an outage":
        ([join(1, "orders"), sync(1, *LESS)], {"outages": [Outage(1.0, 1.9)]}, LEFT_OUT),
    "deleted before":
        ([join(1, *MORE), sync(1, *WHOLE, at_ms=20_000.0)], deleted("more", 19_999.0), []),
    "deleted as it is sent":
        ([join(1, *MORE), sync(1, *WHOLE, at_ms=20_000.0)], deleted("more", 20_000.0), []),
    "deleted later":
        ([join(1, *MORE), sync(1, *WHOLE, at_ms=20_000.0)], deleted("more", 20_001.0), NO_MORE),
    "another topic deleted":
        ([join(1, *MORE), sync(1, *WHOLE, at_ms=20_000.0)], deleted("orders", 0.0), NO_MORE),
    "a generation that was never stored": (of_another("2"), {}, []),
    "a generation of members that all joined": (of_another("x"), {}, NO_MORE),
}  # fmt: skip


@pytest.mark.parametrize(("requests", "known", "found"), ASSIGNED.values(), ids=ASSIGNED)
def test_what_an_assignment_has_to_give(requests, known, found):
    rows = judged(requests, **known)
    assert [row["observed"] for row in rows] == found
    kinds = [Breach.ASSIGNED_TWICE if "than one" in one else Breach.NOT_ASSIGNED for one in found]
    assert [row["kind"] for row in rows] == kinds


@pytest.mark.parametrize(
    ("topics", "after_ms", "shares", "proven"),
    [
        (MORE, 10_000.0, WHOLE, False),
        (MORE, 10_001.0, WHOLE, True),
        (MORE, 1.0, (blob(("more", 0), ("orders", 0), ("orders", 1)),), True),
        (MORE, 1.0, WHOLE[1:], True),
        (("orders",), 1.0, (blob(),), False),
    ],
    ids=["just now", "for long", "a part of it", "of another a part", "the only one"],
)
def test_a_topic_that_was_just_created_may_not_be_known(topics, after_ms, shares, proven):
    """A broker that is behind knows nothing of it; a part of it shows that it is known."""
    first_ms = 5.0
    requests = [join(1, *topics, at_ms=first_ms), sync(1, *shares, at_ms=first_ms + after_ms)]
    (found,) = judged([*requests])
    assert (found["kind"], found["proven"]) == (Breach.NOT_ASSIGNED, proven)


def test_generations_that_are_over_are_forgotten():
    assignments, rows = Assignments(context(partitions=PARTITIONS)), list[tuple[str, Json]]()
    for generation in range(1, 50):
        for one in (join(generation, "orders"), sync(generation, *WHOLE)):
            rows += assignments.add(Requests.decoded([one]))
        assert len(assignments._subscribed) == 1
    rows += assignments.end()
    assert [(table, row["generation"], row["topics"]) for table, row in rows] == [
        ("assigned", generation, "orders") for generation in range(1, 50)
    ]


# in the verdict


GROWTH = [
    {"event": "intent", "fault_id": "f9.1", "fault": "topic.add-partitions", "cause": None,
     "target": "orders", "group": None, "args": {"topic": "orders", "to": 10}, "kind": "one-shot"},
    {"event": "injected", "fault_id": "f9.1"},
    {"event": "verified", "fault_id": "f9.1", "verified": True, "witness": "the brokers"},
]  # fmt: skip


DELETION = [GROWTH[0] | {"fault": "topic.delete", "args": {"topic": "orders"}}, *GROWTH[1:]]
WHOLE_TOPIC = [f"orders-{number}" for number in range(8)]


@pytest.mark.parametrize(
    ("fault", "given", "unowned", "expected"),
    [
        ([], WHOLE_TOPIC, [], "pass"),
        (GROWTH, WHOLE_TOPIC, ["orders-8", "orders-9"], "fail"),
        (GROWTH[:1], WHOLE_TOPIC, [], "unknown"),  # that fault has no witness
        (DELETION, [], [], "pass"),
        ([], None, WHOLE_TOPIC, "fail"),
    ],
    ids=["all", "two were added", "none was added after all", "the topic was deleted",
         "never an assignment"],
)  # fmt: skip
def test_partitions_that_are_given_to_nobody_make_it_fail(made, fault, given, unowned, expected):
    """A static group that is to have all of its topic at the end."""
    made.owners = "  - {group: static, unowned: 0}\n"
    if given is not None:
        row = {"group": "static", "generation": 1, "topics": "orders", "at_ms": ZERO_MS + 4_000}
        made.assigned.append(row | {"partitions": ",".join(given)})
    made.journal[3:3] = [{"at_ms": ZERO_MS + 20_000, **entry} for entry in fault]
    _, verdict, *_ = made.finish()
    groups = verdict["groups"]
    assert (groups["static"]["unowned"], groups["dynamic"]["unowned"]) == (unowned, None)
    unmet = {"group": "static", "phase": "the end", "what": "partitions without owner",
             "expected": "0", "observed": len(unowned),
             "page": "docs/kinds.md#expectation_not_met"}  # fmt: skip
    found = verdict["expectations_unmet"]
    assert [{name: one[name] for name in unmet} for one in found] == [unmet] * bool(unowned)
    assert all(f"was {len(unowned)}: {', '.join(unowned[:2])}" in str(one["says"]) for one in found)
    assert verdict["verdict"] == expected
