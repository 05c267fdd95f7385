"""Findings: every difference that the tables show, with one root for each cause.

A root is the first difference of its group in log order. Differences that follow, until the replay
knows the group's state again, are linked to it as consequences.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from reports.judgement.breaches import LATE, Breach
from reports.judgement.timelines.compare import LATE_MS
from reports.judgement.timelines.member_lines import DOUBTFUL, time_of

Row = Mapping[str, Any]
NEVER_LATE = frozenset(Breach) - LATE
"""The kinds of findings that no lateness of a broker explains."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between what the brokers did and what the protocol demands.

    `root` is None for a root, else the index of the finding that it follows from. `proven` is false
    where evidence that might explain it is missing. It is at `at_ms`, and may have begun at
    `from_ms` (a request that waited); the group's state was unknown until `until_ms`. `history`
    names a line of the client history, if one shows it.
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

    @property
    def may_be_late(self) -> bool:
        """Whether lateness of a broker may explain it."""
        return self.kind not in NEVER_LATE


def collect(
    violations: Sequence[Row],
    comparison: Sequence[Row],
    member_lines: Sequence[Row],
    breaches: Sequence[Row] = (),
    *,
    tells_bytes: bool = True,
) -> list[Finding]:
    """List the unexplained responses, rebalances and lines in log order, linked to their roots.

    Breaches come last, each a root. Where logs have only the length of metadata (`tells_bytes` is
    false), a finding that changed metadata may explain is not proven.
    """
    found = [_from_violation(row) for row in violations]
    found += [_from_comparison(row) for row in comparison if row["outcome"] != "match"]
    found += [_from_line(row) for row in member_lines]
    found = _rooted(sorted(found, key=_in_log_order))
    if not tells_bytes:
        found = unproven_since(found, possible_metadata_changes(comparison))
    return found + sorted(map(_from_breach, breaches), key=_in_log_order)


@dataclass(frozen=True, slots=True)
class MissingEvidence:
    """What no log has, so that findings that it may explain are not proven.

    `gaps` gives, by group, the time from which evidence is missing (`gaps.by_group`). `kills` are
    those of brokers (broker id, ms). `waits` says how long a request of each group may wait, ms.
    """

    gaps: Mapping[str, float]
    kills: Sequence[tuple[str, float]]
    waits: Mapping[str, float]
    tells_bytes: bool = True

    def findings(
        self,
        violations: Sequence[Row],
        comparison: Sequence[Row],
        member_lines: Sequence[Row],
        breaches: Sequence[Row] = (),
    ) -> list[Finding]:
        """List all differences in log order, those unproven that missing evidence may explain."""
        found = collect(
            violations, comparison, member_lines, breaches, tells_bytes=self.tells_bytes
        )
        return unproven_around_kills(unproven_since(found, self.gaps), self.kills, self.waits)


def proven_roots(found: Iterable[Finding]) -> list[Finding]:
    """Return the findings that make the verdict `fail`."""
    return [finding for finding in found if finding.root is None and finding.proven]


def unanswered(proven: Iterable[Finding]) -> set[str]:
    """Return the groups of which nothing is proven but requests that were never answered."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for finding in proven:
        kinds[finding.group].add(finding.kind)
    return {group for group, found in kinds.items() if found == {Breach.NEVER_ANSWERED}}


def located(
    row: dict[str, Any], due: str, before: Callable[[str, float], Iterable[Row]]
) -> dict[str, Any]:
    """Return a row with the place of its line; of a missing line, the group's last line before it.

    `due` names the column with the time at which the line was due. `before` returns the lines about
    a group up to a time, in ms.
    """
    if row["line"] is not None:
        return row
    lines = before(row["group"], row[due])
    last = max(lines, key=itemgetter("at_ms", "line"), default=None)
    return row if last is None else {**row, "broker": last["broker"], "line": last["line"]}


def _from_violation(row: Row) -> Finding:
    kind = "wrong_answer" if row["rule"] == "answer" else str(row["rule"])
    if not row["searched"]:
        kind = "unexplained"
    return Finding(
        kind=kind,
        group=row["group"],
        at_ms=row["at_ms"],
        from_ms=row["arrived_ms"],
        until_ms=row["until_ms"],
        expected=f"{row['api']} of {row['client_id']}: {row['expected']}",
        observed=f"{row['api']} of {row['client_id']}: {row['observed']}",
        broker=row["broker"],
        line=row["line"],
        proven=row["searched"],
    )


def _from_comparison(row: Row) -> Finding:
    broker = row["broker"] or ""
    at_ms = began_ms(row)
    if row["outcome"] == "wrong_generation" and row["observed_joined_ms"]:
        at_ms = row["observed_joined_ms"]
    return Finding(
        kind=f"{row['outcome']}_rebalance" if row["outcome"] in _LONE else row["outcome"],
        group=row["group"],
        at_ms=at_ms,
        from_ms=at_ms,
        until_ms=max(at_ms, row["observed_joined_ms"] or 0.0, row["expected_joined_ms"] or 0.0),
        expected=_described(row, "expected"),
        observed=_described(row, "observed"),
        broker=broker,
        line=row["line"] or 0,
    )


def began_ms(row: Row) -> float:
    """Return when a rebalance of the comparison began, in ms: its first known time."""
    known = ("observed_started_ms", "observed_joined_ms", "expected_started_ms")
    times = (row[name] for name in (*known, "observed_assigned_ms") if row[name])
    return float(next(times, 0.0))


def _in_log_order(finding: Finding) -> tuple[str, float, int]:
    """Order by time; a rebalance comes before the line about the member that caused it."""
    about_a_member = finding.kind.endswith("_line")
    return finding.group, finding.at_ms + SAME_MOMENT_MS * about_a_member, finding.line


def _from_line(row: Row) -> Finding:
    broker = row["broker"] or ""
    at_ms = time_of(row)
    about = f" of {row['subject']}" if row["subject"] else ""
    line = f"line {row['kind']}{about}, number {row['nth']}"
    return Finding(
        kind=row["outcome"],
        group=row["group"],
        at_ms=at_ms,
        from_ms=at_ms,
        until_ms=at_ms,
        expected="no such line" if row["due_ms"] is None else line,
        observed="no such line" if row["at_ms"] is None else line,
        broker=broker,
        line=row["line"] or 0,
        proven=row["outcome"] != DOUBTFUL,
    )


def _from_breach(row: Row) -> Finding:
    return Finding(
        kind=row["kind"],
        group=row["group"],
        at_ms=row["at_ms"],
        from_ms=row["at_ms"],
        until_ms=row["at_ms"],
        expected=row["expected"],
        observed=row["observed"],
        broker=row["broker"],
        line=row["line"],
        proven=row["proven"],
        history=row["history"],
    )


SAME_MOMENT_MS = 5.0
"""The lines of one event lie within this time."""

_LONE = ("missing", "unexpected")


def _described(row: Row, side: str) -> str:
    """Describe one side of a row of the comparison."""
    if row[f"{side}_started_ms"] is None:
        if row[f"{side}_joined_ms"] is None:
            return "no rebalance"
        return "a join phase that ended, but no line that a rebalance began"
    words = [f"rebalance from generation {row[f'{side}_old_generation']} ({row[f'{side}_reason']})"]
    if row[f"{side}_generation"] is not None:
        words.append(f"to generation {row[f'{side}_generation']}")
    if row[f"{side}_members"] is not None:
        words.append(f"{row[f'{side}_members']} members")
    if row[f"{side}_ended_as"] != "unsure":
        words.append(f"ended as {row[f'{side}_ended_as']}")
    if row[f"{side}_leader"]:
        words.append(f"led by {row[f'{side}_leader']}")
    if row["outcome"] in ("early", "late") and side == "observed":
        words.append(f"{abs(row['off_by_ms']):.0f} ms too {row['outcome']}")
    return ", ".join(words)


def _rooted(found: list[Finding]) -> list[Finding]:
    """Link each finding to the earlier finding of its group that it follows from.

    Nothing follows from a doubtful line.
    """
    linked: list[Finding] = []
    root, reach = None, float("-inf")
    for finding in found:
        same = root is not None and linked[root].group == finding.group
        if same and finding.from_ms <= reach:
            linked.append(replace(finding, root=root))
        elif finding.kind == DOUBTFUL:
            linked.append(finding)
            continue
        else:
            root, reach = len(linked), float("-inf")
            linked.append(finding)
        reach = max(reach, finding.until_ms + LATE_MS)
    return linked


def unproven_around_kills(
    found: Sequence[Finding], kills: Sequence[tuple[str, float]], waits: Mapping[str, float]
) -> list[Finding]:
    """Mark findings as unproven that requests in flight at a kill may explain.

    A killed broker never logs them. If a finding of a group is on the killed broker at the time of
    the kill (`kills`: broker id and ms), findings under the next coordinator may follow from such
    requests too. `waits` says how long a request of each group may have waited, in ms.
    """
    spans = [
        (group, min(finding.at_ms for finding in off), killed_ms + wait_ms)
        for broker, killed_ms in kills
        for group, wait_ms in waits.items()
        if (
            off := [
                finding
                for finding in found
                if (finding.group, finding.broker) == (group, broker)
                and killed_ms - wait_ms <= finding.at_ms <= killed_ms + LATE_MS
            ]
        )
    ]
    return [
        replace(finding, proven=False)
        if any(
            finding.group == group and first <= finding.at_ms <= last
            for group, first, last in spans
        )
        else finding
        for finding in found
    ]


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


def unproven_since(found: Sequence[Finding], gaps: Mapping[str, float]) -> list[Finding]:
    """Mark findings as unproven since evidence of their group is missing; `gaps` gives ms."""
    return [
        replace(finding, proven=False)
        if finding.group in gaps and finding.at_ms + LATE_MS >= gaps[finding.group]
        else finding
        for finding in found
    ]
