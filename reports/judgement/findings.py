"""Findings: every difference that the tables show, with one root for each lie.

A root is the first difference of its group in log order; what a lie drags along until the replay
is sure of the group again is linked to it as a consequence.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from reports.judgement.compare import LATE_MS

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between what the brokers did and what the protocol asks for.

    `root` is None for a root, else the number of the finding it follows from. `proven` is false
    where evidence that might explain it is missing. It stands at `at_ms`; it may have begun at
    `from_ms` (a request that waited), and the group was out of step until `until_ms`.
    """

    kind: str
    group: str
    at_ms: float
    from_ms: float
    until_ms: float
    expected: str
    observed: str
    broker: str
    file: str
    line: int
    root: int | None = None
    proven: bool = True


def collect(
    violations: Sequence[Row],
    requests: Mapping[str, Row],
    comparison: Sequence[Row],
    member_lines: Sequence[Row],
    *,
    tells_bytes: bool = True,
) -> list[Finding]:
    """Put unexplained answers, rebalances and lines that do not match into one list.

    Unless the log `tells_bytes`, nothing is proven that untold metadata may explain.
    """
    found = [_from_violation(row, requests[row["request"]]) for row in violations]
    found += [_from_comparison(row) for row in comparison if row["outcome"] != "match"]
    found += [_from_line(row) for row in member_lines]
    rooted = _rooted(sorted(found, key=_in_log_order))
    return rooted if tells_bytes else without_proof(rooted, of_untold_metadata(comparison))


def anchored(
    row: dict[str, Any], due: str, before: Callable[[str, float], Iterable[Row]]
) -> dict[str, Any]:
    """Give what is missing a place: the last line about its group before it should have been.

    `before` returns the lines about a group up to a time, in ms.
    """
    if row["line"] is not None:
        return row
    told = before(row["group"], row[due])
    last = max(told, key=itemgetter("at_ms", "line"), default=None)
    return row if last is None else {**row, "broker": last["broker"], "line": last["line"]}


def _from_violation(row: Row, request: Row) -> Finding:
    kind = "wrong_answer" if row["rule"] == "answer" else str(row["rule"])
    if not row["searched"]:
        kind = "unexplained"
    return Finding(
        kind=kind,
        group=row["group"],
        at_ms=row["at_ms"],
        from_ms=request["arrived_ms"],
        until_ms=row["until_ms"],
        expected=f"{request['api']} of {request['client_id']}: {row['expected']}",
        observed=f"{request['api']} of {request['client_id']}: {row['observed']}",
        broker=request["broker"],
        file=request["file"],
        line=request["line"],
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
        expected=_told(row, "expected"),
        observed=_told(row, "observed"),
        broker=broker,
        file=f"brokers/{broker}/group.log" if broker else "",
        line=row["line"] or 0,
    )


def began_ms(row: Row) -> float:
    """Return when a rebalance began, by the first that is known of it."""
    known = ("observed_started_ms", "observed_joined_ms", "expected_started_ms")
    times = (row[name] for name in (*known, "observed_assigned_ms") if row[name])
    return float(next(times, 0.0))


def _in_log_order(finding: Finding) -> tuple[str, float, int]:
    """Order by time; a rebalance goes before the line about a member that announced it."""
    about_a_member = finding.kind.endswith("_line")
    return finding.group, finding.at_ms + SAME_MOMENT_MS * about_a_member, finding.line


def _from_line(row: Row) -> Finding:
    broker = row["broker"] or ""
    at_ms = row["due_ms"] if row["at_ms"] is None else row["at_ms"]
    line = f"line {row['kind']} of {row['subject']}, number {row['nth']}"
    return Finding(
        kind=row["outcome"],
        group=row["group"],
        at_ms=at_ms,
        from_ms=at_ms,
        until_ms=at_ms,
        expected="no such line" if row["due_ms"] is None else line,
        observed="no such line" if row["at_ms"] is None else line,
        broker=broker,
        file=f"brokers/{broker}/group.log" if broker else "",
        line=row["line"] or 0,
    )


SAME_MOMENT_MS = 5.0
"""Lines that one event left lie within so much."""

_LONE = ("missing", "unexpected")


def _told(row: Row, side: str) -> str:
    """Say one side of a row in words."""
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
    """Link what follows from an earlier finding of the same group to it."""
    linked: list[Finding] = []
    root, reach = None, float("-inf")
    for finding in found:
        same = root is not None and linked[root].group == finding.group
        if same and finding.from_ms <= reach:
            linked.append(replace(finding, root=root))
        else:
            root, reach = len(linked), float("-inf")
            linked.append(finding)
        reach = max(reach, finding.until_ms + LATE_MS)
    return linked


def around_kills(
    found: Sequence[Finding], kills: Sequence[tuple[str, float]], waits: Mapping[str, float]
) -> list[Finding]:
    """Take back what requests in flight may explain: a broker that is killed never logs them.

    They show where something of a group is off on the broker (`kills`: which, and when) as it is
    killed; what is off under the next coordinator may then come of them too. A request may have
    waited as long as `waits` says for its group, in ms.
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


def of_untold_metadata(comparison: Sequence[Row]) -> dict[str, float]:
    """Give, for each group, when it first rebalanced for metadata that seemed to be as before.

    Where the request log tells the length of metadata alone, they may have changed all the same.
    """
    first: dict[str, float] = {}
    for row in comparison:
        undue = row["outcome"] in ("unexpected", "wrong_reason")
        untold = undue and row["observed_reason"] == "member_metadata"
        if untold and row["observed_started_ms"] is not None:
            group, at_ms = row["group"], row["observed_started_ms"]
            first[group] = min(first.get(group, at_ms), at_ms)
    return first


def without_proof(found: Sequence[Finding], gaps: Mapping[str, float]) -> list[Finding]:
    """Take back what missing evidence of its group might explain; `gaps` gives the first, in ms."""
    return [
        replace(finding, proven=False)
        if finding.group in gaps and finding.at_ms + LATE_MS >= gaps[finding.group]
        else finding
        for finding in found
    ]
