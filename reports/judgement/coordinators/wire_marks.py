"""Marks of coordinator epochs at level `wire`: the few requests that show where epochs end.

Nearly all answers show that a coordinator goes on. What tells are those near an answer that shows
that a broker does not coordinate the group, those before and after another broker's, and those
around a restart. Requests without an answer are few: all are kept, with those beside them.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from operator import itemgetter
from typing import Any

from kafka_protocol.apis import GROUP_APIS
from reports.judgement.coordinators.wire_epochs import (
    ABSENT,
    LOADS,
    OPEN,
    Restart,
    Seen,
    WireEpochs,
    marks_of,
    says_of,
    wire_epochs,
)
from reports.judgement.logged import REQUEST, Chunk

NEAR_MS = 5_000.0
"""How near: further than the windows of two requests reach."""


_ASKED: Callable[[tuple[Any, ...]], tuple[Any, ...]] = itemgetter(
    *map(REQUEST.index, ("readable", "api", "error_code", "response"))
)
_PLACED: Callable[[tuple[Any, ...]], tuple[Any, ...]] = itemgetter(
    *map(REQUEST.index, ("at_ms", "broker", "earliest_ms", "latest_ms", "answered_ms"))
)


def epochs_of(chunks: Iterable[Chunk], restarts: Iterable[Restart]) -> WireEpochs:
    """Derive the epochs of a group of its requests, chunk by chunk; few of them are kept."""
    restarts = list(restarts)
    at_ms = sorted(at_ms for _, at_ms in restarts)
    found: list[Seen] = []
    for chunk in chunks:
        known_ms = chunk.known_ms if chunk.known_ms > -inf else inf
        found = list(telling(sorted([*found, *_seen_in(chunk)]), at_ms, known_ms))
    return wire_epochs(chain.from_iterable(map(marks_of, found)), restarts)


def _seen_in(chunk: Chunk) -> Iterator[Seen]:
    for row in chunk.requests:
        readable, api, error_code, response = _ASKED(row)
        if readable and api in GROUP_APIS:
            says = says_of(api, error_code, response)
            if says is not None:
                at_ms, broker, *window = _PLACED(row)
                yield Seen(at_ms, broker, says, *window)


def telling(
    seen: Sequence[Seen], restarts_ms: Sequence[float], known_ms: float = inf
) -> Iterator[Seen]:
    """Yield the answers that may show where an epoch ends.

    All is in order of time. What is seen later happens after `known_ms`: an answer that may still
    get a telling neighbour is yielded, too. So nothing is lost where its result is taken with what
    follows, and sifted again.
    """
    away_ms: dict[str, list[float]] = defaultdict(list)
    for one in seen:
        if one.says in (LOADS, ABSENT):
            away_ms[one.broker].append(one.at_ms)
    for place, one in enumerate(seen):
        before, after = seen[max(place - 1, 0)], seen[min(place + 1, len(seen) - 1)]
        if (
            OPEN in (before.says, one.says, after.says)
            or before is one
            or after is one
            or not before.broker == one.broker == after.broker
            or one.at_ms > known_ms - NEAR_MS
            or _are_any(away_ms[one.broker], one.at_ms - NEAR_MS, one.at_ms + NEAR_MS)
            or _are_any(restarts_ms, before.at_ms, after.at_ms)
        ):
            yield one


def _are_any(times: Sequence[float], from_ms: float, until_ms: float) -> bool:
    return bisect_left(times, from_ms) < bisect_right(times, until_ms)
