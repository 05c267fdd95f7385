"""The observed timeline, from constructed coordinator lines."""

from dataclasses import replace
from typing import Any

import pytest

from kafka_protocol.coordinator_lines import JAVA
from reference_coordinator.replay import HintKind
from reports.judgement.timelines.timeline import hints, observed, reason

Json = dict[str, Any]
COLUMNS = ("member", "instance", "generation", "members", "static_members", "reason")


def line(number: int, template: str, **fields: Any) -> Json:
    about = {"at_ms": number * 100.0, "line": number, "broker": "1", "template": template}
    return dict.fromkeys(COLUMNS) | about | fields


LINES = [
    line(1, "preparing", generation=0, reason="Adding new member m-1 with group instance id null"),
    line(2, "stabilized", generation=1, members=2),
    line(3, "assignment", generation=1, member="m-1", members=2, static_members=0),
    line(4, "preparing", generation=1, reason="explicit `LeaveGroup` request for (m-2) members."),
    line(5, "preparing", generation=1, reason="something else"),
    line(6, "stabilized", generation=2, members=1),
    line(7, "preparing", generation=2, reason="removing member m-1 on heartbeat expiration"),
    line(8, "empty", generation=3),
]


ALONE = replace(JAVA, lines_instead={"pending_joins": None})
"""A grammar in which a "Preparing" line alone names the member that joins, as in 2.4."""


def timeline(lines: list[Json]) -> list[Json]:
    return observed("g", lines, JAVA, lambda broker, at_ms: 1)


def test_a_rebalance_has_the_lines_up_to_the_next():
    rows = timeline(LINES)
    names = ("row", "old_generation", "generation", "ended_as", "duration_ms")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, 0, 1, "assigned", 200.0),
        (2, 1, None, "superseded", 100.0),
        (3, 1, 2, "superseded", 200.0),
        (4, 2, 3, "empty", 100.0),
    ]
    first, (alone,) = rows[0], timeline(LINES[:1])
    assert (first["leader"], first["members"], first["started_line"]) == ("m-1", 2, 1)
    assert (alone["ended_as"], alone["duration_ms"]) == ("open", None)


def test_incarnations_are_split_by_load():
    rows = observed("g", LINES, JAVA, lambda broker, at_ms: 1 + (at_ms > 350))
    assert [(row["incarnation"], row["row"]) for row in rows] == [(1, 1), (2, 1), (2, 2), (2, 3)]


def test_text_of_no_class_stays():
    assert reason(LINES[4], JAVA) == ("something else", "")


@pytest.mark.parametrize("words", [
    "Updating metadata for member m-2 during Stable", "Leader m-2 re-joining group during Stable",
])  # fmt: skip
def test_a_rejoin_that_begins_a_rebalance_has_its_line(words):
    begun = line(5, "preparing", generation=1, reason=words)
    found = [(hint.at_ms, hint.kind, hint.subject) for hint in hints([begun], JAVA)]
    assert found == [(500.0, HintKind.PREPARING, ""), (500.0, HintKind.REJOINED, "m-2")]


def test_lines_hint_at_instants():
    found = hints([*LINES, line(9, "static_replaced", member="m-3", instance="i")], JAVA)
    joins = [hint for hint in hints(LINES, ALONE) if hint.kind == HintKind.PENDING_JOINED]
    assert [(hint.at_ms, hint.subject) for hint in joins] == [(100.0, "m-1")], "no other line does"
    assert [(hint.at_ms, str(hint.kind.value), hint.subject) for hint in found] == [
        (100.0, "preparing", ""),
        (200.0, "join_phase_ended", ""),
        (300.0, "assigned", "m-1"),
        (400.0, "preparing", ""),
        (500.0, "preparing", ""),
        (600.0, "join_phase_ended", ""),
        (700.0, "preparing", ""),
        (800.0, "join_phase_ended", ""),
        (900.0, "replaced", "i"),
    ]
