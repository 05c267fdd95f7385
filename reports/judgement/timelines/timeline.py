"""The observed timeline of a group: one row per rebalance, from coordinator lines alone.

A partition is handled by one thread, so a group's lines stand in the order of its transitions. A
rebalance starts with its "Preparing" line and has all lines up to the next one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from kafka_protocol.coordinator_lines import Grammar
from reference_coordinator.replay import Hint, HintKind

Line = Mapping[str, Any]  # a row of the table `transitions`
Row = dict[str, Any]

OBSERVED = """
    group STRING, incarnation INT, old_generation INT, row LONG, started_ms DOUBLE, reason STRING,
    client_reason STRING, member_id STRING, joined_ms DOUBLE, generation INT, members INT,
    assigned_members INT, static_members INT, leader STRING, assigned_generation INT,
    assignments LONG, assigned_ms DOUBLE, ended_as STRING, duration_ms DOUBLE, broker STRING,
    started_line LONG, joined_line LONG, assigned_line LONG
"""
NOTHING: Row = dict.fromkeys(column.split()[0] for column in OBSERVED.split(","))
"""A row of a rebalance of which nothing is known."""
STEPS = ("preparing", "stabilized", "assignment", "empty")
"""Templates of the lines that a rebalance writes."""
HINTS = {
    "preparing": HintKind.PREPARING,
    "session_expired": HintKind.SESSION_EXPIRED,
    "pending_expired": HintKind.SESSION_EXPIRED,
    "stabilized": HintKind.JOIN_PHASE_ENDED,
    "empty": HintKind.JOIN_PHASE_ENDED,
    "nobody_rejoined": HintKind.NOBODY_REJOINED,
    "static_added": HintKind.JOINED,
    "dynamic_given_id": HintKind.JOINED,
    "dynamic_added": HintKind.JOINED,
    "member_added": HintKind.JOINED,
    "pending_joins": HintKind.PENDING_JOINED,
    "static_replaced": HintKind.REPLACED,
    "left": HintKind.LEFT,
    "pending_left": HintKind.LEFT,
    "assignment": HintKind.ASSIGNED,
    "persist_failed": HintKind.PERSIST_FAILED,
}  # templates of lines that mark an instant, and the oracle's name of that instant
OF_REJOIN = ("member_metadata", "leader_rejoin")
"""The reasons of rebalances that begin with a JoinGroup of a member that knows its id."""


def hints(lines: Iterable[Line], grammar: Grammar) -> list[Hint]:
    """List the lines that mark when a timer fired, or when a request was handled."""
    found = []
    alone = grammar.lines_instead.get("pending_joins", "pending_joins") is None
    for line in lines:
        about = line["instance" if line["template"] == "static_replaced" else "member"] or ""
        marks = [(HINTS[line["template"]], about)] if line["template"] in HINTS else []
        if line["template"] == "preparing":
            why, member = reason(line, grammar)
            if why == "pending_sync":
                marks.append((HintKind.SYNC_EXPIRED, about))
            elif why == "new_member" and member and alone:  # no other line of one that joins
                marks.append((HintKind.PENDING_JOINED, member))
            elif why in OF_REJOIN:
                marks.append((HintKind.REJOINED, member))
        generation = -1 if line["generation"] is None else line["generation"]
        found += [
            Hint(line["at_ms"], kind, named, generation, line["broker"]) for kind, named in marks
        ]
    return found


def reason(line: Line, grammar: Grammar) -> tuple[str | None, str]:
    """Return the class of the reason in a "Preparing" line, and the member id in it.

    Text that matches no class is returned as it is, with an empty member id.
    """
    text = line["reason"]
    return (grammar.classed(text) if text else None) or (text, "")


def client_reason(line: Line) -> str | None:
    """Return the reason that the client gave (KIP-800, from 3.2 on), or None.

    The coordinator writes `not provided` if the client gave none.
    """
    _, _, given = (line["reason"] or "").partition("; client reason: ")
    return given if given not in ("", "not provided") else None


def observed(
    group: str, lines: Iterable[Line], grammar: Grammar, incarnation: Callable[[str, float], int]
) -> list[Row]:
    """Build the timeline of a group; the column `row` numbers the rebalances of an incarnation.

    `incarnation` returns the number of the load that a broker (id) last finished before a time, in
    ms. The end of a join phase without a "Preparing" line gets a row of its own.
    """
    placed: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        if line["template"] in STEPS:
            placed[incarnation(line["broker"], line["at_ms"])].append(line)
    found: list[Row] = []
    for number in sorted(placed):
        rows: list[Row] = [
            {"group": group, "incarnation": number, "row": row} | _rebalance(mine, grammar)
            for row, mine in _rebalances(placed[number])
        ]
        for row, after in zip_longest(rows, rows[1:], fillvalue={"started_ms": None}):
            _end(row, after["started_ms"])
        found += rows
    return found


def _rebalances(lines: Iterable[Line]) -> Iterable[tuple[int, list[Line]]]:
    """Split the lines of an incarnation into rebalances; lines before the first have number 0."""
    rows: dict[int, list[Line]] = defaultdict(list)
    row, before = 0, "none"
    for line in sorted(lines, key=lambda line: (line["at_ms"], line["line"])):
        template = line["template"]
        ends = template in ("stabilized", "empty") and before != "preparing"
        row += template == "preparing" or ends
        rows[row].append(line)
        before = template
    return rows.items()


def _rebalance(lines: Sequence[Line], grammar: Grammar) -> Row:
    of = lambda *templates: (line for line in lines if line["template"] in templates)
    began: Line = next(of("preparing"), {})
    joined: Line = next(of("stabilized", "empty"), {})
    assigned = list(of("assignment"))
    least = lambda name: min((one[name] for one in assigned if one[name] is not None), default=None)
    is_empty, generation = joined.get("template") == "empty", joined.get("generation")
    before = None if generation is None else generation - 1
    why, member = reason(began, grammar) if began else (None, None)
    return {
        "old_generation": _first(began.get("generation"), before),
        "started_ms": began.get("at_ms"),
        "reason": why,
        "client_reason": client_reason(began) if began else None,
        "member_id": member,
        "joined_ms": joined.get("at_ms"),
        "generation": generation,
        "members": 0 if is_empty else joined.get("members"),
        "assigned_members": least("members"),
        "static_members": least("static_members"),
        "leader": least("member"),
        "assigned_generation": least("generation"),
        "assignments": len(assigned),
        "assigned_ms": least("at_ms"),
        "ended_as": "assigned" if assigned else "empty" if is_empty else None,
        "broker": lines[0]["broker"],
        "started_line": began.get("line"),
        "joined_line": joined.get("line"),
        "assigned_line": least("line"),
    }


def _end(row: Row, next_ms: float | None) -> None:
    """Set in its row how and when a rebalance ended."""
    ended_ms = _first(row["assigned_ms"], row["joined_ms"] if row["ended_as"] == "empty" else None)
    ended_ms = _first(ended_ms, next_ms)
    began_ms = _first(row["started_ms"], row["joined_ms"])
    row["ended_as"] = row["ended_as"] or ("open" if next_ms is None else "superseded")
    both = ended_ms is not None and began_ms is not None
    row["duration_ms"] = ended_ms - began_ms if both else None


def _first(value: Any, other: Any) -> Any:
    return other if value is None else value
