"""The comparison: observed and expected timeline of a group, row by row.

Rows pair by (incarnation, old generation). Rows left over on both sides pair by time and reason, so
that a changed generation is one difference and not two.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any

from reference_coordinator.classic import CLASSIC
from reference_coordinator.replay import Stall
from reference_coordinator.replay.lateness import Lateness, lateness_of
from reports.judgement.rows import Json, Row
from reports.judgement.timelines.member_lines import UNNAMED
from reports.judgement.timelines.timeline import UUID
from reports.timing import EARLY_MS, LINE_LATE_MS, PAIR_MS, TIMER_SLACK_MS

Rows = Mapping[int, Row]  # rows by their places
Candidates = Callable[[Rows, Rows], Iterable[tuple[int, int]]]
"""Says which observed and expected rows may be the same rebalance, by their places."""

OF_ONE_MEMBER = (
    "new_member", "static_replaced", "member_metadata", "leader_rejoin", "join_reason",
    "protocol_change", "session_expired",
)  # fmt: skip
"""Reasons that concern one member, named by its id."""
MEMBERSHIP = ("leader", "members", "assigned_members", "static_members")
"""Columns about the members after a rebalance, which some releases do not log."""

KEY = ("group", *CLASSIC.row_key)
BOTH = {
    "old_generation": "INT", "started_ms": "DOUBLE", "reason": "STRING", "member_id": "STRING",
    "joined_ms": "DOUBLE", "generation": "INT", "members": "INT", "assigned_members": "INT",
    "static_members": "INT", "leader": "STRING", "assigned_ms": "DOUBLE", "ended_as": "STRING",
}  # fmt: skip
"""The columns that both timelines have, and their types."""
COMPARISON = ", ".join(
    (
        "group STRING, incarnation INT, old_generation INT",
        *(f"{side}_{name} {kind}" for side in ("observed", "expected")
          for name, kind in BOTH.items()),
        "outcome STRING, off_by_ms DOUBLE, broker STRING, line LONG",
    )
)  # fmt: skip


def compare(
    observed: Sequence[Row], expected: Sequence[Row], stalls: Sequence[Stall] = ()
) -> list[Json]:
    """Compare a group's timelines: one row per rebalance of either side, in order of time.

    `stalls` are the times in which brokers stood still.
    """
    lateness = lateness_of({row["broker"] for row in observed}, stalls)

    def row(o: Row | None, e: Row | None) -> Json:
        off_by_ms = _off_by_ms(o, e, lateness[o["broker"]]) if o and e else 0.0
        return _row(o, e, _outcome(o, e, off_by_ms), off_by_ms)

    return sorted(starmap(row, _paired(observed, expected, _same, _similar)), key=began_ms)


def compare_generations(
    observed: Sequence[Row], expected: Sequence[Row], *, certain: bool
) -> list[Json]:
    """Compare timelines at level `wire`, as `compare`: by incarnation and generation alone.

    What no answer tells of is compared with nothing: it is a match. A generation that the replay
    does not have is unexpected, if the replay is `certain` of the group's state all the time.
    """
    of_generation = partial(_same, names=("incarnation", "generation"))
    outcome = lambda e: "unexpected" if e is None and certain else "match"
    pairs = _paired(observed, expected, of_generation)
    return sorted((_row(o, e, outcome(e)) for o, e in pairs), key=began_ms)


def _paired(
    observed: Sequence[Row], expected: Sequence[Row], *rules: Candidates
) -> Iterator[tuple[Row | None, Row | None]]:
    """Pair rows by a rule, the nearest first, and what is left over by the next one.

    Rows of one side come last.
    """
    seen, due = dict(enumerate(observed)), dict(enumerate(expected))
    for may_be in rules:
        for _, i, j in sorted((_apart_ms(seen[i], due[j]), i, j) for i, j in may_be(seen, due)):
            if i in seen and j in due:
                yield seen.pop(i), due.pop(j)
    yield from ((o, None) for o in seen.values())
    yield from ((None, e) for e in due.values())


def _same(seen: Rows, due: Rows, names: Sequence[str] = KEY) -> Iterator[tuple[int, int]]:
    """Yield the places of rows with the same incarnation and old generation, or other columns."""
    of_key: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for j, e in due.items():
        of_key[tuple(e[name] for name in names)].append(j)
    for i, o in seen.items():
        key = tuple(o[name] for name in names)
        yield from ((i, j) for j in of_key.get(key, ()) if None not in key)


def _similar(seen: Rows, due: Rows) -> Iterator[tuple[int, int]]:
    """Yield the places of rows that may be the same rebalance by time and reason."""
    for i, o in seen.items():
        for j, e in due.items():
            # a row without its "Preparing" line has no reason to compare
            if o["reason"] in (None, e["reason"]) and _apart_ms(o, e) < PAIR_MS:
                yield i, j


def _apart_ms(o: Row, e: Row) -> float:
    """Return the ms between two rows: between their starts, else the ends of their join phases."""
    for name in ("started_ms", "joined_ms"):
        if o[name] is not None and e[name] is not None:
            return float(abs(o[name] - e[name]))
    return 0.0


def began_ms(row: Row) -> float:
    """Return when a rebalance of the comparison began, in ms: its first known time."""
    known = ("observed_started_ms", "observed_joined_ms", "expected_started_ms")
    times = (row[name] for name in (*known, "observed_assigned_ms") if row[name])
    return float(next(times, 0.0))


def _row(o: Row | None, e: Row | None, outcome: str, off_by_ms: float = 0.0) -> Json:
    """Return the row of `COMPARISON` of a pair; one of the two may be missing."""
    either = lambda name: next((row[name] for row in (o, e) if row and row[name] is not None), None)
    return {
        **{name: either(name) for name in KEY},
        **{f"observed_{name}": o and o[name] for name in BOTH},
        **{f"expected_{name}": e and e[name] for name in BOTH},
        "outcome": outcome,
        "off_by_ms": off_by_ms,
        "broker": o and o["broker"],
        "line": o and _place(outcome, o, e),
    }


def _outcome(o: Row | None, e: Row | None, off_by_ms: float) -> str:
    if o is None or (o["started_ms"] is None and e is not None):
        return "missing"
    if e is None or o["assignments"] > 1:
        return "unexpected"
    unlike = lambda *names: any(o[name] != e[name] for name in names)
    # a batch of leaving members is named as a whole, a failed assignment by its leader
    of_another = not _same_member(o["member_id"], e["member_id"])
    if unlike("reason") or (of_another and e["reason"] in OF_ONE_MEMBER):
        return "wrong_reason"
    if e["ended_as"] == "unsure":  # the replay does not know the state here: the root is elsewhere
        return "match"
    assigned = o["assigned_generation"], e["generation"]
    if unlike("generation", "old_generation", "incarnation") or (
        None not in assigned and assigned[0] != assigned[1]
    ):
        return "wrong_generation"
    # before 3.0 no line names the leader, before 2.8 none has the number of members
    logged = (name for name in MEMBERSHIP if o[name] is not None)
    if unlike("ended_as", *logged):
        return "wrong_members"
    return "early" if off_by_ms < 0 else "late" if off_by_ms > 0 else "match"


def _same_member(observed: str | None, expected: str | None) -> bool:
    """Compare member ids; of an id that no response names, what is not random.

    A JoinGroup may end in an error although the coordinator keeps the member that it created.
    """
    client, unnamed, _ = (expected or "").partition(UNNAMED)
    if not unnamed:
        return observed == expected
    return UUID.fullmatch((observed or "").removeprefix(f"{client}-")) is not None


def _place(outcome: str, o: Row, e: Row | None) -> int | None:
    """Return the number of the line that differs."""
    lines: tuple[int | None, ...]
    unlike = lambda name: e is None or o[name] != e[name]
    started, joined, assigned = (o[f"{name}_line"] for name in ("started", "joined", "assigned"))
    lines = started, joined
    if outcome == "wrong_generation":
        lines = joined if unlike("generation") else assigned, joined, started
        if unlike("old_generation"):
            lines = started, joined
    elif outcome == "wrong_members":
        counted = o["members"] is not None and unlike("members")
        lines = (joined,) if counted else (assigned, joined, started)
    return next((line for line in lines if line is not None), None)


def _off_by_ms(o: Row, e: Row, lateness: Lateness) -> float:
    """Return by how many ms the start, or the end of a phase, is outside of its bounds.

    The bounds of the start know of stalls, as the replay has them.
    """
    started = o["started_ms"]
    if started is not None and started < e["earliest_ms"] - EARLY_MS:
        return float(started - e["earliest_ms"])
    if started is not None and started > e["latest_ms"] + EARLY_MS:
        # an answer shows that a write failed: the line follows it, and waits for its thread
        follows = e["reason"] == "assignment_error"
        if not follows or started > lateness.latest(e["latest_ms"], EARLY_MS):
            return float(started - e["latest_ms"])
    for name in ("joined_ms", "assigned_ms"):
        if o[name] is None or e[name] is None:
            continue
        earliest_ms = min(e[name] - TIMER_SLACK_MS, lateness.earliest(e[name], TIMER_SLACK_MS))
        if not earliest_ms <= o[name] <= lateness.latest(e[name], LINE_LATE_MS):
            return float(o[name] - e[name])
    return 0.0
