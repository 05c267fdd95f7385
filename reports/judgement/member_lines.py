"""Lines about a group's members: each line that is due is in the log once, and no other line is.

The nth line of a kind about a subject is compared with the nth such line that the oracle expects.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kafka_protocol.coordinator_lines import Grammar
from reference_coordinator.replay import ExpectedLine
from reports.judgement.compare import EARLY_MS
from reports.judgement.timeline import Line, subject

T = TypeVar("T")
Json = dict[str, Any]
Key = tuple[str, str | None, int]

MEMBER_LINES = """
    group STRING, kind STRING, subject STRING, nth INT, outcome STRING, at_ms DOUBLE, due_ms DOUBLE,
    broker STRING, line LONG
"""
KINDS = (
    "static_added", "static_replaced", "dynamic_given_id", "dynamic_added", "member_added",
    "pending_joins", "left", "pending_left", "session_expired", "pending_expired",
)  # fmt: skip
UNNAMED = re.compile(r"-\?[^-]*$")
"""Placeholders of member ids that no response names; their lines cannot be paired by subject."""


def compare(
    lines: Iterable[Line], expected_lines: Sequence[ExpectedLine], grammar: Grammar
) -> list[Json]:
    """Return the rows of `MEMBER_LINES`: lines that are missing, unexpected, early or late."""
    expected_lines = [
        replace(due, line=name)
        for due in expected_lines
        if (name := grammar.lines_instead.get(due.line, due.line)) is not None
    ]
    seen = sorted((line for line in lines if line["template"] in KINDS), key=_place)
    observed = _numbered(seen, lambda line: (line["template"], subject(line)))
    named = sorted((due for due in expected_lines if not UNNAMED.search(due.subject)), key=_due)
    expected = _numbered(named, lambda due: (due.line, due.subject))
    unnamed = Counter(due.line for due in expected_lines if UNNAMED.search(due.subject))
    found = []
    for key in observed.keys() | expected.keys():
        line, due = observed.get(key), expected.get(key)
        if outcome := _outcome(line, due):
            found.append(_row(key, outcome, line, due))
    unpaired = Counter(row["kind"] for row in found if row["outcome"] == "unexpected_line")
    return sorted(
        (
            row
            for row in found
            if row["outcome"] != "unexpected_line"
            or row["kind"] not in unnamed
            or unpaired[row["kind"]] > unnamed[row["kind"]]
        ),
        key=lambda row: (row["due_ms"] if row["at_ms"] is None else row["at_ms"], str(row)),
    )


def _place(line: Line) -> tuple[float, int]:
    return line["at_ms"], line["line"]


def _due(due: ExpectedLine) -> float:
    return due.at_ms


def _numbered(items: Iterable[T], about: Callable[[T], tuple[str, str | None]]) -> Mapping[Key, T]:
    """Number the lines of a kind about a subject, in their order."""
    count: Counter[tuple[str, str | None]] = Counter()
    found = {}
    for item in items:
        key = about(item)
        count[key] += 1
        found[*key, count[key]] = item
    return found


def _outcome(line: Line | None, due: ExpectedLine | None) -> str | None:
    if line is None:
        return "missing_line"
    if due is None:
        return "unexpected_line"
    if line["at_ms"] < due.earliest_ms - EARLY_MS:
        return "early_line"
    return "late_line" if line["at_ms"] > due.latest_ms + EARLY_MS else None


def _row(key: Key, outcome: str, line: Line | None, due: ExpectedLine | None) -> Json:
    kind, about, nth = key
    return {
        "kind": kind,
        "subject": about,
        "nth": nth,
        "outcome": outcome,
        "at_ms": line and line["at_ms"],
        "due_ms": due and due.at_ms,
        "broker": line and line["broker"],
        "line": line and line["line"],
    }
