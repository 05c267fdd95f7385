"""Rows of the evidence as executors get them, without a session."""

from typing import Any

import pyarrow as pa

from reports.ingest.group_pass import EVIDENCE, _chunks
from reports.judgement.logged import REQUEST

EVENT = {
    "group": "static",
    "since_ms": 5.0,
    "at_ms": 5.0,
    "client_id": "static-1",
    "api": "assigned",
    "request": '{"partitions":["orders-0"],"member_id":"static-1-a"}',
    "template": "client event",
}


SEEN = {
    "group": "static",
    "since_ms": 5.0,
    "at_ms": 5.0,
    "id": "1:7",
    "broker": "1",
    "api": "HEARTBEAT",
    "readable": True,
    "template": "seen by the tap",
}


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: [r.get(name) for r in rows] for name in EVIDENCE})


def test_an_event_of_a_member() -> None:
    ((group, chunk),) = _chunks([batch(EVENT)])
    (event,) = chunk.events
    assert (group, event.client, event.event) == ("static", "static-1", "assigned")
    assert (event.partitions, event.member_id) == ({"orders-0"}, "static-1-a")


def test_a_request_that_the_tap_saw_is_none_of_the_brokers() -> None:
    logged = {**SEEN, "id": "1:8", "template": None}
    ((_, chunk),) = _chunks([batch(SEEN, logged)])
    number = REQUEST.index("id")
    assert [row[number] for row in chunk.tapped] == ["1:7"]
    assert [row[number] for row in chunk.requests] == ["1:8"]
    assert len(chunk.tapped[0]) == len(REQUEST)
