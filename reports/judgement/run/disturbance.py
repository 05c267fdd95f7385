"""Disturbances: when something else than the protocol may be why a broker did what it did.

Each has the broker that it concerns ("" for any), from when until when, its cause in words, where
that is known from, and the groups that it concerns (None for all).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from math import inf, isfinite
from typing import Any, Literal, NamedTuple

from reports.judgement.run.journal import Fault, healed_ms
from reports.timing import CLOCK_OFF_MS, METADATA_KNOWN_MS


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

    @property
    def is_of_machine(self) -> bool:
        """Whether it is of a whole machine, and its length is known."""
        return not self.broker and isfinite(self.lasted_ms)

    def meets(self, from_ms: float, until_ms: float) -> bool:
        """Whether it lies in a time, at least in part."""
        return self.from_ms <= until_ms and self.until_ms >= from_ms


Kill = tuple[str, float, float]
"""A broker (id) that was killed, and between when, in ms: the journal's intent, and its note."""


class Absence(NamedTuple):
    """A time in which a client of a group is down; `what` says by which fault."""

    group: str
    client: str
    from_ms: float
    until_ms: float
    what: str
    held_ms: float = 0.0
    """How long the tap may hold what the client had sent by then, as a rule of it says."""


class Act(NamedTuple):
    """What may be why members come and go: a fault, or the load, by which `what` says in words.

    It was done to `clients` of a group, to all where none is named; None stands for all groups. One
    that `freezes` them lets them go on as they are; one may give them an instance id (`gives_id`).
    One `excuses` them from their duties: the tap held up, dropped or doubled what they and brokers
    sent, or they had unsubscribed.
    """

    by: Literal["fault", "load"]
    group: str | None
    clients: frozenset[str]
    from_ms: float
    until_ms: float
    what: str
    freezes: bool = False
    gives_id: bool = False
    excuses: bool = False


def clock(at_ms: float) -> str:
    """Write a time of day, UTC, with ms."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%H:%M:%S.%f")[:-3]


UNPLACED = "its clock was set off by a fault, and its lines have no other that is known"


@dataclass(frozen=True, slots=True)
class Skew:
    """The clock of a broker (id) was ahead by so much; times in ms, from the intent to the heal."""

    broker: str
    from_ms: float
    to_ms: float
    by_ms: float

    def may_show(self, shown_ms: float) -> bool:
        """Whether a line that shows this time may be of then, by the wrong clock or the right."""
        return self.lasts_at(shown_ms) or self.lasts_at(shown_ms - self.by_ms)

    def lasts_at(self, at_ms: float) -> bool:
        """Whether the clock may be off at a time."""
        return self.from_ms - CLOCK_OFF_MS <= at_ms <= self.to_ms + CLOCK_OFF_MS


def skews(faults: Iterable[Fault]) -> Iterator[Skew]:
    """Yield the skews of a run; one that was not healed lasts to the end."""
    for fault in faults:
        if fault["clock_by_ms"] is not None and fault["broker"] is not None:
            from_ms, by_ms = fault["meant_at_ms"], fault["clock_by_ms"]
            yield Skew(fault["broker"], from_ms, healed_ms(fault), by_ms)


def of_broker(all_skews: Sequence[Skew], broker: str) -> tuple[Skew, ...]:
    """Return those of one broker."""
    return tuple(skew for skew in all_skews if skew.broker == broker)


def on_right_clock(seen: Iterable[Disturbance], of_one: Sequence[Skew]) -> Iterator[Disturbance]:
    """Yield the standstills that a broker's JVM logged by its wall clock, and when else they were.

    Its log has no other clock, so both times count where a fault may have set it off.
    """
    for one in seen:
        yield one
        for skew in of_one:
            if skew.may_show(one.until_ms):
                from_ms, until_ms = one.from_ms - skew.by_ms, one.until_ms - skew.by_ms
                yield replace(one, from_ms=from_ms, until_ms=until_ms)


DELETED = "topic.delete"


class Deletion(NamedTuple):
    """A topic is deleted after `from_ms`; every broker knows it by `known_ms`, if it works."""

    from_ms: float
    known_ms: float

    def ends(self, stored_ms: float, asked_ms: float) -> bool:
        """Tell whether what was stored before a time may be gone at another."""
        return stored_ms <= self.known_ms and asked_ms >= self.from_ms


Deletions = Mapping[str, Deletion]


def deletions(faults: Iterable[Mapping[str, Any]]) -> dict[str, Deletion]:
    """Return the deletions of topics, by their names; a topic is deleted once."""
    return {
        fault["target"]: Deletion(
            fault["meant_at_ms"], (fault["injected_at_ms"] or inf) + METADATA_KNOWN_MS
        )
        for fault in faults
        if fault["name"] == DELETED
    }


def of_partition(deleted: Deletions, name: str) -> Deletion | None:
    """Return the deletion of the topic of a partition, written `topic-number`, if there was one."""
    return deleted.get(name.rpartition("-")[0])
