"""Coordinator lines as hints: they pick an instant inside a window, and never more than that.

A line says when the coordinator acted. It does not say that it was right to act: what it did is
checked against the answers, and the line itself against the expected timeline.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, lt

from kafka_protocol.errors import Error
from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.replay.evidence import (
    ONLY_RESTART_TIMERS,
    Hint,
    HintKind,
    ObservedRequest,
)
from reference_coordinator.timing import NEW_ID_SEEMS_LATE_MS, SEEMS_LATE_MS, WAITED_MS, WHOLE_MS

_TIMERS = {
    TimerKind.SESSION: HintKind.SESSION_EXPIRED,
    TimerKind.JOIN: HintKind.JOIN_PHASE_ENDED,
    TimerKind.SYNC: HintKind.SYNC_EXPIRED,
    TimerKind.WAIT: HintKind.PREPARING,
}

Key = tuple[HintKind, str | int]
"""What a line speaks of: a member, an instance, or a generation."""
OF_GENERATION = (HintKind.PREPARING, HintKind.JOIN_PHASE_ENDED, HintKind.ASSIGNED)
"""Hints that tell the generation. Who leads it is compared with the timeline: a leader assigns in
one generation after the other, within milliseconds, and a line before 3.0 does not name it."""
OF_REBALANCES = (*OF_GENERATION, HintKind.REJOINED)
OF_KNOWN_ID = (HintKind.PENDING_JOINED, HintKind.REJOINED)
"""Hints that tell when a JoinGroup with a member id was acted on."""

_AT_MS = attrgetter("at_ms")
_SEQUENCE = attrgetter("connection", "serial")
_PLACE = attrgetter("at_ms", "connection", "serial")


@dataclass(slots=True)
class Hints:
    """The instants of a group's hints, in order, found by what they speak of."""

    by_key: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(list))
    of_rebalances: set[HintKind] = field(default_factory=set)
    """The kinds among `OF_REBALANCES` that are there: so every step of these kinds has its line."""

    @classmethod
    def of(cls, hints: Iterable[Hint]) -> "Hints":
        """Sort hints by what they speak of."""
        sorted_hints = cls()
        for hint in hints:
            about = hint.generation if hint.kind in OF_GENERATION else hint.subject
            sorted_hints.by_key[hint.kind, about].append(hint.at_ms)
            if hint.kind in OF_REBALANCES:
                sorted_hints.of_rebalances.add(hint.kind)
        for times in sorted_hints.by_key.values():
            times.sort()
        return sorted_hints

    def of_timer(
        self, timer: Timer, generation: int, earliest_ms: float, latest_ms: float
    ) -> float | None:
        """Return when a timer expired; a join timer ends the phase that starts `generation`.

        The time-out of a wait begins a rebalance, whose line names the generation before.
        """
        of_wait = timer.kind is TimerKind.WAIT
        about: str | int = timer.member_id
        if of_wait or timer.kind is TimerKind.JOIN:
            about = generation - of_wait
        return self._nearest((_TIMERS[timer.kind], about), earliest_ms, earliest_ms, latest_ms)

    def of_extension(
        self,
        generation: int,
        delay_ms: float,
        left_ms: float,
        earliest_ms: float,
        latest_ms: float,
    ) -> float | None:
        """Return when an initial delay expired that was extended: it leaves no line of its own."""
        ends = self.by_key.get((HintKind.JOIN_PHASE_ENDED, generation), ())
        following = bisect_left(ends, earliest_ms)
        if following == len(ends) or delay_ms <= 0:
            return None
        return extended(ends[following], delay_ms, left_ms, earliest_ms, latest_ms)

    def of_failed_write(self, member_id: str, earliest_ms: float, latest_ms: float) -> float | None:
        """Return when the coordinator took a member's new id back; Scala names the group alone."""
        keys = ((HintKind.PERSIST_FAILED, about) for about in (member_id, ""))
        found = (self._nearest(key, earliest_ms, earliest_ms, latest_ms) for key in keys)
        return next((at_ms for at_ms in found if at_ms is not None), None)

    def of_request(self, seen: ObservedRequest) -> float | None:
        """Tell when the coordinator acted on a request, if it left a line."""
        keys = [key for key in _subjects(seen) if key in self.by_key]
        if not keys:
            return None
        # the line itself says how long the request had to wait for its turn
        latest_ms = min(seen.answered_ms + WHOLE_MS, seen.latest_ms + WAITED_MS)
        tries = [(key, 0.0) for key in keys] + [(key, _seems_late_ms(key[0])) for key in keys]
        for key, late_ms in tries:
            at_ms = self._nearest(key, seen.at_ms, seen.earliest_ms - late_ms, latest_ms)
            if at_ms is not None:
                return at_ms
        return None

    def _nearest(
        self, key: Key, to_ms: float, earliest_ms: float, latest_ms: float
    ) -> float | None:
        """Return the instant inside a window that lies nearest to another; None if none is in it.

        An instance is replaced again and again.
        """
        times = self.by_key.get(key, ())
        inside = times[bisect_left(times, earliest_ms) : bisect_right(times, latest_ms)]
        return min(inside, key=lambda at_ms: abs(at_ms - to_ms), default=None)


def extended(
    end_ms: float, delay_ms: float, left_ms: float, earliest_ms: float, latest_ms: float
) -> float:
    """Return when an initial delay expired and was extended, from the end of the join phase.

    From each end to the next it is at least `delay_ms`, or what is left of `left_ms` for all of
    them; so the end of all says how late this one may have been, and that it was that late is the
    likeliest.
    """
    gone_ms = end_ms - earliest_ms
    late_ms = gone_ms - left_ms if gone_ms >= left_ms else gone_ms % delay_ms
    return min(latest_ms, earliest_ms + late_ms)


def _seems_late_ms(kind: HintKind) -> float:
    return NEW_ID_SEEMS_LATE_MS if kind is HintKind.JOINED else SEEMS_LATE_MS


def _subjects(seen: ObservedRequest) -> Sequence[Key]:
    """List the lines that a request may have left."""
    body = seen.request
    if seen.api == "JOIN_GROUP":
        if body.get("memberId"):
            return [(kind, body["memberId"]) for kind in OF_KNOWN_ID]
        return (
            (HintKind.JOINED, seen.response_fields.get("memberId") or ""),
            (HintKind.REPLACED, body.get("groupInstanceId") or ""),
        )
    if seen.api == "LEAVE_GROUP":  # a list of members from v3 on; some by their instance ids alone
        leaving = body.get("members") or (body,)
        return [(HintKind.LEFT, member.get("memberId") or "") for member in leaving]
    if seen.api == "SYNC_GROUP" and body.get("assignments"):
        return ((HintKind.ASSIGNED, body["generationId"]),)
    return ()


def _came_too_late(seen: ObservedRequest) -> bool:
    """Tell a leader's SyncGroup that was refused, and left no line of an assignment received.

    Had it come before the rebalance that it was refused for, there would be one.
    """
    leads = seen.api == "SYNC_GROUP" and bool(seen.request.get("assignments"))
    return leads and seen.response_fields.get("errorCode") == Error.REBALANCE_IN_PROGRESS


def hinted(requests: Iterable[ObservedRequest], hints: Hints) -> list[ObservedRequest]:
    """Put every request at its likeliest instant, in order.

    Times are reconstructed, so they may cross on a connection; its requests never do.
    """
    placed = list(requests)
    if hints.by_key:
        placed = [
            seen if seen.api in ONLY_RESTART_TIMERS else _at_its_line(seen, hints)
            for seen in placed
        ]
    if not _is_in_sequence(placed):
        placed = list(_put_in_sequence(sorted(placed, key=_SEQUENCE)))
    times = list(map(_AT_MS, placed))
    return placed if all(map(lt, times, times[1:])) else sorted(placed, key=_PLACE)


def _at_its_line(seen: ObservedRequest, hints: Hints) -> ObservedRequest:
    """Put a request where its coordinator line is, if it has one."""
    at_ms = hints.of_request(seen)
    if at_ms is not None:
        return replace(
            seen,
            earliest_ms=min(seen.earliest_ms, at_ms),
            at_ms=at_ms,
            latest_ms=max(seen.latest_ms, at_ms),
        )
    return replace(seen, at_ms=seen.latest_ms) if _came_too_late(seen) else seen


def _is_in_sequence(requests: Iterable[ObservedRequest]) -> bool:
    """Tell whether no request comes before one that it followed on its connection."""
    last: dict[str, ObservedRequest] = {}
    for item in requests:
        before = last.get(item.connection)
        if before is not None and (before.serial > item.serial or _crosses(before, item)):
            return False
        last[item.connection] = item
    return True


def _put_in_sequence(requests: Iterable[ObservedRequest]) -> Iterator[ObservedRequest]:
    """Move requests that cross, which are in the order of their connections."""
    last: dict[str, ObservedRequest] = {}
    for seen in requests:
        item, before = seen, last.get(seen.connection)
        if before is not None and before.serial < seen.serial and _crosses(before, seen):
            item = replace(
                seen,
                earliest_ms=max(seen.earliest_ms, before.earliest_ms),
                at_ms=max(seen.at_ms, before.at_ms),
                latest_ms=max(seen.latest_ms, before.latest_ms),
            )
        last[seen.connection] = item
        yield item


def _crosses(before: ObservedRequest, item: ObservedRequest) -> bool:
    """Tell whether a request seems to have come, or been answered, before the one it followed."""
    return (
        item.earliest_ms < before.earliest_ms
        or item.at_ms < before.at_ms
        or item.latest_ms < before.latest_ms
    )
