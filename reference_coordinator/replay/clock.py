"""When things happen in a hypothesis: its last event, and the timers that it has armed.

Evidence gives windows, not instants. A hypothesis steps through the likeliest instants and keeps,
for each, the earliest and the latest that it can have been. A timer's window begins and ends with
that of the event that armed it, plus the timer's delay. All times are UTC epoch ms.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import filterfalse
from operator import itemgetter

from reference_coordinator.classic.events import Event, JoinReceived, Timer, TimerKind
from reference_coordinator.classic.state import Group
from reference_coordinator.replay.candidates import Candidate, Due


@dataclass(slots=True)
class Clock:
    """The last event happened in [earliest_ms, latest_ms], most likely at now_ms.

    A `relaxed` clock takes the window of each event by itself, whatever came before it. It allows
    more orders than are possible. What it does not allow is therefore impossible, and there are
    fewer different states to search.
    """

    earliest_ms: float = 0.0
    now_ms: float = 0.0
    latest_ms: float = 0.0
    relaxed: bool = False

    def fork(self) -> "Clock":
        """Copy the clock."""
        return Clock(self.earliest_ms, self.now_ms, self.latest_ms, self.relaxed)

    def advance(self, candidate: Candidate, until_ms: float) -> None:
        """Let a candidate happen, no later than `until_ms`; time never goes back."""
        earliest_ms, at_ms, latest_ms = candidate[:3]
        if at_ms > self.now_ms:
            self.now_ms = max(self.now_ms, min(at_ms, until_ms))
        if self.relaxed:
            self.earliest_ms, self.latest_ms = earliest_ms, latest_ms
        else:
            if earliest_ms > self.earliest_ms:
                self.earliest_ms = earliest_ms
            self.latest_ms = min(until_ms, latest_ms)

    def advance_in_order(self, candidate: Candidate) -> None:
        """Let a candidate happen that nothing else can be in the place of (the fast path)."""
        if candidate.at_ms > self.now_ms:
            self.now_ms = candidate.at_ms
        if candidate.earliest_ms > self.earliest_ms:
            self.earliest_ms = candidate.earliest_ms
        self.latest_ms = candidate.latest_ms

    def happened_by(self, latest_ms: float) -> None:
        """Narrow the window: a response shows that the last event happened by then."""
        if not self.relaxed:
            self.latest_ms = min(self.latest_ms, latest_ms)

    def within(self, from_ms: float, to_ms: float) -> None:
        """Narrow the window to where it meets another; nothing is to be narrowed by infinity."""
        if not self.relaxed and from_ms <= to_ms:
            self.earliest_ms = max(self.earliest_ms, from_ms)
            self.latest_ms = max(self.earliest_ms, min(self.latest_ms, to_ms))

    def covers(self, other: "Clock") -> bool:
        """Tell whether this window begins no later than another, so that it allows as much."""
        return self.relaxed or self.earliest_ms <= other.earliest_ms

    def widen(self, other: "Clock") -> None:
        """Let the window begin as early as another."""
        self.earliest_ms = min(self.earliest_ms, other.earliest_ms)


_NEVER = float("inf")
_MEMBER_ID = itemgetter(Timer._fields.index("member_id"))


@dataclass(slots=True)
class ArmedTimers:
    """The `running` timers, and the session timers that were `overtaken`.

    An overtaken timer was restarted, or stopped, at a time at which it may have expired already.
    Under a profile with `overtaken_expiry_counts` its session may end all the same, so it is noted
    if `keeps_overtaken`. `early_ms` is the reading error of times, see `Tolerance`.
    """

    early_ms: float = 0.0
    keeps_overtaken: bool = False
    running: dict[Timer, Due] = field(default_factory=dict)
    overtaken: Mapping[Timer, Due] = field(default_factory=dict)
    first: Timer | None = None
    first_ms: float = _NEVER
    """No running timer expires before; `first` is the one that then does, if it still runs."""

    def fork(self) -> "ArmedTimers":
        """Copy the timers."""
        return ArmedTimers(
            self.early_ms,
            self.keeps_overtaken,
            dict(self.running),
            self.overtaken,
            self.first,
            self.first_ms,
        )

    def may_expire(self, until_ms: float) -> bool:
        """Tell whether a timer may expire by a time."""
        limit = until_ms + self.early_ms
        if self.overtaken:
            return True
        if self.first_ms > limit:
            return False
        running = self.running
        due = running.get(self.first) if self.first else None
        if due is None or due.earliest_ms > self.first_ms:
            self.first = min(running, key=running.__getitem__, default=None)
            self.first_ms = running[self.first].earliest_ms if self.first else _NEVER
        return self.first_ms <= limit

    def arm(
        self, timer: Timer, deadline_ms: float, clock: Clock, cause: Candidate, of_pending: bool
    ) -> None:
        """Start or restart a timer; its window is as wide as that of the event behind it."""
        if self.first_ms - self.early_ms <= cause.latest_ms:
            self.overtake(timer, cause)
        delay_ms = deadline_ms - clock.now_ms
        earliest_ms, latest_ms = clock.earliest_ms + delay_ms, clock.latest_ms + delay_ms
        extends = cause.on_time_ms < _NEVER and cause.cause == timer
        on_time_ms = cause.on_time_ms + delay_ms if extends else _NEVER
        self.running[timer] = Due(earliest_ms, deadline_ms, latest_ms, of_pending, on_time_ms)
        if earliest_ms < self.first_ms:
            self.first, self.first_ms = timer, earliest_ms

    def disarm(self, timer: Timer, cause: Candidate) -> None:
        """Stop a timer, if it runs."""
        if timer in self.running and self.running[timer].of_pending:
            self.overtake(timer, cause)
        self.running.pop(timer, None)

    def expire(self, timer: Timer, cause: Candidate) -> None:
        """Let a running timer expire."""
        self.overtake(timer, cause)
        del self.running[timer]

    def overtake(self, timer: Timer, cause: Candidate) -> None:
        """Note a session timer that expires, or that is restarted when it may have expired."""
        if timer.kind is not TimerKind.SESSION or not self.keeps_overtaken:
            return
        due = self.running.get(timer)
        if due is not None and due.earliest_ms - self.early_ms <= cause.latest_ms:
            self.overtaken = {**self.overtaken, timer: due}

    def clear(self) -> None:
        """Stop all running timers."""
        self.running.clear()

    def rename(self, names: Mapping[str, str]) -> None:
        """Put the timers of members under the ids that these turned out to have."""
        self.running = {renamed_timer(timer, names): due for timer, due in self.running.items()}

    def drop_stale(self, before: Group, after: Group, event: Event) -> None:
        """Drop the timers of members that have left, or have another id; they have no effect."""
        grown = len(after.members.by_id) - len(before.members.by_id)
        as_many = not grown and len(after.pending_joins) == len(before.pending_joins)
        one_came = grown == 1  # and nobody went with it
        if one_came or (as_many and after.static_ids is before.static_ids):
            return
        ids: Iterable[str] = map(_MEMBER_ID, self.running)
        if as_many and isinstance(event, JoinReceived) and not event.member_id:
            replaced = before.static_ids.get(event.group_instance_id or "")
            if replaced is not None:  # nobody else went, or there were fewer
                ids = (replaced,)
        gone = filterfalse(after.members.by_id.__contains__, ids)
        known = {*after.pending_joins, *after.removed_pending_joins, ""}
        for member_id in [each for each in gone if each not in known]:
            self.running.pop(Timer(TimerKind.SESSION, member_id), None)

    def covers(self, other: "ArmedTimers") -> bool:
        """Tell whether these windows contain those of the same timers of another hypothesis."""
        return (
            other.overtaken.keys() <= self.overtaken.keys()
            and all(_within(due, self.running[timer]) for timer, due in _unequal(other, self))
            and all(_within(due, self.overtaken[timer]) for timer, due in other.overtaken.items())
        )

    def widen(self, other: "ArmedTimers", *, without_end: bool) -> None:
        """Let these windows contain those of the same timers of another hypothesis.

        A window that grows ends never then, if it is to be `without_end`.
        """
        for timer, due in _unequal(self, other):
            both = _containing(due, other.running[timer])
            if without_end and both.latest_ms > other.running[timer].latest_ms:
                both = both._replace(latest_ms=_NEVER)
            self.running[timer] = both
        for timer, due in other.overtaken.items():
            both = _containing(due, self.overtaken.get(timer, due))
            self.overtaken = {**self.overtaken, timer: both}
        self.first_ms = min(self.first_ms, other.first_ms)


def renamed_timer(timer: Timer, names: Mapping[str, str]) -> Timer:
    """Return a timer under the id that its member turned out to have."""
    name = names.get(timer.member_id)
    return timer if name is None else Timer(timer.kind, name)


def _unequal(one: ArmedTimers, other: ArmedTimers) -> list[tuple[Timer, Due]]:
    """List the running timers whose windows differ from those of the same timers in another.

    Two orders of the same events leave most timers as they were, even of a thousand members.
    """
    running = other.running
    return [(timer, due) for timer, due in one.running.items() if due is not running[timer]]


def _within(inner: Due, outer: Due) -> bool:
    return (
        outer.earliest_ms <= inner.earliest_ms
        and outer.latest_ms >= inner.latest_ms
        and outer.on_time_ms >= inner.on_time_ms
    )


def _containing(one: Due, other: Due) -> Due:
    """Return the first of two windows, as wide as it takes to contain both."""
    return one._replace(
        earliest_ms=min(one.earliest_ms, other.earliest_ms),
        latest_ms=max(one.latest_ms, other.latest_ms),
        on_time_ms=max(one.on_time_ms, other.on_time_ms),
    )
