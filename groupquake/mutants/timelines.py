"""The observed and the expected timeline of one group, and its lines about members, compared.

The same as `reports.timeline`, `reports.compare` and `reports.member_lines` do in Spark for all
groups of a run, row by row and with the same names, so that `reports.findings` can tell what of it
is a root; in plain Python, for one group that fits into memory.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from groupquake.mutants.recording import Line, Recording
from reference_coordinator.replay import Replay, Said
from reports.compare import BOTH, EARLY_MS, KEY, LATE_MS, OF_ONE_MEMBER, PAIR_MS
from reports.member_lines import KINDS

Row = dict[str, Any]
STEPS = ("preparing", "stabilized", "assignment", "empty")
UNNAMED = re.compile(r"-\?[^-]*$")
"""How ids end that no answer told."""
NEVER = ("joined_ms", "generation", "members", "assigned_members", "static_members", "assigned_ms")


def observed(recording: Recording, group: str) -> list[Row]:
    """Build the observed timeline, from coordinator lines alone."""
    loads = sorted(
        (line.at_ms, line.broker)
        for line in recording.loads(recording.partitions.get(group, ""))
        if line.template == "loaded"
    )

    def incarnation(line: Line) -> int:
        numbered = enumerate(loads, 1)
        mine = (n for n, (at_ms, by) in numbered if by == line.broker and at_ms <= line.at_ms)
        return max(mine, default=0)

    lines = [
        line
        for line in recording.lines
        if line.template in STEPS and line.fields.get("group") == group
    ]
    rows: list[Row] = []
    in_order = sorted(lines, key=lambda line: (incarnation(line), line.at_ms, line.number))
    for number, mine in groupby(in_order, key=incarnation):
        rows += _followed([_row(recording, group, number, part) for part in _cut(list(mine))])
    return rows


def _cut(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Cut lines where a rebalance begins, or a join phase ends that no line says has begun."""
    part: list[Line] = []
    for line in lines:
        ends = line.template in ("stabilized", "empty")
        if line.template == "preparing" or (ends and not (part and _began(part[-1]))):
            if part:
                yield part
            part = []
        part.append(line)
    if part:
        yield part


def _began(line: Line) -> bool:
    return line.template == "preparing"


def _row(recording: Recording, group: str, incarnation: int, lines: Sequence[Line]) -> Row:
    of = {line.template: line for line in reversed(lines)}
    began, stable, empty = of.get("preparing"), of.get("stabilized"), of.get("empty")
    joined, assigned = stable or empty, of.get("assignment")
    reason, member = recording.reason(began) if began else (None, None)
    generation = _number(joined, "generation")
    old = _number(began, "generation")
    if old is None and generation is not None:
        old = generation - 1
    return {
        "group": group,
        "incarnation": incarnation,
        "old_generation": old,
        "started_ms": began.at_ms if began else None,
        "reason": reason,
        "member_id": member,
        "joined_ms": joined.at_ms if joined else None,
        "generation": generation,
        "members": _number(stable, "members") if stable else (0 if empty else None),
        "assigned_members": _number(assigned, "members"),
        "static_members": _number(assigned, "static_members"),
        "leader": assigned.fields["member"] if assigned else None,
        "assigned_generation": _number(assigned, "generation"),
        "assignments": sum(line.template == "assignment" for line in lines),
        "assigned_ms": assigned.at_ms if assigned else None,
        "ended_as": "assigned" if assigned else ("empty" if empty else None),
        "broker": lines[0].broker,
        "line": (began or joined or lines[0]).number,
    }


def _followed(rows: list[Row]) -> list[Row]:
    """Say of rows that came to no end whether another followed."""
    for place, row in enumerate(rows):
        followed = any(other["started_ms"] is not None for other in rows[place + 1 : place + 2])
        row["ended_as"] = row["ended_as"] or ("superseded" if followed else "open")
    return rows


def _number(line: Line | None, name: str) -> int | None:
    return None if line is None else int(line.fields[name])


def expected(group: str, replay: Replay) -> list[Row]:
    """Give the oracle's rows the observed timeline's form: None where a thing never came."""
    rows = [{"group": group, **asdict(row)} for row in replay.rows]
    for row in rows:
        row |= {name: None for name in NEVER if row[name] < 0}
        row["leader"] = row["leader"] or None
    return rows


def compare(seen: Sequence[Row], due: Sequence[Row]) -> list[Row]:
    """Compare the timelines; one row per rebalance that either side has."""

    def same_key(o: Row, e: Row) -> bool:
        return all(o[name] == e[name] for name in KEY)

    def close(o: Row, e: Row) -> bool:
        return o["reason"] in (None, e["reason"]) and _apart(o, e) < PAIR_MS

    pairs: list[tuple[Row | None, Row | None]] = []
    rest_o, rest_e = list(seen), list(due)
    for alike in (same_key, close):
        found = _nearest(rest_o, rest_e, alike)
        pairs += found
        rest_o = [o for o in rest_o if all(o is not one for one, _ in found)]
        rest_e = [e for e in rest_e if all(e is not one for _, one in found)]
    pairs += [(o, None) for o in rest_o] + [(None, e) for e in rest_e]
    return [_judged(o, e) for o, e in pairs]


def _apart(o: Row, e: Row) -> float:
    for name in ("started_ms", "joined_ms"):
        if o[name] is not None and e[name] is not None:
            return float(abs(o[name] - e[name]))
    return 0.0


def _nearest(seen: list[Row], due: list[Row], alike: Any) -> list[tuple[Row, Row]]:
    """Pair each row with the nearest of those it may be, and no row twice."""
    pairs = []
    for o in seen:
        mine = [e for e in due if alike(o, e)]
        if not mine:
            continue
        e = min(mine, key=lambda e: _apart(o, e))
        rivals = [other for other in seen if alike(other, e)]
        if min(rivals, key=lambda other: _apart(other, e)) is o:
            pairs.append((o, e))
    return pairs


def _judged(o: Row | None, e: Row | None) -> Row:
    some = o or e
    assert some is not None
    row = {name: some[name] for name in KEY}
    for side, values in (("observed", o), ("expected", e)):
        row |= {f"{side}_{name}": values[name] if values else None for name in BOTH}
    off_by = _off_by(o, e)
    return row | {
        "outcome": _outcome(o, e, off_by),
        "off_by_ms": off_by,
        "broker": o["broker"] if o else None,
        "line": o["line"] if o else None,
    }


def _outcome(o: Row | None, e: Row | None, off_by: float) -> str:
    if o is None or (e is not None and o["started_ms"] is None):
        return "missing"
    if e is None or o["assignments"] > 1:
        return "unexpected"

    def unlike(*names: str) -> bool:
        return any(o[name] != e[name] for name in names)

    if unlike("reason") or (e["reason"] in OF_ONE_MEMBER and unlike("member_id")):
        return "wrong_reason"
    if e["ended_as"] == "unsure":
        return "match"
    assigned_elsewhere = (
        None not in (o["assigned_generation"], e["generation"])
        and o["assigned_generation"] != e["generation"]
    )
    if assigned_elsewhere or unlike("generation", "old_generation", "incarnation"):
        return "wrong_generation"
    if unlike("members", "assigned_members", "static_members", "leader", "ended_as"):
        return "wrong_members"
    return "match" if off_by == 0 else ("early" if off_by < 0 else "late")


def _off_by(o: Row | None, e: Row | None) -> float:
    """By how much the rebalance began, or its join phase ended, outside what was due; in ms."""
    if o is None or e is None:
        return 0.0
    if o["started_ms"] is not None:
        if o["started_ms"] < e["earliest_ms"] - EARLY_MS:
            return float(o["started_ms"] - e["earliest_ms"])
        if o["started_ms"] > e["latest_ms"] + EARLY_MS:
            return float(o["started_ms"] - e["latest_ms"])
    for name in ("joined_ms", "assigned_ms"):
        if o[name] is not None and e[name] is not None and abs(o[name] - e[name]) > LATE_MS:
            return float(o[name] - e[name])
    return 0.0


def compare_member_lines(recording: Recording, group: str, replay: Replay) -> list[Row]:
    """Give the lines about members that are missing, unexpected, early or late."""
    seen: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for one in sorted(recording.lines, key=lambda line: line.at_ms):
        if one.template in KINDS and one.fields.get("group") == group:
            name = "instance" if one.template == "static_replaced" else "member"
            seen[one.template, one.fields[name]].append(one)
    due: dict[tuple[str, str], list[Said]] = defaultdict(list)
    unnamed: dict[str, int] = defaultdict(int)
    for said in sorted(replay.said, key=lambda said: said.at_ms):
        if UNNAMED.search(said.subject):
            unnamed[said.line] += 1
        else:
            due[said.line, said.subject].append(said)
    rows: list[Row] = []
    for kind, subject in sorted(seen.keys() | due.keys()):
        lines, dues = seen[kind, subject], due[kind, subject]
        for nth in range(max(len(lines), len(dues))):
            line = lines[nth] if nth < len(lines) else None
            due_then = dues[nth] if nth < len(dues) else None
            outcome = _line_outcome(line, due_then)
            if outcome is not None:
                rows.append({
                    "group": group, "kind": kind, "subject": subject, "nth": nth + 1,
                    "outcome": outcome,
                    "at_ms": line.at_ms if line else None,
                    "due_ms": due_then.at_ms if due_then else None,
                    "broker": line.broker if line else None,
                    "line": line.number if line else None,
                })  # fmt: skip
    unexpected: dict[str, int] = defaultdict(int)
    for row in rows:
        unexpected[row["kind"]] += row["outcome"] == "unexpected_line"
    return [
        row
        for row in rows
        if row["outcome"] != "unexpected_line"
        or not unnamed[row["kind"]]
        or unexpected[row["kind"]] > unnamed[row["kind"]]
    ]


def _line_outcome(line: Line | None, said: Said | None) -> str | None:
    if line is None:
        return "missing_line"
    if said is None:
        return "unexpected_line"
    if line.at_ms < said.earliest_ms - EARLY_MS:
        return "early_line"
    return "late_line" if line.at_ms > said.latest_ms + EARLY_MS else None
