"""Which answers tell where coordinator epochs end, and that chunks change nothing about it."""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reports.judgement.coordinators.wire_epochs import (
    ABSENT,
    LOADS,
    OPEN,
    SERVES,
    Mark,
    epochs_of,
    telling,
)
from reports.judgement.logged import REQUEST, Chunk
from reports.timing import MARKS_NEAR_MS

CODES = {SERVES: Error.REBALANCE_IN_PROGRESS, ABSENT: Error.NOT_COORDINATOR,
         LOADS: Error.COORDINATOR_LOAD_IN_PROGRESS}  # fmt: skip


def seen(at_ms: float, broker: str = "1", says: str = SERVES) -> Mark:
    return Mark(at_ms, broker, says, at_ms - 1.0, at_ms + 1.0)


def every_second(seconds: Iterable[int], broker: str = "1") -> list[Mark]:
    return [seen(1_000.0 * second, broker) for second in seconds]


NEAR = [one for one in range(100) if abs(one - 50) <= MARKS_NEAR_MS / 1_000]
AWAY = [
    *every_second(range(50)), seen(50_000.0, says=ABSENT), *every_second(range(51, 100))
]  # fmt: skip
TWO_BROKERS = [*every_second(range(40)), *every_second(range(40, 80), "2")]
UNANSWERED = [
    *every_second(range(30)), seen(30_000.0, "2", OPEN), *every_second(range(31, 60), "2")
]  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "restarts_ms", "tell"),
    [
        (every_second(range(100)), [], [0, 99]),
        (AWAY, [], [0, *NEAR, 99]),
        (TWO_BROKERS, [], [0, 39, 40, 79]),
        # else a load before that request would seem to lie before a much later answer
        (UNANSWERED, [], [0, 29, 30, 31, 59]),
        (every_second(range(100)), [50_500.0], [0, 50, 51, 99]),
    ],
    ids=["one goes on", "near one that is away", "another broker", "after one without an answer",
         "around a restart"],
)  # fmt: skip
def test_which_answers_tell(answers, restarts_ms, tell):
    """By the second at which they come."""
    assert [one.at_ms / 1_000 for one in telling(sorted(answers), restarts_ms)] == tell


def test_what_is_near_the_end_of_what_is_known_waits_for_what_follows():
    found = telling(every_second(range(100)), (), known_ms=98_500.0)
    first_open_s = 94  # after 98.5 s less MARKS_NEAR_MS
    assert [one.at_ms / 1_000 for one in found] == [0, *range(first_open_s, 100)]


def row(one: Mark, number: int) -> tuple[Any, ...]:
    """Return the request, answered as it says, with the columns `REQUEST`."""
    code = int(CODES[one.says])
    known = one._asdict() | {
        "answered_ms": one.at_ms + 2.0,
        "id": f"{one.broker}:{number}", "api": "HEARTBEAT", "readable": True, "request": "{}",
        "error_code": code, "response": f'{{"errorCode":{code}}}', "line": number,
    }  # fmt: skip
    return tuple(known.get(name) for name in REQUEST)


def cut(rows: Sequence[tuple[Any, ...]], sizes: random.Random) -> Iterator[Chunk]:
    """Cut rows that are in order of time into chunks; none begins before the one before has."""
    places = sorted({0, len(rows), *sizes.sample(range(1, len(rows)), 9)})
    for first, end in pairwise(places):
        known_ms = rows[end][REQUEST.index("earliest_ms")] if end < len(rows) else -inf
        yield Chunk(rows[first:end], (), known_ms)


@pytest.mark.parametrize("seed", range(40))
def test_chunk_by_chunk_the_epochs_are_those_of_the_whole(seed):
    mixed = random.Random(seed)
    answers, at_ms, broker = [], 1_000.0, "1"
    for _ in range(300):
        at_ms += mixed.choice([10.0, 300.0, 2_000.0])
        broker = mixed.choices([broker, "1", "2"], [30, 1, 1])[0]
        answers.append(seen(at_ms, broker, mixed.choices([*CODES], [40, 1, 1])[0]))
    rows = [row(one, number) for number, one in enumerate(answers)]
    restarts = [("1", mixed.uniform(1_000.0, at_ms)), ("2", mixed.uniform(1_000.0, at_ms))]
    whole = epochs_of([Chunk(rows, ())], restarts)
    assert whole.events
    assert epochs_of(cut(rows, mixed), restarts) == whole


def test_answers_that_are_unreadable_or_tell_nothing_do_not_count():
    rows = [row(seen(1_000.0), 1), row(seen(3_000.0), 3)]
    away = row(seen(2_000.0, says=ABSENT), 2)
    at = REQUEST.index
    for name, value in (("readable", False), ("response", None), ("api", "FIND_COORDINATOR"),
                        ("error_code", int(Error.COORDINATOR_NOT_AVAILABLE))):  # fmt: skip
        other = (*away[: at(name)], value, *away[at(name) + 1 :])
        assert not epochs_of([Chunk([rows[0], other, rows[1]], ())], ()).events, name
    assert epochs_of([Chunk([rows[0], away, rows[1]], ())], ()).events
