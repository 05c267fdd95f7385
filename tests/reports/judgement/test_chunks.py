"""What is judged of a group depends on no splits, blocks, buckets and chunks."""

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
from reports.judgement import buckets as module
from reports.judgement import group_evidence
from reports.judgement.buckets import ALL_TABLES, Buckets, Evidence
from reports.judgement.group import check_group, check_rows
from reports.judgement.log import reading, split_rows
from reports.judgement.log.log_places import Split
from reports.judgement.log.merging import ReadLogs, read_logs
from reports.judgement.log.split_rows import Blob, How, unpacked
from reports.judgement.logged import Chunk, KeptChunks, LoggedRow
from reports.judgement.recording import Recording
from reports.judgement.run import history
from reports.judgement.run.history import ClientEvent, Said, said_in
from reports.judgement.run_context import RunContext
from tests.recorded.logs import HISTORIES, RECORDINGS

Rows = dict[str, list[str]]
Tables = dict[str, list[tuple[Any, ...]]]
RECORDING = RECORDINGS["kafka-4.3.0"]
HISTORY = HISTORIES["duplicate-4.3.0"]


def context_of(recording: Recording) -> RunContext:
    """Return a context that also lists departures, by another replay."""
    rules = recording.profile
    return replace(recording.context, promised=promised_by(rules), rules=rules)


def chunks(
    rows: Sequence[LoggedRow], size: int, events: Sequence[ClientEvent] = ()
) -> Iterator[Chunk]:
    """Cut rows into chunks, in the order of the time from which on they count."""
    by_time, begun = sorted(rows, key=_since_ms), 0
    for first in range(0, len(by_time), size):
        rest = by_time[first + size :]
        known_ms = _since_ms(rest[0]) if rest else -inf
        until = len([one for one in events if one.at_ms < known_ms]) if rest else len(events)
        of = Chunk.of(by_time[first : first + size])
        yield replace(of, known_ms=known_ms, events=events[begun:until], tapped=[])
        begun = until


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
    error, found = int(Error.UNKNOWN_MEMBER_ID), list(rows)
    beats = [place for place, row in enumerate(rows) if row.get("api") == "HEARTBEAT"]
    for place in beats[8::9]:
        wrong = json.dumps({"throttleTimeMs": 0, "errorCode": error})
        found[place] = {**rows[place], "error_code": error, "response": wrong}
    return found


def test_the_rows_are_those_of_the_group_as_a_whole(recording, monkeypatch):
    context = context_of(recording)
    for group, rows in recording.rows_by_group.items():
        for each in (rows, altered(rows)):
            whole = by_table(check_rows(context, group, each))
            with monkeypatch.context() as patched:
                patched.setattr(group_evidence, "GroupReplay", partial(GroupReplay, chunk=1))
                found = by_table(check_group(context, group, chunks(each, 17)))
            assert found == whole, group


def test_a_history_comes_in_chunks_too(monkeypatch):
    """A client says nothing of one of its commits."""
    events = list(HISTORY.events_by_group["static"])
    commits = [place for place, one in enumerate(events) if one.event == "committed"]
    del events[commits[-40]]
    context, rows = context_of(HISTORY), HISTORY.rows_by_group["static"]
    whole = by_table(check_rows(context, "static", rows, events))
    assert len(whole["breaches"]) == 1
    monkeypatch.setattr(group_evidence, "GroupReplay", partial(GroupReplay, chunk=1))
    assert by_table(check_group(context, "static", chunks(rows, 50, events))) == whole


def test_stalls_reach_across_chunks(monkeypatch):
    rows = RECORDING.rows_by_group["static"]
    times = [_since_ms(row) for row in rows if row["template"] is None]
    middle_ms = (min(times) + max(times)) / 2
    stalls = tuple(Stall(row, middle_ms, middle_ms + 400.0) for row in {r["broker"] for r in rows})
    context = replace(context_of(RECORDING), stalls=stalls)
    whole = by_table(check_rows(context, "static", rows))
    monkeypatch.setattr(group_evidence, "GroupReplay", partial(GroupReplay, chunk=1))
    assert by_table(check_group(context, "static", chunks(rows, 10))) == whole


def test_like_bodies_are_one_object_that_nothing_changes():
    rows, context = RECORDING.rows_by_group["static"], context_of(RECORDING)
    group = group_evidence.GroupEvidence(context, "static")
    part = group.add(Chunk.of(rows))
    beats = [seen for seen in part.requests.observed if seen.api == "HEARTBEAT"]
    assert len({id(seen.request) for seen in beats}) < len(beats) / 2
    judgement = group_evidence.GroupCheck(group, context.profile)
    judgement.add(part)
    judgement.compared()
    texts = {row["id"]: (row["request"], row["response"]) for row in rows if "request" in row}
    for seen in part.requests.observed:
        assert (seen.request, seen.response) == tuple(map(json.loads, texts[seen.id]))


@pytest.mark.parametrize("size", [40, 10**6])
def test_chunks_are_read_twice(size):
    rows, events = HISTORY.rows_by_group["static"], HISTORY.events_by_group["static"]
    given = [*chunks(rows, size, events)]
    assert (len(given) > 1) == (size == 40)
    with closing(KeptChunks()) as kept:
        for chunk in given:
            kept.add(chunk)
        assert [*kept] == [*kept] == given


def test_infinity_and_what_is_not_known_are_kept():
    event = ClientEvent(1.0, 9, "c", frozenset({"t-0"}), None, 3, None, "JOIN_GROUP", inf, "static")
    given = [Chunk([(1.0, None, "\u00e9", True)], [{"at_ms": None}], -inf, [event], [])] * 2
    with closing(KeptChunks()) as kept:
        for chunk in given:
            kept.add(chunk)
        assert [*kept] == given


# buckets


def in_order(logs: ReadLogs) -> list[tuple[Split, Blob]]:
    every = [(split, blob) for split, blobs in logs.blobs.items() for blob in blobs]
    return sorted(every, key=lambda one: (one[1].bucket, one[1].group, one[1].since_ms, one[0]))


def judged(recording: Recording, logs: ReadLogs) -> Tables:
    found: Tables = defaultdict(list)
    large = frozenset(blob.group for _, blob in in_order(logs)) - {""}
    of = Buckets(logs.merged.starts, partial(check_group, recording.context), large)
    of.judged(in_order(logs), lambda name, rows: found[name].extend(rows))
    assert found.keys() <= ALL_TABLES.keys()
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


@pytest.fixture(scope="module")
def whole() -> Tables:
    return judged(RECORDING, read_logs(RECORDING.texts, RECORDING.run.parser))


@pytest.mark.parametrize("is_cut", [True, False], ids=["splits, groups apart", "one split"])
def test_a_large_group_is_judged_chunk_by_chunk(whole, monkeypatch, is_cut):
    """In splits and blocks, each group with blobs of its own, and in chunks of some rows."""
    monkeypatch.setattr(module, "CHUNK", 60)
    monkeypatch.setattr(module.chunks, "__defaults__", ((), 60))
    texts = RECORDING.texts
    if is_cut:
        monkeypatch.setattr(split_rows, "APART", 10)
        monkeypatch.setattr(reading, "BLOCK", 20_000)
        texts = {
            Split(split.file, at): of[at : at + 300]
            for split, of in texts.items()
            for at in range(0, len(of), 300)
        }
    logs = read_logs(texts, RECORDING.run.parser, How(buckets=3) if is_cut else How())
    blobs = [blob for _, blob in in_order(logs)]
    if is_cut:
        assert {blob.group for blob in blobs} > {"", "static", "dynamic"}
        sizes = [blob.rows for blob in blobs if blob.group == "static"]
        assert max(sizes) < sum(sizes) / 4
    assert judged(RECORDING, logs) == whole


def test_each_line_is_in_one_table(whole):
    tables = RECORDING.logs.tables()
    for name in ("requests", "transitions", "coverage"):
        assert sorted(whole.get(name, [])) == sorted(tuple(row.values()) for row in tables[name])


def test_chunks_come_in_order_of_time():
    columns = module.COLUMNS["requests"]
    at = [columns.index(name) for name in ("earliest_ms", "at_ms", "id")]

    def row(ms: float) -> tuple[Any, ...]:
        found: list[Any] = [None] * len(columns)
        for place, value in zip(at, (ms, ms, f"{ms}"), strict=True):
            found[place] = value
        return tuple(found)

    def parts() -> Iterator[tuple[float, Evidence]]:
        yield 0.0, {"requests": [row(3.0), row(1.0), row(9.0)]}
        yield 2.0, {"requests": [row(2.0), row(8.0), row(4.0)]}
        yield 7.0, {"requests": [row(7.0)]}

    found = list(module.chunks({"requests": [row(5.0), row(0.0)]}, parts(), 2))
    times = [[one[0] for one in chunk.requests] for chunk in found]
    assert [time for of in times for time in of] == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert [chunk.known_ms for chunk in found] == [2, 4, 7, 9, -inf]
    assert max(map(len, times)) == 2


def test_what_the_history_says_comes_by_group():
    lines = [
        b'{"at_ms": 1.0, "event": "hub_lag", "max_ms": 7.5}',
        b'{"at_ms": 2.0, "event": "assigned", "member": "m", "group": "g", "partitions": []}',
        b'{"at_ms": 3.0, "event": "produced", "group": "g"}',
        b'{"at_ms": 4.0, "event": "hub_la',
    ]
    *blobs, summary = history.read(lines, said_in, 8)
    assert isinstance(summary, history.HistorySummary)
    assert (summary.lines, summary.late_ms, summary.account.damaged) == (4, {7.5: 1}, 1)
    (blob,) = blobs
    assert isinstance(blob, Blob)
    (rows,) = unpacked(blob.data)
    assert rows.group == "g"
    assert [Said(*row).event for row in rows.said] == ["assigned"]
    assert summary.rows == {blob.bucket: 1}


def test_a_group_that_was_large_once_keeps_blobs_of_its_own(monkeypatch):
    """And its split says that it is: else it would be judged twice, with some of its rows each."""
    monkeypatch.setattr(split_rows, "APART", 3)
    packing = split_rows.Packing(1)
    blocks = [("a", 3), ("b", 2)], [("a", 1), ("b", 1)]
    found = [
        [(blob.group, blob.rows) for blob in packing.blobs(block)]
        for block in (
            [split_rows.Rows(name, [], [], [], [(0.0,)] * count) for name, count in of_block]
            for of_block in blocks
        )
    ]
    assert found == [[("a", 3), ("", 2)], [("a", 1), ("", 1)]]
    assert (packing.large, packing.counted) == ({"a"}, {0: 7})
