"""Groups of buckets: what is judged of them does not depend on splits, blocks and chunks."""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Any

import pytest

from reports.judgement import buckets as module
from reports.judgement.buckets import ALL_TABLES, Buckets, Evidence, chunks
from reports.judgement.group import check_group
from reports.judgement.log import reading, split_rows
from reports.judgement.log.log_places import Split
from reports.judgement.log.merging import ReadLogs, read_logs
from reports.judgement.log.split_rows import Blob, How, unpacked
from reports.judgement.recording import Recording
from reports.judgement.run import history
from reports.judgement.run.history import Said, said_in
from tests.recorded.logs import RECORDINGS

RECORDING = RECORDINGS["kafka-4.3.0"]
Tables = dict[str, list[tuple[Any, ...]]]


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
    return judged(RECORDING, read_logs(RECORDING.texts, RECORDING.parser))


def test_a_large_group_is_judged_chunk_by_chunk(
    whole: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In splits and blocks, each group with blobs of its own, and in chunks of some rows."""
    monkeypatch.setattr(split_rows, "APART", 10)
    monkeypatch.setattr(reading, "BLOCK", 20_000)
    monkeypatch.setattr(module, "CHUNK", 60)
    monkeypatch.setattr(chunks, "__defaults__", ((), 60))
    cut = {
        Split(split.file, at): texts[at : at + 300]
        for split, texts in RECORDING.texts.items()
        for at in range(0, len(texts), 300)
    }
    logs = read_logs(cut, RECORDING.parser, How(buckets=3))
    blobs = [blob for _, blob in in_order(logs)]
    assert {blob.group for blob in blobs} > {"", "static", "dynamic"}
    sizes = [blob.rows for blob in blobs if blob.group == "static"]
    assert max(sizes) < sum(sizes) / 4
    assert judged(RECORDING, logs) == whole


def test_a_group_of_many_rows_in_many_small_blobs(
    whole: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 60)
    monkeypatch.setattr(chunks, "__defaults__", ((), 60))
    assert judged(RECORDING, read_logs(RECORDING.texts, RECORDING.parser)) == whole


def test_each_line_is_in_one_table(whole: Tables) -> None:
    tables = RECORDING.logs.tables()
    for name in ("requests", "transitions", "coverage"):
        assert sorted(whole.get(name, [])) == sorted(tuple(row.values()) for row in tables[name])


def test_chunks_come_in_order_of_time() -> None:
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

    found = list(chunks({"requests": [row(5.0), row(0.0)]}, parts(), 2))
    times = [[one[0] for one in chunk.requests] for chunk in found]
    assert [time for of in times for time in of] == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert [chunk.known_ms for chunk in found] == [2, 4, 7, 9, -inf]
    assert max(map(len, times)) == 2


def test_what_the_history_says_comes_by_group() -> None:
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


def test_a_group_that_was_large_once_keeps_blobs_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
