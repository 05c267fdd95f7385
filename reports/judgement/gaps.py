"""Gaps: where evidence is missing or unreadable, and which of them a fault accounts for."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.judgement.broker_log import END_MISSING
from reports.judgement.run_folder import RunFolder

ENDS_OF_GROUPS = ("groups_deleted", "group_expired", "tombstones")
"""Templates of lines about groups that are deleted, or expire: their ids are named in no request
that the oracle is given, and who comes next finds no group."""
NOT_UNDERSTOOD = "line not understood"
KILL_MS = 1_000.0
"""How long after the note that it was killed a broker's last line may seem to stand."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A place where evidence is missing or unreadable; its time may be unreadable, too."""

    broker: str
    file: str
    line: int
    at_ms: float | None
    what: str

    def __str__(self) -> str:
        """Say where it is, and what; line 0 is none."""
        return f"{self.file}:{self.line}: {self.what}" if self.line else f"{self.file}: {self.what}"


def unreadable(row: Mapping[str, Any]) -> Gap:
    """Make a gap of a line that nothing understands."""
    what = f"{NOT_UNDERSTOOD}: {row['text'][:120]}"
    return Gap(row["broker"], row["file"], row["line"], row["at_ms"], what)


def missing(row: Mapping[str, Any]) -> Gap:
    """Make a gap of a hole in a log."""
    file = f"brokers/{row['broker']}/group.log"
    return Gap(row["broker"], file, row["line"], row["at_ms"], row["what"])


def untold(row: Mapping[str, Any]) -> Gap:
    """Make a gap of a coordinator's line after which a group may be gone unknown to the oracle."""
    what = f"a group may have been deleted, which is not replayed: {row['message'][:120]}"
    return Gap(row["broker"], row["file"], row["line"], row["at_ms"], what)


def gone(broker: str) -> Gap:
    """Make a gap of a whole log that is not there."""
    return Gap(broker, f"brokers/{broker}/group.log", 0, None, "the whole log is missing")


def miscounted(told: Mapping[str, int], run: RunFolder) -> list[Gap]:
    """Make gaps of logs that tell of fewer starts of their brokers than the journal, or of more.

    `told` counts those in each broker's log that is there. Where a log was cut exactly between two
    lives, nothing else shows it. A run that died has its journal's end from whoever put it right.
    """
    if not run.came_to_its_end:
        return []
    started = run.starts
    unsure = {fault["broker"] for fault in run.faults if fault["open"]}
    return [
        Gap(
            broker,
            f"brokers/{broker}/group.log",
            0,
            None,
            f"{count} starts of the broker are in the log, {started[broker]} in the journal",
        )
        for broker, count in told.items()
        if count < started[broker] or (count > started[broker] and broker not in unsure)
    ]


def left_open(gaps: Sequence[Gap], run: RunFolder, serving: Iterable[str]) -> list[Gap]:
    """Leave out what a run's own kills explain; `serving` are the brokers that served groups."""
    sessions = max(group.session_timeout_ms for group in run.experiment.workload.groups)
    left = without_kills(gaps, run.kills, dict.fromkeys(serving, sessions))
    return without_cuts(left, run.cut_short)


def without_kills(
    gaps: Sequence[Gap], kills: Sequence[tuple[str, float]], silence: Mapping[str, float]
) -> list[Gap]:
    """Leave out what kills explain: that a log ends there, and a last line cut off.

    `kills` are (broker, when); each ends one life of one log. What a broker has written is on disk
    when it is killed: `silence` says how long, in ms, one that served groups may have had nothing
    to write; a log that ends earlier was cut.
    """
    left = list(gaps)
    for broker, killed_ms in sorted(kills, key=lambda kill: kill[1]):
        ends = [
            gap
            for gap in left
            if (gap.broker, gap.what) == (broker, END_MISSING)
            and gap.at_ms is not None
            and killed_ms - silence.get(broker, float("inf")) <= gap.at_ms <= killed_ms + KILL_MS
        ]
        left = _without_last(left, ends)
    return left


def without_cuts(gaps: Sequence[Gap], cut_short: Collection[str]) -> list[Gap]:
    """Leave out that the last lives of brokers (ids) have no end: they were killed over it.

    Their logs are known to be as long as when they were killed.
    """
    left = list(gaps)
    for broker in cut_short:
        left = _without_last(left, [g for g in left if (g.broker, g.what) == (broker, END_MISSING)])
    return left


def _without_last(gaps: list[Gap], ends: Sequence[Gap]) -> list[Gap]:
    """Leave out the last of some ends of a log, with the half of a line that may follow it."""
    if not ends:
        return gaps
    end = max(ends, key=lambda gap: gap.line)
    return [gap for gap in gaps if gap != end and not _cut_off(gap, end)]


def _cut_off(gap: Gap, end: Gap) -> bool:
    """Tell whether a gap is the half of a line that follows the end of a log."""
    behind = (gap.broker, gap.line) == (end.broker, end.line + 1)
    return behind and gap.what.startswith(NOT_UNDERSTOOD)


def by_group(gaps: Sequence[Gap], spans: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Give, for each group, the earliest time that a gap of its evidence may have touched.

    `spans` give each group's longest wait in ms: a request that is missing may have waited as long
    as a rebalance lasts at the most. What is missing before the first request that is there may
    have been an earlier one, or how the coordinator loaded the group.
    """
    if not gaps:
        return {}
    first_ms = min(float("-inf") if gap.at_ms is None else gap.at_ms for gap in gaps)
    return {group: first_ms - (span["wait_ms"] or 0.0) for group, span in spans.items()}
