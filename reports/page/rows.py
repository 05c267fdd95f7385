"""The comparison as the page's table: observed beside expected, differing cells marked."""

from collections.abc import Mapping, Sequence
from typing import Any

from reports.judgement.log.log_places import LogPlaces
from reports.page.wording import OUTCOMES, REASONS, offset, seconds

Row = Mapping[str, Any]
Json = dict[str, Any]

CELLS = ("started", "reason", "generation", "members", "leader", "took")
TIMES = ("started", "took")
"""Cells that may differ by some milliseconds without being a difference."""
ROWS_SHOWN = 400
"""How many rows the page shows, differences first; `tables/comparison` has all."""


def comparison_table(
    comparison: Sequence[Row],
    total: int,
    groups: Sequence[str],
    clients: Mapping[str, str],
    zero_ms: float,
    places: LogPlaces,
) -> Json:
    """Build the table: the rows of each of `groups`, and how many of all rows are left out."""
    mine = sorted((row for row in comparison if row["group"] in groups), key=_began_ms)
    kept = sorted(range(len(mine)), key=lambda at: mine[at]["outcome"] == "match")[:ROWS_SHOWN]
    shown = [mine[at] for at in sorted(kept)]
    return {
        "cells": CELLS,
        "groups": {
            group: [_row(row, clients, zero_ms, places) for row in shown if row["group"] == group]
            for group in groups
        },
        "left_out": total - len(shown),
    }


def _began_ms(row: Row) -> float:
    times = ("observed_started_ms", "observed_joined_ms", "expected_started_ms")
    return next((row[name] for name in times if row[name] is not None), 0.0)


def _row(row: Row, clients: Mapping[str, str], zero_ms: float, places: LogPlaces) -> Json:
    observed = _side(row, "observed", clients, zero_ms)
    expected = _side(row, "expected", clients, zero_ms)
    differing = {"started"} if row["off_by_ms"] else set()
    if observed and expected:
        differing |= {n for n in CELLS if n not in TIMES and observed[n] != expected[n]}
        if row["outcome"] == "match":  # before 3.0 no line names the leader, before 2.8 the members
            differing -= {n for n in ("members", "leader") if row[f"observed_{n}"] is None}
            if row["observed_started_ms"] is None:  # no answer tells when a rebalance began, or why
                differing -= {"reason", "generation"}
    cause = row["observed_member_id"] or row["expected_member_id"] or ""
    reason = row["observed_reason"] or row["expected_reason"] or ""
    return {
        "observed": observed,
        "expected": expected,
        "differing": differing,
        "why": f"{REASONS.get(reason, reason)} ({clients.get(cause, cause)})",
        "outcome": OUTCOMES[row["outcome"]],
        "match": row["outcome"] == "match",
        "off_by": f"{row['off_by_ms'] / 1000:+.3f}" if row["off_by_ms"] else "",
        "place": places.written(row["broker"], row["line"]) if row["broker"] else "",
    }


def _side(row: Row, side: str, clients: Mapping[str, str], zero_ms: float) -> Json | None:
    """Return the cells of one side; None where that side has no such rebalance."""
    of = {name: row[f"{side}_{name}"] for name in _READ}
    if of["started_ms"] is None and of["joined_ms"] is None:
        return None
    ended_ms = of["assigned_ms"] or (of["joined_ms"] if of["ended_as"] == "empty" else None)
    took_ms = ended_ms - of["started_ms"] if ended_ms and of["started_ms"] else None
    static = of["static_members"]
    return {
        "started": offset(of["started_ms"], zero_ms),
        "reason": of["reason"] or "-",
        "generation": f"{_or_dash(of['old_generation'])} → {_or_dash(of['generation'])}"
        + ("" if of["ended_as"] == "assigned" else f", {of['ended_as']}"),
        "members": _or_dash(of["members"]) + (f", {static} static" if static else ""),
        "leader": clients.get(of["leader"], of["leader"]) or "-",
        "took": seconds(took_ms, 3),
    }


_READ = (
    "started_ms", "joined_ms", "assigned_ms", "ended_as", "reason", "old_generation",
    "generation", "members", "static_members", "leader",
)  # fmt: skip


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
