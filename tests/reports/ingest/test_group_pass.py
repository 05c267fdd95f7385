"""Rows of the evidence as executors get them, without a session."""

from typing import Any

import pyarrow as pa

from reports.ingest.group_pass import EVIDENCE, _chunks

EVENT = {
    "group": "static",
    "since_ms": 5.0,
    "at_ms": 5.0,
    "client_id": "static-1",
    "api": "assigned",
    "request": '{"partitions":["orders-0"],"member_id":"static-1-a"}',
    "template": "client event",
}


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: [r.get(name) for r in rows] for name in EVIDENCE})


def test_an_event_of_a_member() -> None:
    ((group, chunk),) = _chunks([batch(EVENT)])
    (event,) = chunk.events
    assert (group, event.client, event.event) == ("static", "static-1", "assigned")
    assert (event.partitions, event.member_id) == ({"orders-0"}, "static-1-a")
