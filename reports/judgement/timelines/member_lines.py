"""Lines about a group's members: each line that is due is in the log once, and no other line is.

The nth line of a kind about a subject is compared with the nth such line that the oracle expects.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kafka_protocol.append_errors import AppendError, append_error
from kafka_protocol.coordinator_lines import Grammar
from reference_coordinator.classic.state import State
from reference_coordinator.replay import ExpectedLine, Outage, Stall
from reference_coordinator.replay.failed_writes import TIMED_OUT
from reports.judgement.run.disturbance import CATCHING_UP_MS
from reports.judgement.timelines import said
from reports.judgement.timelines.compare import EARLY_MS, LATE_MS
from reports.judgement.timelines.timeline import Line, subject

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
EXTENDED = "nobody_rejoined"
"""A join phase goes on, since nobody joined in time. Whether somebody did is open where a timer may
have run out late."""
OF_GROUPS = ("absent_dynamic_removed", "unsynced_removed", EXTENDED)
"""Lines about members that do not name one alone."""
OF_LOADS = ("group_loaded", "member_loaded")
"""Lines about what a coordinator loads; when it does is judged with its epochs."""
NEVER = ("unexpected_rejoin", "dead")
"""Lines of states in which no request finds a group."""
FAILED = ("persist_failed", "empty_failed", "commit_failed", "metadata_failed")
"""Lines of writes that failed: doubtful where no fault and no standstill may explain them."""
WRITES_FAIL_MS = 3_000.0
"""From which length on a standstill of one broker may make writes of another fail at once: half of
the shortest session with which a cluster finds a broker dead (ZooKeeper 6 s, KRaft 9 s). They may
fail until it has caught up, as after a fault."""
SAID_ALONE = "preparing"
"""Whether this line is due is judged with its rebalance (see `compare`)."""
OVERDUE = ("stabilized", "assignment")
"""Lines that are expected here where a phase lasts for too long (see `replay.overdue`)."""
ENTERED = {
    "preparing": str(State.PREPARING_REBALANCE), "stabilized": str(State.COMPLETING_REBALANCE),
    "assignment": str(State.STABLE), "empty": str(State.EMPTY),
}  # fmt: skip
"""The states that a group enters with a line, about: that of `assignment` when it is stored."""
DOUBTFUL = "doubtful_line"
"""The outcome of a line that is a finding, and proves nothing."""
UNNAMED = re.compile(r"-\?[^-]*$")
"""Placeholders of member ids that no response names; their lines cannot be paired by subject."""


class States:
    """The states of a group by its lines: a coordinator acts on it in one thread at a time.

    So its own lines tell the order of two requests where their responses leave it open.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        """Take all lines of the group."""
        self._steps: dict[str, list[tuple[tuple[float, int], str]]] = defaultdict(list)
        for line in lines:
            if (state := ENTERED.get(line["template"])) is not None:
                self._steps[line["broker"]].append((_place(line), state))
        for steps in self._steps.values():
            steps.sort()

    def before(self, line: Line) -> str:
        """Return the state that the last step before a line entered, by its broker's log."""
        steps = self._steps.get(line["broker"], [])
        count = bisect_left(steps, (_place(line), ""))
        return steps[count - 1][1] if count else str(State.EMPTY)


def compare(
    lines: Iterable[Line],
    expected_lines: Sequence[ExpectedLine],
    grammar: Grammar,
    outages: Sequence[Outage] = (),
    stalls: Sequence[Stall] = (),
    join_timer_ms: float = 0.0,
    may_be_missing: Callable[[ExpectedLine], bool] = lambda _: False,
) -> list[Json]:
    """Return the rows of `MEMBER_LINES`: lines that are missing, unexpected, early, late or wrong.

    A wrong line differs in a field that says more than whom it is about (`said`). A doubtful one
    may be right: it tells of a failed write, and no outage, stall or answer explains that.
    `join_timer_ms` is the longest that a join phase of the group may last. A line that is due is
    missing only where `may_be_missing` does not say so.
    """
    lines = list(lines)
    states = States(lines)
    timed_out = [due for due in expected_lines if due.line == TIMED_OUT]
    compared = {*KINDS, *OF_GROUPS, *OF_LOADS, *NEVER, SAID_ALONE}
    compared -= {name for name, other in grammar.lines_instead.items() if other is None}
    expected_lines = [
        replace(due, line=name)
        for due in expected_lines
        if (name := grammar.lines_instead.get(due.line, due.line)) in {*compared, *OVERDUE}
    ]
    seen = sorted((line for line in lines if line["template"] in compared), key=_place)
    observed = _numbered(seen, lambda line: (line["template"], _about(line)))
    named = sorted((due for due in expected_lines if not UNNAMED.search(due.subject)), key=_due)
    expected = _numbered(named, lambda due: (due.line, due.subject))
    unnamed = Counter(due.line for due in expected_lines if UNNAMED.search(due.subject))
    found, names_batch = [], grammar.coordinator == "java"
    for key in observed.keys() | expected.keys():
        line, due = observed.get(key), expected.get(key)
        if due and not line and may_be_missing(due):
            continue
        if (outcome := _outcome(line, due)) and key[0] != SAID_ALONE:
            found.append(_row(key, outcome, line, due))
        elif line is not None and due is not None:
            says = grammar.said(due.line, line["message"])
            if "state" in says and says["state"] == states.before(line):
                del says["state"]  # it is that of the log's own order
            wrong = said.differences(due.says, says, names_batch=names_batch)
            found += (_row(key, "wrong_line", line, due, wrong) for wrong in wrong[:1])
    may_be_late = lambda row: row["kind"] == EXTENDED and _stood_still(row, stalls, join_timer_ms)
    found = [row for row in found if not may_be_late(row)]
    found += _failed_writes(lines, outages, stalls, timed_out)
    unpaired = Counter(row["kind"] for row in found if row["outcome"] == "unexpected_line")
    return sorted(
        (
            row
            for row in found
            if row["outcome"] != "unexpected_line"
            or row["kind"] not in unnamed
            or unpaired[row["kind"]] > unnamed[row["kind"]]
        ),
        key=lambda row: (time_of(row), str(row)),
    )


def time_of(row: Mapping[str, Any]) -> float:
    """Return when the line of a row was printed, or was due, in ms."""
    at_ms: float = row["due_ms"] if row["at_ms"] is None else row["at_ms"]
    return at_ms


def _stood_still(row: Json, stalls: Sequence[Stall], join_timer_ms: float) -> bool:
    """Tell whether the broker of a line, or any where none is known, stood still before it.

    That is while a join timer may have run that ended with the line.
    """
    at_ms = time_of(row)
    return any(
        stall.from_ms <= at_ms <= stall.until_ms + join_timer_ms + LATE_MS
        and row["broker"] in (None, stall.broker)
        for stall in stalls
    )


def _failed_writes(
    lines: Iterable[Line],
    outages: Sequence[Outage],
    stalls: Sequence[Stall],
    timed_out: Sequence[ExpectedLine],
) -> Iterator[Json]:
    """Yield the lines of failed writes that no fault, standstill or answer may explain."""
    excused = [(outage.from_ms, outage.until_ms) for outage in outages]
    excused += [
        (stall.from_ms, stall.until_ms + CATCHING_UP_MS)
        for stall in stalls
        if stall.until_ms - stall.from_ms >= WRITES_FAIL_MS
    ]
    count: Counter[str] = Counter()
    for line in lines:
        kind, at_ms = line["template"], line["at_ms"]
        if (
            kind in FAILED
            and not any(begin <= at_ms <= end for begin, end in excused)
            and not any(_shows(answer, line) for answer in timed_out)
        ):
            count[kind] += 1
            yield _row((kind, subject(line), count[kind]), DOUBTFUL, line, None)


def _shows(answer: ExpectedLine, line: Line) -> bool:
    """Tell whether an answer shows the write that a line is about: one that timed out just then."""
    timely = answer.earliest_ms - EARLY_MS <= line["at_ms"] <= answer.latest_ms + EARLY_MS
    return (
        timely
        and line["broker"] == dict(answer.says)["broker"]
        and append_error(line["message"]) in (AppendError.TIMED_OUT, AppendError.UNNAMED)
    )


def _about(line: Line) -> str | None:
    """Return what a line is about, as `DueLine.subject` has it."""
    if line["template"] in (*OF_GROUPS, "group_loaded"):
        return ""
    return str(line["generation"]) if line["template"] == SAID_ALONE else subject(line)


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
    if due.line in OF_LOADS:
        return None
    if line["at_ms"] < due.earliest_ms - EARLY_MS:
        return "early_line"
    return "late_line" if line["at_ms"] > due.latest_ms + EARLY_MS else None


def _row(
    key: Key, outcome: str, line: Line | None, due: ExpectedLine | None, wrong: str = ""
) -> Json:
    kind, about, nth = key
    return {
        "kind": kind,
        "subject": ": ".join(filter(None, (about, wrong))),
        "nth": nth,
        "outcome": outcome,
        "at_ms": line and line["at_ms"],
        "due_ms": due and due.at_ms,
        "broker": line and line["broker"],
        "line": line and line["line"],
    }
