"""Offices: which broker had a group's offsets partition, and when, by the brokers' own lines.

These lines grow with brokers and partitions, not with requests: every task has all of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from reference_coordinator.replay import EpochEvent

Row = Mapping[str, Any]
Json = dict[str, Any]

SERVINGS = {
    "loading": "loading",
    "loaded": "loaded",
    "load_failed": "unloaded",
    "unload_started": "unloaded",
}
"""Templates that tell of a broker taking a partition up or giving it up."""
LINES = (*SERVINGS, "load_scheduled", "load_ignored", "starting", "shutting_down")
"""Templates of all lines that tell of offices."""
COLUMNS = ("broker", "line", "life", "at_ms", "template", "partition", "epoch")
"""What is needed of them."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load that a broker finished; those of a partition are numbered in order of time."""

    broker: str
    at_ms: float
    incarnation: int


@dataclass(slots=True)
class Offices:
    """Who had which partition. `partitions` is how many there are; None if no line tells of any."""

    partitions: int | None
    everywhere: list[EpochEvent] = field(default_factory=list)
    """When each broker started, opened, and ended."""
    servings: dict[int, list[EpochEvent]] = field(default_factory=lambda: defaultdict(list))
    loads: dict[int, list[Load]] = field(default_factory=lambda: defaultdict(list))
    repeated: dict[int, list[Json]] = field(default_factory=lambda: defaultdict(list))
    """Loads that nobody asked for, as unexpected lines (see `member_lines`) without a group."""

    def place(self, group: str) -> int | None:
        """Say which partition holds a group of which no line tells it; it never changes.

        A broker tells of every partition, those that it does not load too: so many there are.
        """
        return java_hash(group) % self.partitions if group and self.partitions else None

    def serving(self, partition: int | None) -> list[EpochEvent]:
        """List when which broker started, loaded or gave up a partition, or ended."""
        if partition is None:
            return []
        return [*self.servings.get(partition, ()), *self.everywhere]

    def incarnation(self, partition: int | None, broker: str, at_ms: float) -> int:
        """Return the number of the load that a broker last finished before a time, or 0.

        By broker, since one that was paused may go on for a while after it was replaced.
        """
        loads = self.loads.get(partition, ()) if partition is not None else ()
        mine = (load for load in loads if load.broker == broker and load.at_ms <= at_ms)
        return max((load.incarnation for load in mine), default=0)


def java_hash(group: str) -> int:
    """Return `Utils.abs(group.hashCode())`: by it, Kafka chooses the partition of a group."""
    units = memoryview(group.encode("utf-16-le", "surrogatepass")).cast("H")
    value = 0
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return min(value, (1 << 32) - value) % (1 << 31)


def offices(
    lines: Iterable[Row],
    lives: Iterable[Row],
    partitions: int | None,
    openings: Iterable[tuple[str, float]] = (),
) -> Offices:
    """Tell offices from the lines of the templates `LINES`, and from each life's last time.

    A broker ends as it begins to shut down, or with the last of all lines of that life. `openings`
    are the brokers (ids) that were seen to take requests, and when, in ms.
    """
    told = sorted(lines, key=lambda row: (row["broker"], row["line"]))
    found = Offices(partitions)
    found.everywhere += (EpochEvent(at_ms, broker, "opened") for broker, at_ms in openings)
    ends = {(row["broker"], row["life"]): row["last_ms"] for row in lives}
    for row in told:
        life = row["broker"], row["life"]
        if row["template"] == "starting":
            found.everywhere.append(EpochEvent(row["at_ms"], row["broker"], "started"))
        elif row["template"] == "shutting_down":
            ends[life] = min(ends.get(life, row["at_ms"]), row["at_ms"])
    for (broker, _), at_ms in sorted(ends.items()):
        if at_ms is not None:
            found.everywhere.append(EpochEvent(at_ms, broker, "ended"))
    _serve(found, told)
    _number(found, [row for row in told if row["template"] == "loaded"])
    return found


def _serve(found: Offices, told: Iterable[Row]) -> None:
    """Note who took a partition up or gave it up."""
    whose = itemgetter("broker", "partition")
    about = [r for r in told if r["partition"] is not None and r["template"] in LINES[:6]]
    about.sort(key=lambda row: (*whose(row), row["line"]))
    for (broker, partition), rows in groupby(about, key=whose):
        mine = list(rows)
        for row, following in zip(mine, [*mine[1:], None], strict=True):
            # Java says that it is about to load before it looks whether it has to
            ignored = following is not None and following["template"] == "load_ignored"
            kind = SERVINGS.get(row["template"])
            if kind is not None and not (row["template"] == "loading" and ignored):
                found.servings[partition].append(EpochEvent(row["at_ms"], broker, kind))


def _number(found: Offices, loaded: list[Row]) -> None:
    """Number the loads of each partition over all brokers, and find those nobody asked for.

    A leader epoch (KIP-101) is one broker's, and that loads once; before 2.8 no line tells it.
    Whether one that was restarted may have kept its epoch is left open.
    """
    first: dict[tuple[int, int], tuple[Row, int]] = {}
    for row in sorted(loaded, key=itemgetter("at_ms", "broker")):
        partition, epoch = row["partition"], row["epoch"]
        loads = found.loads[partition]
        loads.append(Load(row["broker"], row["at_ms"], len(loads) + 1))
        if epoch is None:
            continue
        before, count = first.get((partition, epoch), (row, 0))
        first[partition, epoch] = before, count + 1
        restarted = before["broker"] == row["broker"] and before["life"] != row["life"]
        if count and not restarted:
            found.repeated[partition].append(
                {
                    "kind": "loaded",
                    "subject": f"__consumer_offsets-{partition} in epoch {epoch}",
                    "nth": count + 1,
                    "outcome": "unexpected_line",
                    "at_ms": row["at_ms"],
                    "due_ms": None,
                    "broker": row["broker"],
                    "line": row["line"],
                }
            )
