"""Commits that failed are counted by group and error, with those that lines stand for."""

import json

from reports.judgement.run import history
from reports.judgement.run.commit_errors import ByError, listed, merge


def failed_in(*lines: dict[str, object]) -> ByError:
    texts = (json.dumps({"event": "error", "member": "m", **line}).encode() for line in lines)
    *_, summary = history.read(texts, history.said_in, 1)
    assert isinstance(summary, history.HistorySummary)
    return summary.commit_errors


def test_parts_of_a_history_are_added_and_other_errors_left_out() -> None:
    found = failed_in(
        {"at_ms": 5.0, "group": "g", "error": "commit: Unknown member"},
        {"at_ms": 6.0, "group": "g", "error": "1/1 brokers are down"},
        {"at_ms": 7.0, "group": None, "error": "commit: of nobody"},
    )
    merge(found, failed_in(
        {"at_ms": 9.0, "group": "g", "error": "commit: Unknown member", "left_out": 3},
        {"at_ms": 8.0, "group": "g", "error": "commit: " + 300 * "x"},
    ))  # fmt: skip
    assert found.keys() == {"g"}
    assert listed(found["g"]) == [
        {"error": "Unknown member", "count": 5, "first_ms": 5.0, "last_ms": 9.0},
        {"error": 200 * "x", "count": 1, "first_ms": 8.0, "last_ms": 8.0},
    ]
