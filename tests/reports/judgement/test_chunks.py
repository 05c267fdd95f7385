"""A group judged chunk by chunk has the rows of the whole; chunks and bodies stay as read."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.releases import promised_by
from reference_coordinator.replay import GroupReplay, Stall
from reports.judgement import group_evidence
from reports.judgement.group import check_group, check_rows
from reports.judgement.logged import Chunk, KeptChunks, LoggedRow, Requests
from reports.judgement.recording import Recording
from reports.judgement.run.history import ClientEvent
from reports.judgement.run_context import RunContext
from tests.recorded.logs import HISTORIES, RECORDINGS

Rows = dict[str, list[str]]
NAME = "duplicate-4.3.0"
EVENTS = HISTORIES[NAME].events_by_group["static"]


def context_of(recording: Recording) -> RunContext:
    """Return a context that also lists departures, by another replay."""
    rules = recording.profile
    return replace(recording.context, promised=promised_by(rules), rules=rules)


def chunks(rows: Sequence[LoggedRow], size: int) -> Iterator[Chunk]:
    """Cut rows into chunks, in the order of the time from which on they count."""
    in_order = sorted(rows, key=_since_ms)
    for first in range(0, len(in_order), size):
        rest = in_order[first + size :]
        known_ms = _since_ms(rest[0]) if rest else float("-inf")
        yield replace(Chunk.of(in_order[first : first + size]), known_ms=known_ms)


def _since_ms(row: LoggedRow) -> float:
    at_ms = row["at_ms"] if row["template"] is not None else row["earliest_ms"]
    return 0.0 if at_ms is None else float(at_ms)


def by_table(found: Iterable[tuple[str, Mapping[str, Any]]]) -> Rows:
    rows: Rows = defaultdict(list)
    for name, row in found:
        rows[name].append(json.dumps(row, sort_keys=True))
    return {name: sorted(of) for name, of in rows.items()}


def altered(rows: Sequence[LoggedRow]) -> list[LoggedRow]:
    """Make the error code of every ninth heartbeat wrong."""
    found: list[LoggedRow] = []
    heartbeats = 0
    for row in rows:
        heartbeats += row.get("api") == "HEARTBEAT"
        if row.get("api") == "HEARTBEAT" and heartbeats % 9 == 0:
            wrong = {"throttleTimeMs": 0, "errorCode": int(Error.UNKNOWN_MEMBER_ID)}
            found.append(
                {**row, "error_code": int(Error.UNKNOWN_MEMBER_ID), "response": json.dumps(wrong)}
            )
        else:
            found.append(row)
    return found


def test_the_rows_are_those_of_the_group_as_a_whole(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_of(recording)
    for group, rows in recording.rows_by_group.items():
        for each in (rows, altered(rows)):
            whole = by_table(check_rows(context, group, each))
            with monkeypatch.context() as patched:
                patched.setattr(group_evidence, "GroupReplay", partial(GroupReplay, chunk=1))
                found = by_table(check_group(context, group, chunks(each, 17)))
            assert found == whole, group


def test_stalls_reach_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = RECORDINGS["kafka-4.3.0"].rows_by_group["static"]
    times = [_since_ms(row) for row in rows if row["template"] is None]
    middle_ms = (min(times) + max(times)) / 2
    stalls = tuple(Stall(row, middle_ms, middle_ms + 400.0) for row in {r["broker"] for r in rows})
    context = replace(context_of(RECORDINGS["kafka-4.3.0"]), stalls=stalls)
    whole = by_table(check_rows(context, "static", rows))
    monkeypatch.setattr(group_evidence, "GroupReplay", partial(GroupReplay, chunk=1))
    assert by_table(check_group(context, "static", chunks(rows, 10))) == whole


def test_like_bodies_are_one_object_that_nothing_changes() -> None:
    recording = RECORDINGS["kafka-4.3.0"]
    rows = recording.rows_by_group["static"]
    chunk = Chunk.of(rows)
    requests = Requests.of(chunk)
    beats = [seen for seen in requests.observed if seen.api == "HEARTBEAT"]
    assert len({id(seen.request) for seen in beats}) < len(beats) / 2
    context = context_of(RECORDINGS["kafka-4.3.0"])
    group = group_evidence.GroupEvidence(context, "static")
    part = group.add(chunk)
    judgement = group_evidence.GroupCheck(group, context.profile)
    judgement.add(part)
    judgement.compared()
    texts = {row["id"]: (row["request"], row["response"]) for row in rows if "request" in row}
    for seen in part.requests.observed:
        assert (seen.request, seen.response) == tuple(map(json.loads, texts[seen.id]))


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
