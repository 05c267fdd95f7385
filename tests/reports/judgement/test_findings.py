"""Findings: their order, their roots, and which of them are proven."""

from typing import Any

import pytest

from reports.judgement.findings import (
    collect,
    possible_metadata_changes,
)
from reports.judgement.group import check_rows
from reports.judgement.timelines.compare import BOTH
from reports.judgement.timelines.member_lines import DOUBTFUL_LINE
from reports.timing import TIMER_SLACK_MS
from tests.recorded.logs import RECORDINGS

Json = dict[str, Any]


def violation(at_ms: float, until_ms: float, **changed: Any) -> Json:
    return {
        "group": "g", "at_ms": at_ms, "until_ms": until_ms, "rule": "answer", "searched": True,
        "expected": "error_code=0", "observed": "error_code=25", "api": "HEARTBEAT",
        "client_id": "c", "arrived_ms": at_ms - 1, "broker": "1", "file": "f", "line": int(at_ms),
    } | changed  # fmt: skip


def rebalance(at_ms: float, outcome: str, **changed: Any) -> Json:
    sides = {f"{side}_{name}": None for side in ("observed", "expected") for name in BOTH}
    return sides | {
        "group": "g", "observed_started_ms": at_ms, "observed_reason": "leave", "broker": "1",
        "outcome": outcome, "line": 1, "off_by_ms": 0.0, **changed,
    }  # fmt: skip


def test_consequences_are_linked_to_their_root():
    rows = [
        violation(1_000, 2_000),
        violation(2_000 + TIMER_SLACK_MS, 2_600),
        violation(9_000, 9_000),
    ]
    found = collect(rows, [rebalance(1_500, "late"), rebalance(1_600, "match")], [])
    assert [(one.kind, one.at_ms, one.root) for one in found] == [
        ("wrong_answer", 1_000, None),
        ("late", 1_500, 0),
        ("wrong_answer", 2_500, 0),
        ("wrong_answer", 9_000, None),
    ]


STANDS = {"despite_lateness": True}


@pytest.mark.parametrize(
    ("rows", "roots"),
    [
        # what stands despite lateness does not follow from what may be late
        ([violation(1_000, 5_000), violation(2_000, 3_000, **STANDS),
          violation(2_500, 2_500, **STANDS), violation(4_900, 4_900)], [None, None, 1, 0]),
        ([violation(1_000, 5_000), violation(1_001, 5_000, group="h")], [None, None]),
    ],
    ids=["despite lateness", "of another group"],
)  # fmt: skip
def test_what_does_not_follow(rows, roots):
    assert [one.root for one in collect(rows, [], [])] == roots


def test_a_search_that_was_given_up_proves_nothing():
    (found,) = collect([violation(1_000, 1_000, searched=False)], [], [])
    assert (found.kind, found.proven) == ("unexplained", False)


def test_nothing_follows_from_a_doubtful_line():
    doubt = {
        "kind": "group_loaded", "subject": "", "nth": 1, "outcome": DOUBTFUL_LINE, "at_ms": 900.0,
        "due_ms": 900.0, "group": "g", "broker": "1", "line": 1,
    }  # fmt: skip
    found = collect([violation(1_000, 1_000)], [], [doubt])
    assert [(one.kind, one.root, one.proven) for one in found] == [
        (DOUBTFUL_LINE, None, False),
        ("wrong_answer", None, True),
    ]


@pytest.mark.parametrize("template", ["static_replaced", "static_added"])
def test_a_missing_line_is_located_at_the_last_line_before_it(template):
    recording = RECORDINGS["kafka-4.3.0"]
    rows = recording.rows_by_group["static"]
    gone = [row for row in rows if row["template"] == template][-1]
    left = [row for row in rows if row is not gone]
    found = check_rows(recording.context, "static", left)
    (wrong,) = [row for _, row in found if row.get("outcome") in ("missing", "missing_line")]
    before = [row for row in left if row["template"] and row["at_ms"] <= gone["at_ms"]]
    last = max(before, key=lambda row: row["at_ms"])
    assert (wrong["broker"], wrong["line"]) == (last["broker"], last["line"])


def test_lengths_alone_do_not_prove_that_metadata_are_unchanged():
    rows = [rebalance(at_ms, "unexpected", observed_reason="member_metadata") for at_ms in (9, 5)]
    assert possible_metadata_changes(rows) == {"g": 5}
