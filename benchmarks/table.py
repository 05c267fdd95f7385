"""Figures beside their peers and goals, as text; quantiles, by the nearest rank.

So each quantile is a measured value.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

HEAD = ("", "peer in the same run", "figure", "goal", "")


class Line(NamedTuple):
    """A figure beside its peer, and its goal: at least (`more`) or at most so much."""

    what: str
    peer: str
    figure: float
    unit: str = ""
    goal: float | None = None
    more: bool = False

    @property
    def met(self) -> str:
        """Whether the goal is met, or by how much not."""
        if self.goal is None:
            return ""
        if self.figure >= self.goal if self.more else self.figure <= self.goal:
            return "met"
        if not self.goal:
            return f"no, {self.figure - self.goal:+.3g}"
        return f"no, by {abs(self.figure / self.goal - 1):.0%}"

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        goal = ""
        if self.goal is not None:
            goal = f"{'≥' if self.more else '≤'} {as_text(self.goal)} {self.unit}".strip()
        return self.what, self.peer, f"{as_text(self.figure)} {self.unit}".strip(), goal, self.met


def as_text(value: float) -> str:
    """Format a figure."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Align rows in columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            word.ljust(width) if place == 0 else word.rjust(width)
            for place, (word, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def markdown(rows: list[tuple[str, ...]]) -> str:
    """Return rows as a table of a page; the first is its head."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join((head, "|---|---|--:|--:|---|", *body)) + "\n"


def quantile(counted: Mapping[float, int], share: float) -> float:
    """Return a quantile of values, each counted. Raises ValueError if there are none."""
    rank, seen = max(1, ceil(share * sum(counted.values()))), 0
    for value in sorted(counted):
        seen += counted[value]
        if seen >= rank:
            return value
    raise ValueError("no values")


def p50(values: Iterable[float]) -> float:
    """Return the median, as the lower of two."""
    return quantile(Counter(values), 0.5)


def p99(values: Iterable[float]) -> float:
    """Return the p99."""
    return quantile(Counter(values), 0.99)
