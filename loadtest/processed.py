"""What a member has processed: ranges of offsets, and records whose numbers do not follow.

A record counts as processed when the application gets it. The load's producers number the records
that they write to a partition, and the value of each is `PRODUCER NUMBER`: in a partition that is
read offset by offset, the numbers of a producer follow one another.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loadtest.history import now_ms
from loadtest.timing import QUIET_MS

_VALUE = re.compile(rb"([^@ ]+@[0-9]+) ([0-9]{1,18})")


def producer_since(name: str, at_ms: float) -> str:
    """Return the PRODUCER of values whose numbers begin at 1 at a time.

    One that was restarted counts anew, so that it needs another name.
    """
    return f"{name}@{at_ms:.0f}"


class Processed:
    """Takes what one member processed, in that order, and appends it to its history by `write`.

    A partition is its topic and its number; times are UTC epoch milliseconds.
    """

    def __init__(self, write: Callable[..., None]) -> None:
        self._append = write
        self._readings: dict[tuple[str, int], _Reading] = defaultdict(_Reading)
        self._misnumbered: list[dict[str, Any]] = []
        self._at_ms = self._written_ms = 0.0

    def offsets(
        self, partition: tuple[str, int], first: int, last: int, at_ms: float
    ) -> "_Reading":
        """Take the records from one offset to another, both included; return how far it reads."""
        reading = self._readings[partition]
        follows = first == reading.next
        if follows and reading.ranges:
            reading.ranges[-1][1] = last
        else:
            reading.ranges.append([first, last])
        if not follows:
            reading.numbers.clear()
        reading.next = last + 1
        self._at_ms = at_ms
        return reading

    def record(
        self, partition: tuple[str, int], offset: int, value: bytes | None, at_ms: float
    ) -> None:
        """Take a record with its value, which may be of another producer than the load's."""
        reading = self.offsets(partition, offset, offset, at_ms)
        if (read := _VALUE.fullmatch(value or b"")) is None:
            return
        producer, found = read[1], int(read[2])
        expected = reading.numbers.get(producer, found - 1) + 1
        reading.numbers[producer] = found
        if found != expected:
            self._misnumbered.append({
                "partition": name_of(partition), "offset": offset,
                "producer": producer.decode(errors="replace"), "expected": expected, "found": found,
            })  # fmt: skip

    def write_due(self) -> None:
        """Write what is not written yet, unless the last line is too new."""
        if self._at_ms and now_ms() - self._written_ms >= QUIET_MS:
            self.write()

    def write(self) -> None:
        """Write what is not written yet; times of these lines are those of the last record."""
        if not self._at_ms:
            return
        at_ms, self._at_ms, self._written_ms = self._at_ms, 0.0, now_ms()
        ranges = {}
        for partition, reading in self._readings.items():
            if reading.ranges:
                ranges[name_of(partition)], reading.ranges = reading.ranges, []
        self._append("processed", at_ms=at_ms, ranges=ranges)
        for one in self._misnumbered:
            self._append("misnumbered", at_ms=at_ms, **one)
        self._misnumbered.clear()


@dataclass(slots=True)
class _Reading:
    """How far a partition was read, and the ranges of it that are not written yet."""

    ranges: list[list[int]] = field(default_factory=list)
    next: int = -1
    numbers: dict[bytes, int] = field(default_factory=dict)
    """The last number of each producer, since the last gap in the offsets."""


def name_of(partition: tuple[str, int]) -> str:
    """Return a partition as `topic-number`."""
    return f"{partition[0]}-{partition[1]}"
