"""The rows of the comparison as the page shows them: what was observed beside what was expected."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports.judgement.findings import began_ms
from reports.page.wording import offset, seconds

Row = Mapping[str, Any]
Json = dict[str, Any]

CELLS = ("started", "reason", "generation", "members", "leader", "took")
TIMES = ("started", "took")
"""Cells that may differ by some milliseconds without being a difference."""
ROWS_SHOWN = 400
"""How many rows of the comparison are shown, differences first; `tables/comparison` has all."""


def comparison_rows(
    comparison: Iterable[Row], groups: Sequence[str], clients: Mapping[str, str], zero_ms: float
) -> dict[str, list[Json]]:
    """Return the rows to show of each of `groups`, with the cells of both sides.

    `sides` are the cells of the observed and of the expected rebalance, None where there is none.
    """
    mine = sorted((row for row in comparison if row["group"] in groups), key=began_ms)
    kept = sorted(range(len(mine)), key=lambda at: mine[at]["outcome"] == "match")[:ROWS_SHOWN]
    rows: dict[str, list[Json]] = {group: [] for group in groups}
    for row in (mine[at] for at in sorted(kept)):
        sides = [_side(row, side, clients, zero_ms) for side in ("observed", "expected")]
        shown = {"sides": sides, "differing": _differing(row, *sides)}
        rows[row["group"]].append({**row, **shown})
    return rows


def _differing(row: Row, observed: Json | None, expected: Json | None) -> set[str]:
    differing = {"started"} if row["off_by_ms"] else set()
    if observed and expected:
        differing |= {n for n in CELLS if n not in TIMES and observed[n] != expected[n]}
        if row["outcome"] == "match":  # before 3.0 no line names the leader, before 2.8 the members
            differing -= {n for n in ("members", "leader") if row[f"observed_{n}"] is None}
            if row["observed_started_ms"] is None:  # no answer tells when a rebalance began, or why
                differing -= {"reason", "generation"}
    return differing


def _side(row: Row, side: str, clients: Mapping[str, str], zero_ms: float) -> Json | None:
    """Return the cells of one side; None where that side has no such rebalance."""
    of = lambda name: row[f"{side}_{name}"]
    started_ms, joined_ms, ended_as = of("started_ms"), of("joined_ms"), of("ended_as")
    if started_ms is None and joined_ms is None:
        return None
    ended_ms = of("assigned_ms") or (joined_ms if ended_as == "empty" else None)
    static = of("static_members")
    return {
        "started": offset(started_ms, zero_ms),
        "reason": of("reason") or "-",
        "generation": f"{_or_dash(of('old_generation'))} → {_or_dash(of('generation'))}"
        + ("" if ended_as == "assigned" else f", {ended_as}"),
        "members": _or_dash(of("members")) + (f", {static} static" if static else ""),
        "leader": clients.get(of("leader"), of("leader")) or "-",
        "took": seconds(ended_ms - started_ms if ended_ms and started_ms else None, 3),
    }


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
