"""A driver of `step` for one group: its clock, its armed timers, its writes, its stored record."""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Protocol

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Arm, Disarm, Effect, Persist
from reference_coordinator.classic.events import (
    Choices,
    Event,
    LoadStarted,
    RecordWritten,
    Timer,
    TimerFired,
    Unloaded,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import Step, step
from reference_coordinator.frozen import frozen_dataclass


class Agenda:
    """What happens when, in virtual time (ms); what is due at one time happens in turn."""

    def __init__(self, now_ms: float = 0.0) -> None:
        self.now_ms = now_ms
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()

    def at(self, at_ms: float, act: Callable[[], object]) -> None:
        """Let something happen at a time, or at once if that has passed."""
        heapq.heappush(self._due, (max(at_ms, self.now_ms), next(self._numbers), act))

    def after(self, ms: float, act: Callable[[], object]) -> None:
        """Let something happen after a time."""
        self.at(self.now_ms + ms, act)

    def end(self) -> None:
        """Let nothing more happen."""
        self._due.clear()

    def run(self, until_ms: float = float("inf")) -> None:
        """Let all happen that is due before a time, which it then is; without, all there is."""
        while self._due and self._due[0][0] < until_ms:
            self.now_ms, _, act = heapq.heappop(self._due)
            act()
        if until_ms < float("inf"):
            self.now_ms = until_ms


class Schedule(Protocol):
    """What an `Agenda` is to a driver; its time may be real."""

    @property
    def now_ms(self) -> float:
        """What time it is."""

    def at(self, at_ms: float, act: Callable[[], object]) -> None:
        """Let something happen at a time."""


@frozen_dataclass(frozen=True)
class Write:
    """A write of a record (None: a tombstone); `request` is the one that waits for its outcome."""

    request: str | None
    record: GroupRecord | None
    began_ms: float


class Driver:
    """One group on one coordinator.

    Without an agenda, who drives lets timers expire (`fire`) and writes end (`end_write`).
    With one they do so by themselves, at the times that `expires_ms` and `write_ms` give.
    """

    def __init__(
        self, group: Group, profile: Profile, coordinator: Step = step,
        agenda: Schedule | None = None,
    ) -> None:  # fmt: skip
        self.group, self.profile, self.coordinator = group, profile, coordinator
        self.agenda = agenda
        self.now_ms = 0.0
        self.timers: dict[Timer, float] = {}
        """When each armed timer expires; of those of one time the one that was armed first."""
        self.writes: list[Write] = []
        """The writes under way, in their order in the log."""
        self.stored: Write | None = None
        """The last write that the log has."""

    # What who drives may say.

    def picks(self, new_member_id: str = "") -> Choices:
        """Return what the broker picks where Kafka leaves it open."""
        return Choices(new_member_id)

    def expires_ms(self, deadline_ms: float) -> float:
        """Return when a timer with this deadline expires."""
        return deadline_ms

    def write_ms(self) -> float:
        """Return how long a write takes that a request waits for."""
        return 0.0

    def outcome(self, _: Write) -> tuple[Error, bool]:
        """Return how a write ends: with which error, and whether the log has it."""
        return Error.NONE, True

    def decided(self, event: Event, before: Group, effects: tuple[Effect, ...]) -> None:
        """See what a step decided, before its effects; `before` is the group before it."""

    # What happens to the coordinator.

    def take(self, event: Event) -> tuple[Effect, ...]:
        """Let the coordinator take an event; return its effects."""
        before, self.now_ms = self.group, event.at_ms
        self.group, effects = self.coordinator(before, event, self.profile)
        if isinstance(event, LoadStarted | Unloaded):
            self.die()
        self.decided(event, before, effects)
        for effect in effects:
            self.absorb(effect)
        return effects

    def absorb(self, effect: Effect) -> None:
        """Do what an effect is for the broker to do."""
        match effect:
            case Arm():
                self._arm(effect.timer, effect.deadline_ms)
            case Disarm():
                self.timers.pop(effect.timer, None)
            case Persist():
                self.begin_write(Write(effect.request, effect.record, self.now_ms))

    def _arm(self, timer: Timer, deadline_ms: float) -> None:
        self.timers.pop(timer, None)
        self.timers[timer] = expires_ms = self.expires_ms(deadline_ms)
        if self.agenda is not None:
            self.agenda.at(expires_ms, lambda: self._fire_at(timer, expires_ms))

    def _fire_at(self, timer: Timer, expires_ms: float) -> None:
        if self.timers.get(timer) == expires_ms:
            assert self.agenda is not None
            self.now_ms = max(self.now_ms, self.agenda.now_ms)  # a loop may be late
            self.fire(timer)

    def fire(self, timer: Timer) -> None:
        """Let a timer expire, at its time."""
        self.now_ms = max(self.now_ms, self.timers.pop(timer))
        self.take(TimerFired(self.now_ms, timer, self.picks()))

    def begin_write(self, write: Write) -> None:
        """Start a write; one whose outcome nothing waits for is stored after those before it."""
        self.writes.append(write)
        if self.agenda is not None and write.request is not None:
            self.agenda.at(self.now_ms + self.write_ms(), lambda: self._write_ends(write))
        self._store_unawaited()

    def _write_ends(self, write: Write) -> None:
        if write in self.writes:
            assert self.agenda is not None
            self.now_ms = max(self.now_ms, self.agenda.now_ms)
            error, stored = self.outcome(write)
            self.end_write(write.request, error, stored=stored)

    def end_write(
        self, request: str | None = None, error: Error = Error.NONE, *, stored: bool | None = None
    ) -> None:
        """Let a write end: the oldest, or that of a request.

        `stored` tells whether the log has it; without, it has what came out well.
        """
        place = next(n for n, one in enumerate(self.writes) if request in (None, one.request))
        write = self.writes.pop(place)
        if error is Error.NONE if stored is None else stored:
            self.stored = write
        self._store_unawaited()
        assert write.request is not None
        self.take(RecordWritten(self.now_ms, write.request, error, self.picks()))

    def _store_unawaited(self) -> None:
        while self.writes and self.writes[0].request is None:
            self.stored = self.writes.pop(0)

    @property
    def stored_record(self) -> GroupRecord | None:
        """What a broker that loads the group finds in the log."""
        return None if self.stored is None else self.stored.record

    def die(self) -> None:
        """Lose what only the broker knew: its timers, and the writes under way."""
        self.timers.clear()
        self.writes.clear()
