"""The comparison of two timelines: which rows pair, and what is wrong with a pair."""

from typing import Any

import pytest

from reports.judgement.compare import EARLY_MS, LATE_MS, PAIR_MS, compare

Json = dict[str, Any]
ROW: Json = {
    "group": "g", "incarnation": 1, "old_generation": 3, "started_ms": 1_000.0, "reason": "leave",
    "member_id": "", "joined_ms": 1_100.0, "generation": 4, "members": 2, "assigned_members": 2,
    "static_members": 0, "leader": "a", "assigned_ms": 1_200.0, "ended_as": "assigned",
}  # fmt: skip


def observed(**changed: Any) -> Json:
    lines = {"started_line": 5, "joined_line": 6, "assigned_line": 7}
    more = {"assigned_generation": 4, "assignments": 1, "broker": "1"}
    return ROW | lines | more | changed


def expected(**changed: Any) -> Json:
    row = ROW | changed
    return {"earliest_ms": row["started_ms"], "latest_ms": row["started_ms"]} | row


@pytest.mark.parametrize(
    ("changed", "outcome", "line"),
    [
        ({}, "match", 5),
        ({"started_ms": 1_000.0 - EARLY_MS - 1}, "early", 5),
        ({"started_ms": 1_000.0 + EARLY_MS + 1}, "late", 5),
        ({"assigned_ms": 1_200.0 + LATE_MS + 1}, "late", 5),
        ({"reason": "new_member"}, "wrong_reason", 5),
        ({"generation": 5}, "wrong_generation", 6),
        ({"assigned_generation": 5}, "wrong_generation", 7),
        ({"members": 3}, "wrong_members", 6),
        ({"leader": "b"}, "wrong_members", 7),
        ({"leader": None, "members": None}, "match", 5),
        ({"ended_as": "superseded"}, "wrong_members", 7),
        ({"assignments": 2}, "unexpected", 5),
        ({"started_ms": None, "started_line": None}, "missing", 6),
    ],
)
def test_a_difference_has_an_outcome_and_a_line(changed: Json, outcome: str, line: int) -> None:
    (row,) = compare([observed(**changed)], [expected()])
    assert (row["outcome"], row["broker"], row["line"]) == (outcome, "1", line)


def test_a_rebalance_of_one_side_is_missing_or_unexpected() -> None:
    assert [row["outcome"] for row in compare([], [expected()])] == ["missing"]
    assert [row["outcome"] for row in compare([observed()], [])] == ["unexpected"]


@pytest.mark.parametrize(
    ("apart_ms", "outcomes"),
    [(PAIR_MS - 1, ["wrong_generation"]), (PAIR_MS, ["missing", "unexpected"])],
)
def test_rows_of_other_generations_pair_by_time_and_reason(
    apart_ms: float, outcomes: list[str]
) -> None:
    other = observed(old_generation=9, started_ms=1_000.0 + apart_ms)
    assert [row["outcome"] for row in compare([other], [expected()])] == outcomes


def test_rows_pair_with_the_nearest_of_their_key() -> None:
    far, near = observed(started_ms=9_000.0), observed()
    rows = compare([far, near], [expected()])
    assert [(row["observed_started_ms"], row["outcome"]) for row in rows] == [
        (1_000.0, "match"),
        (9_000.0, "unexpected"),
    ]
