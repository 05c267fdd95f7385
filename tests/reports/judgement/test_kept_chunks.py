"""Chunks that are kept are read as they came, however many there are."""

from contextlib import closing
from math import inf

import pytest

from reports.judgement.logged import Chunk, KeptChunks
from reports.judgement.run.history import ClientEvent
from tests.recorded.logs import HISTORIES
from tests.reports.judgement.test_chunks import chunks

NAME = "duplicate-4.3.0"
EVENTS = HISTORIES[NAME].events_by_group["static"]


@pytest.mark.parametrize("size", [40, 10**6])
def test_chunks_are_read_twice(size: int) -> None:
    given = [
        Chunk(chunk.requests, chunk.lines, chunk.known_ms, EVENTS[place : place + 3], [])
        for place, chunk in enumerate(chunks(HISTORIES[NAME].rows_by_group["static"], size))
    ]
    assert (len(given) > 1) == (size == 40)
    with closing(KeptChunks()) as kept:
        for chunk in given:
            kept.add(chunk)
        assert [*kept] == [*kept] == given


def test_infinity_and_what_is_not_known_are_kept() -> None:
    event = ClientEvent(1.0, 9, "c", frozenset({"t-0"}), None, 3, None, "JOIN_GROUP", inf, "static")
    given = [Chunk([(1.0, None, "\u00e9", True)], [{"at_ms": None}], -inf, [event], [])] * 2
    with closing(KeptChunks()) as kept:
        for chunk in given:
            kept.add(chunk)
        assert [*kept] == given
