"""Findings: every difference that the tables show, with one root for each cause.

A root is the first difference of its group in log order. Differences that follow, until the replay
knows the group's state again, are linked to it as consequences.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from reports.judgement.breaches import Breach
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.rows import Json, Row
from reports.judgement.run.disturbance import Disturbance
from reports.judgement.timelines.compare import began_ms
from reports.judgement.timelines.member_lines import DOUBTFUL_LINE, OF_LOADS, time_of
from reports.timing import SAME_MOMENT_MS, TIMER_SLACK_MS

LENGTH_ALONE = "whether a member's metadata changed is not in the log, their length is"
"""Why a rebalance for metadata proves nothing before 2.8."""


NO_LINE = "no such line"
FEW = 5  # so many findings of one cause are listed each
STEPS = tuple(
    f"{side}_{step}_ms"
    for side in ("observed", "expected")
    for step in ("started", "joined", "assigned")
)  # when the steps of a rebalance were, and were due; columns of the comparison


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between what the brokers did and what the protocol demands.

    `root` is None for a root, else the index of the finding that it follows from. It is `proven` if
    it makes the verdict `fail`. It is at `at_ms`, and may have begun at `from_ms` (a request that
    waited); the group's state was unknown until `until_ms`. Its window goes from its cause, at
    `since_ms`, to its observation, at `seen_ms`. `history` names a line of the client history, if
    one shows it. `about` is what kind of line it is about, if it is about one. `row` is the row of
    the table that shows it.
    """

    kind: str
    group: str
    at_ms: float
    from_ms: float
    until_ms: float
    expected: str
    observed: str
    broker: str
    line: int
    root: int | None = None
    proven: bool = True
    history: str = ""
    since_ms: float | None = None
    seen_ms: float = 0.0
    about: str = ""
    despite_lateness: bool = False  # it is one even if everything may be late for want of a CPU
    may_be: Disturbance | None = None  # what may explain it, so that it is not proven
    row: Row = field(default_factory=dict, compare=False, repr=False)

    @property
    def window(self) -> tuple[float, float]:
        """From its cause to its observation, in ms."""
        since_ms = self.from_ms if self.since_ms is None else self.since_ms
        return min(since_ms, self.at_ms), max(self.at_ms, self.seen_ms)

    @property
    def is_early(self) -> bool:
        """Whether something was done too early: by a timer, which its request may have started."""
        return self.kind in ("early", "early_line")


def collect(
    violations: Sequence[Row],
    comparison: Sequence[Row],
    member_lines: Sequence[Row],
    breaches: Sequence[Row] = (),
) -> list[Finding]:
    """List the unexplained responses, rebalances and lines in log order, linked to their roots.

    Breaches come last, each a root. What disturbances may explain is not looked at yet.
    """
    found = [_from_violation(row) for row in violations]
    found += [_from_comparison(row) for row in comparison if row["outcome"] != "match"]
    found += [_from_line(row) for row in member_lines]
    found = _rooted(sorted(found, key=_in_log_order))
    return found + sorted(map(_from_breach, breaches), key=_in_log_order)


def of_group(tables: Mapping[str, Sequence[Row]]) -> list[Finding]:
    """List the differences of a group; the rows of its `tables` have the column `group`."""
    names = ("violations", "comparison", "member_lines", "breaches")
    return collect(*(tables.get(name, ()) for name in names))


def proven_roots(found: Iterable[Finding]) -> list[Finding]:
    """Return the findings that make the verdict `fail`."""
    return [finding for finding in found if finding.root is None and finding.proven]


def unanswered(proven: Iterable[Finding]) -> set[str]:
    """Return the groups of which nothing is proven but requests that were never answered."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for finding in proven:
        kinds[finding.group].add(finding.kind)
    return {group for group, found in kinds.items() if found == {Breach.NEVER_ANSWERED}}


def _finding(
    row: Row, kind: str, at_ms: float, expected: str, observed: str, **more: Any
) -> Finding:
    """Return what a row with group, broker and line shows; of a moment, if not `more` is known."""
    span: Json = {"from_ms": at_ms, "until_ms": at_ms}
    span |= {"despite_lateness": row.get("despite_lateness", False), "row": row}
    return Finding(
        kind=kind,
        group=row["group"],
        at_ms=at_ms,
        expected=expected,
        observed=observed,
        broker=row["broker"] or "",
        line=row["line"] or 0,
        **span | more,
    )


def _from_violation(row: Row) -> Finding:
    kind = "wrong_answer" if row["rule"] == "answer" else str(row["rule"])
    asked = f"{row['api']} of {row['client_id']}"
    return _finding(
        row,
        kind if row["searched"] else "unexplained",
        row["at_ms"],
        f"{asked}: {row['expected']}",
        f"{asked}: {row['observed']}",
        from_ms=row["arrived_ms"],
        until_ms=row["until_ms"],
        proven=row["searched"],
    )


def _from_comparison(row: Row) -> Finding:
    outcome, joined_ms = row["outcome"], row["observed_joined_ms"] or 0.0
    at_ms = joined_ms if outcome == "wrong_generation" and joined_ms else began_ms(row)
    times = [row[name] for name in STEPS if row[name]] or [at_ms]
    if outcome == "wrong_members" and row["observed_ended_as"] != row["expected_ended_as"]:
        at_ms = max(times)  # what superseded it, or should have, was before its end
    return _finding(
        row,
        f"{outcome}_rebalance" if outcome in ("missing", "unexpected") else outcome,
        at_ms,
        _described(row, "expected"),
        _described(row, "observed"),
        until_ms=max(at_ms, joined_ms, row["expected_joined_ms"] or 0.0),
        since_ms=min(times),
        seen_ms=max(times) + TIMER_SLACK_MS * (outcome == "missing"),
    )


def _from_line(row: Row) -> Finding:
    times = [one for one in (row["at_ms"], row["due_ms"]) if one is not None]
    return _finding(
        row,
        row["outcome"],
        time_of(row),
        *_said_of_line(row),
        since_ms=min(times),
        seen_ms=max(times) + TIMER_SLACK_MS * (row["at_ms"] is None),
        proven=row["outcome"] != DOUBTFUL_LINE,
        about=row["kind"],
    )


def _from_breach(row: Row) -> Finding:
    said = row["expected"], row["observed"]
    more = {"since_ms": row["from_ms"], "proven": row["proven"], "history": row["history"]}
    return _finding(row, row["kind"], row["at_ms"], *said, **more)


def _in_log_order(finding: Finding) -> tuple[str, float, int]:
    """Order by time; a rebalance comes before the line about the member that caused it."""
    about_a_member = finding.kind.endswith("_line")
    return finding.group, finding.at_ms + SAME_MOMENT_MS * about_a_member, finding.line


def _said_of_line(row: Row) -> tuple[str, str]:
    """Describe what line is due, and what is there."""
    about = f" of {row['subject']}" if row["subject"] else ""
    line = f"line {row['kind']}{about}, number {row['nth']}"
    if row["at_ms"] is None:
        return line, NO_LINE
    if row["due_ms"] is None:
        return NO_LINE, line
    off_ms = row["at_ms"] - row["due_ms"]
    if row["outcome"] in ("early_line", "late_line"):
        return line, f"{line}, {abs(off_ms):.0f} ms {'before' if off_ms < 0 else 'after'} it is due"
    return f"line {row['kind']}, number {row['nth']}, as it is due", line


def _described(row: Row, side: str) -> str:
    of = lambda name: row[f"{side}_{name}"]
    if of("started_ms") is None:
        if of("joined_ms") is None:
            return "no rebalance"
        return "a join phase that ended, but no line that a rebalance began"
    member = f" of {of('member_id')}" if row["outcome"] == "wrong_reason" else ""
    words = [f"rebalance from generation {of('old_generation')} ({of('reason')}{member})"]
    if of("generation") is not None:
        words.append(f"to generation {of('generation')}")
    if of("members") is not None:
        static = f" ({of('static_members')} static)" if of("static_members") else ""
        words.append(f"{of('members')} members{static}")
    if of("ended_as") != "unsure":
        words.append(f"ended as {of('ended_as')}")
    if of("leader"):
        words.append(f"led by {of('leader')}")
    if row["outcome"] in ("early", "late") and side == "observed":
        words.append(f"{abs(row['off_by_ms']):.0f} ms too {row['outcome']}")
    return ", ".join(words)


def _rooted(found: list[Finding]) -> list[Finding]:
    """Link each finding to the earlier finding of its group that it follows from.

    Nothing follows from a doubtful line, or from one about what a coordinator loaded. What stands
    despite lateness does not follow from what lateness may explain.
    """
    linked: list[Finding] = []
    reaches: dict[tuple[str, bool], tuple[int, float]] = {}  # of the last roots, until when
    for place, finding in enumerate(found):
        may_follow = (True,) if finding.despite_lateness else (True, False)
        before = (reaches.get((finding.group, stands), (place, -inf)) for stands in may_follow)
        root = next((root for root, reach_ms in before if finding.from_ms <= reach_ms), place)
        if root != place:
            finding = replace(finding, root=root)  # noqa: PLW2901
        elif finding.kind == DOUBTFUL_LINE or finding.about in OF_LOADS:
            linked.append(finding)
            continue
        linked.append(finding)
        of_root = finding.group, linked[root].despite_lateness
        _, reach_ms = reaches.get(of_root, (root, -inf))
        reaches[of_root] = root, max(reach_ms, finding.until_ms + TIMER_SLACK_MS)
    return linked


def possible_metadata_changes(comparison: Sequence[Row]) -> dict[str, float]:
    """Return when each group first rebalanced for metadata that seem unchanged, in ms.

    Where the request log has only the length of metadata, they may have changed.
    """
    first: dict[str, float] = {}
    for row in comparison:
        differs = row["outcome"] in ("unexpected", "wrong_reason")
        for_metadata = differs and row["observed_reason"] == "member_metadata"
        if for_metadata and row["observed_started_ms"] is not None:
            group, at_ms = row["group"], row["observed_started_ms"]
            first[group] = min(first.get(group, at_ms), at_ms)
    return first


def listed(
    found: Sequence[Finding], places: LogPlaces, about: Callable[[Finding], Json] = lambda _: {}
) -> list[Json]:
    """Write findings as `verdict.json` has them, each with its place in a log.

    Of many of a group that one cause explains the first stands for all, `times`. `about` gives what
    else an entry has.
    """
    alike = lambda one: (one.group, one.kind, one.may_be)
    counts = Counter(alike(one) for one in found if one.root is None and not one.proven)
    numbers: dict[int, int] = {}
    entries: list[Json] = []
    listed_kinds = set[object]()
    for place, one in enumerate(found):
        times = counts[alike(one)] if one.root is None and not one.proven else 1
        if one.root is None:
            if times > FEW and alike(one) in listed_kinds:
                continue
            listed_kinds.add(alike(one))
        elif one.root not in numbers:
            continue
        numbers[place] = len(entries) + 1
        entries.append(
            {
                "number": len(entries) + 1,
                "kind": one.kind,
                "root": one.root is None,
                "follows_from": None if one.root is None else numbers[one.root],
                "proven": one.proven,
                "group": one.group,
                "at_ms": round(one.at_ms, 3),
                "expected": one.expected,
                "observed": one.observed,
                "log": _place(one, places),
                **({"history": one.history} if one.history else {}),
                **({"despite_lateness": True} if one.despite_lateness else {}),
                **({"may_be": one.may_be.because} if one.may_be else {}),
                **({"times": times} if times > FEW else {}),
                **about(one),
            }
        )
    return entries


def _place(one: Finding, places: LogPlaces) -> Json:
    """Tell where a line stands; a difference without a line has no broker."""
    file, number = places.place(one.broker, one.line) if one.broker else ("", 0)
    return {"broker": one.broker, "file": file, "line": number}
