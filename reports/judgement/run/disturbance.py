"""Disturbances: when something else than the protocol may be why a broker did what it did.

Each has the broker that it concerns ("" for any), from when until when, its cause in words, where
that is known from, and the groups that it concerns (None for all).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple


class Source(StrEnum):
    """Where a disturbance is known from; what it may explain is `disturbances.EXPLAINS`."""

    PRESSURE = "cpu_pressure"
    STANDSTILL = "standstill"
    WRITES = "writes_after_standstill"
    ELECTION = "election"
    FAULT = "fault"
    LOG = "log"
    REQUESTS = "requests"
    UNSEEN = "unseen"
    CLOCK = "clock"
    HISTORY = "client_history"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A time in which something may have gone otherwise than the evidence shows; ms."""

    broker: str
    from_ms: float
    until_ms: float
    cause: str
    source: Source
    groups: frozenset[str] | None = None
    line: int | None = None
    """Where its broker's log lacks something: that line, or 0 for the whole log."""

    @property
    def lasted_ms(self) -> float:
        """How long it lasted."""
        return self.until_ms - self.from_ms

    @property
    def because(self) -> str:
        """Its cause; and the broker, where that does not name it."""
        return self.cause if self.line is None else f"{self.cause} (broker {self.broker})"

    def meets(self, from_ms: float, until_ms: float) -> bool:
        """Whether it lies in a time, at least in part."""
        return self.from_ms <= until_ms and self.until_ms >= from_ms


Kill = tuple[str, float, float]
"""A broker (id) that was killed, and between when, in ms: the journal's intent, and its note."""


class BrokenWire(NamedTuple):
    """A time in which the tap held up, dropped or doubled what a client and brokers sent."""

    group: str
    client: str
    from_ms: float
    until_ms: float


def clock(at_ms: float) -> str:
    """Write a time of day, UTC, with ms."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%H:%M:%S.%f")[:-3]
