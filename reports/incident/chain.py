"""A group's generations and coordinators: its lines in, in order of time; gaps in the logs out.

A rebalance leads from one generation to the next, in the Scala and the Java coordinator alike: both
raise it where the join phase ends (`initNextGeneration`). So a generation that no line tells is a
rebalance that is not in the logs. A generation goes back where a group is deleted or expires, and
where a coordinator ends before the record of the last one is written; then another chain begins.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from reports.incident.lines.reader import Line

MOST = 2**31 - 1
"""The highest generation: it is an INT32 in requests and records."""
_OF_FORMER = (
    "group_unloaded", "expiry_after_delete", "heartbeat_of_nobody", "late_sync_timer",
    "already_removed", "commit_failed", "metadata_failed", "persist_failed", "empty_failed", "dead",
)  # fmt: skip
"""The templates that a broker also writes when another already coordinates the group."""


class Missing(NamedTuple):
    """Generations that the group had, first and last, and no line tells that it reached.

    `rebalances` of them began after the line at `after_ms`, and not after that at `before_ms`: all
    but one whose beginning is in the logs.
    """

    from_generation: int
    until_generation: int
    after_ms: float
    before_ms: float
    rebalances: int


class Reset(NamedTuple):
    """The generation went back."""

    at_ms: float
    broker: str
    from_generation: int
    to_generation: int


class Coordinated(NamedTuple):
    """From the first to the last line that tells that a broker coordinated the group."""

    broker: str
    from_ms: float
    until_ms: float


@dataclass
class Chain:
    """What is known so far; `generation` is the group's at `known_ms`, if any line has it.

    `begun` is the generation that the last rebalance leads away from, unless it came to nothing.
    """

    generation: int | None = None
    known_ms: float | None = None
    begun: int | None = None
    missing: list[Missing] = field(default_factory=list)
    resets: list[Reset] = field(default_factory=list)
    coordinators: list[Coordinated] = field(default_factory=list)

    def is_former(self, line: Line) -> bool:
        """Tell whether a line is of a broker that coordinated the group before, and does not."""
        return line.template in _OF_FORMER and self._is_of_another(line)

    def moves(self, line: Line) -> bool:
        """Take the line as its coordinator's; return whether that is another one than before."""
        another = self._is_of_another(line)
        if another or (line.broker and not self.coordinators):
            self.coordinators.append(Coordinated(line.broker, line.at_ms, line.at_ms))
        elif self.coordinators:
            self.coordinators[-1] = self.coordinators[-1]._replace(until_ms=line.at_ms)
        return another

    def reach(self, generation: int, line: Line) -> None:
        """Take it that the group has a generation, by a line."""
        if generation > MOST:
            return
        if self.generation is not None and self.known_ms is not None:
            lacking = generation - self.generation - (self.begun == self.generation)
            if lacking > 0:
                first, after_ms = self.generation + 1, self.known_ms
                self.missing.append(Missing(first, generation, after_ms, line.at_ms, lacking))
            elif generation < self.generation:
                self.resets.append(Reset(line.at_ms, line.broker, self.generation, generation))
        self.generation, self.known_ms = generation, line.at_ms

    def _is_of_another(self, line: Line) -> bool:
        return bool(
            line.broker and self.coordinators and self.coordinators[-1].broker != line.broker
        )
