"""The forecast of a run: how often each group was to rebalance, beside how often it did.

A forecast is no rule. What lies outside of it is named, and the verdict stays what it is.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

import msgspec

FILE = "forecast.json"
"""The forecast in a run folder, as `groupquake.simulate` made it before the run."""
NO_REASON = "none"
"""What `by_cause` counts rebalances as of which no line tells the reason."""


class Interval(NamedTuple):
    """From least to most, both included; `most` is None where nothing bounds it."""

    least: float
    most: float | None

    def __str__(self) -> str:
        """Return it as people read it: `2`, `1..3`, `0..`."""
        least, most = ("" if one is None else f"{one:.15g}" for one in self)
        return least if least == most else f"{least}..{most}"

    def holds(self, value: float) -> bool:
        """Whether a value lies in it."""
        return value >= self.least and (self.most is None or value <= self.most)

    def meets(self, other: "Interval") -> bool:
        """Whether both hold some value."""
        begins = max(self.least, other.least)
        return self.holds(begins) and other.holds(begins)

    def is_within(self, other: "Interval") -> bool:
        """Whether the other one holds each value of it."""
        return other.holds(self.least) and other.holds(inf if self.most is None else self.most)


class OfGroup(msgspec.Struct):
    """Rebalances of a group by phase and reason, where `total` is any."""

    rebalances: dict[str, dict[str, Interval]]


class Foreseen(msgspec.Struct):
    """What was foreseen of a run, by group."""

    groups: dict[str, OfGroup]


def beside(foreseen: Foreseen, groups: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the forecast beside what `groups` of a verdict have: a row each for `verdict.json`.

    In a phase with a rebalance of which no line tells the reason, only their number is compared.
    """
    for name, group in foreseen.groups.items():
        for phase, due in group.rebalances.items():
            seen = groups.get(name, {}).get("by_cause", {}).get(phase, {})
            observed = {"total": sum(seen.values()), **seen}
            is_open = "total" in due and due["total"].most is None
            other = Interval(0, None if is_open else 0)
            for reason in ("total",) if NO_REASON in seen else dict.fromkeys((*due, *observed)):
                expected = due.get(reason, other)
                count = observed.get(reason, 0)
                yield {
                    "group": name, "phase": phase, "reason": reason, "expected": str(expected),
                    "observed": count, "outside": not expected.holds(count),
                }  # fmt: skip


def outside(verdict: Mapping[str, Any]) -> list[str]:
    """Return a line for each number of a verdict that lies outside the forecast."""
    return [
        f"{row['group']}, {row['phase']}, {row['reason']}: {row['observed']} rebalances,"
        f" {row['expected']} foreseen"
        for row in verdict.get("forecast", ())
        if row["outside"]
    ]
