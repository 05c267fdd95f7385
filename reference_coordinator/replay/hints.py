"""Coordinator lines as hints: they pick an instant inside a window, and never more than that.

A line says when the coordinator acted. It does not say that it was right to act: what it did is
checked against the answers, and the line itself against the expected timeline.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from reference_coordinator.events import Timer, TimerKind
from reference_coordinator.replay.evidence import Hint, HintKind, Observed

_TIMERS = {
    TimerKind.SESSION: HintKind.SESSION_EXPIRED,
    TimerKind.JOIN: HintKind.JOIN_PHASE_ENDED,
    TimerKind.SYNC: HintKind.SYNC_EXPIRED,
}


@dataclass(slots=True)
class Hints:
    """A group's hints, found by what they speak of."""

    by_key: dict[tuple[HintKind, str | int], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @classmethod
    def of(cls, hints: Iterable[Hint]) -> "Hints":
        """Sort hints by what they speak of."""
        sorted_hints = cls()
        for hint in hints:
            about = hint.generation if hint.kind is HintKind.JOIN_PHASE_ENDED else hint.subject
            sorted_hints.by_key[hint.kind, about].append(hint.at_ms)
        return sorted_hints

    def of_timer(
        self, timer: Timer, generation: int, earliest_ms: float, latest_ms: float
    ) -> float | None:
        """Tell when a timer ran out; a join timer ends the phase that starts `generation`."""
        about: str | int = generation if timer.kind is TimerKind.JOIN else timer.member_id
        return self._inside((_TIMERS[timer.kind], about), earliest_ms, latest_ms)

    def of_request(self, seen: Observed) -> float | None:
        """Tell when the coordinator acted on a request, if it left a line."""
        for kind, about in _subjects(seen):
            # the line itself says how long the request had to wait for its turn
            at_ms = self._inside((kind, about), seen.earliest_ms, seen.answered_ms)
            if at_ms is not None:
                return at_ms
        return None

    def _inside(
        self, key: tuple[HintKind, str | int], earliest_ms: float, latest_ms: float
    ) -> float | None:
        instants = self.by_key.get(key, ())
        return next((at_ms for at_ms in instants if earliest_ms <= at_ms <= latest_ms), None)


def _subjects(seen: Observed) -> Sequence[tuple[HintKind, str]]:
    """List the lines that a request may have left."""
    body = seen.request
    if seen.api == "JOIN_GROUP":
        if body.get("memberId"):
            return ((HintKind.PENDING_JOINED, body["memberId"]),)
        return (
            (HintKind.JOINED, seen.response.get("memberId") or ""),
            (HintKind.REPLACED, body.get("groupInstanceId") or ""),
        )
    if seen.api == "LEAVE_GROUP":
        return ((HintKind.LEFT, body.get("memberId") or ""),)
    if seen.api == "SYNC_GROUP" and body.get("assignments"):
        return ((HintKind.ASSIGNED, body["memberId"]),)
    return ()


def hinted(requests: Iterable[Observed], hints: Hints) -> list[Observed]:
    """Put every request at its likeliest instant, in order.

    Times are reconstructed, so they may cross on a connection; its requests never do.
    """
    placed: list[Observed] = []
    last: dict[str, Observed] = {}
    for seen in sorted(requests, key=lambda seen: (seen.connection, seen.serial)):
        at_ms = hints.of_request(seen)
        item = seen
        if at_ms is not None:
            item = replace(seen, at_ms=at_ms, latest_ms=max(seen.latest_ms, at_ms))
        if (before := last.get(seen.connection)) is not None and before.serial < seen.serial:
            item = replace(
                item,
                earliest_ms=max(item.earliest_ms, before.earliest_ms),
                at_ms=max(item.at_ms, before.at_ms),
                latest_ms=max(item.latest_ms, before.latest_ms),
            )
        last[seen.connection] = item
        placed.append(item)
    return sorted(placed, key=lambda seen: seen.at_ms)
