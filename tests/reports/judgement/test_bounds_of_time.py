"""Lies about when: requests and lines of the recordings, moved to just inside a bound and beyond.

The order that coordinator lines bind, and how long a broker may take for an answer.
"""

import json
from collections.abc import Iterator

import pytest

from kafka_protocol.errors import Error
from kafka_protocol.request_log import COMPLETED
from reports.judgement.log.parsing import parse_request, times_of
from reports.judgement.recording import Line, Recording, Row
from reports.timing import ARRIVAL_ERROR_MS
from tests.recorded.logs import RECORDINGS
from tests.reports.alter import TIMES, compared, differences, moved

REBALANCE, NONE = '"errorCode":27', '"errorCode":0'
Answer = tuple[str, str, int]


def wrong(recording: Recording, group: str, instead: dict[int, Row]) -> list[str]:
    """The differences in a group some rows of which have others in their place, by line number."""
    rows = [instead.get(row["line"], row) for row in recording.rows_by_group[group]]
    return differences(recording.context, group, rows)


def preparing(recording: Recording) -> Iterator[tuple[Row, list[Row], float]]:
    """Yield "Preparing" lines, the heartbeats of their groups, and when the join phase ended."""
    for rows in recording.rows_by_group.values():
        ends = [row["at_ms"] for row in rows if row["template"] in ("stabilized", "empty")]
        beats = [row for row in rows if row.get("api") == "HEARTBEAT"]
        for row in rows:
            if row["template"] == "preparing":
                end_ms = min((at_ms for at_ms in ends if at_ms > row["at_ms"]), default=0.0)
                yield row, [b for b in beats if b["broker"] == row["broker"]], end_ms


def answered(row: Row, by_ms: float, answer: Answer) -> Row:
    """A heartbeat at another time, with another answer."""
    old, new, code = answer
    assert old in row["response"]
    response = row["response"].replace(old, new)
    return {**moved(row, by_ms), "response": response, "error_code": code}


def refused_after(recording: Recording) -> tuple[Row, Row]:
    """A "Preparing" line, and the first heartbeat that was refused because of it."""
    for line, beats, end_ms in preparing(recording):
        refused = [
            beat
            for beat in beats
            if beat["error_code"] == Error.REBALANCE_IN_PROGRESS
            and line["at_ms"] + 100.0 < beat["at_ms"] < end_ms
        ]
        if refused and end_ms > line["at_ms"] + 900.0:
            return line, min(refused, key=lambda beat: beat["at_ms"])
    raise LookupError("no such rebalance")


def taken_ms(row: Row) -> float:
    return float(row["earliest_ms"] + ARRIVAL_ERROR_MS)


@pytest.mark.parametrize(
    ("after_ms", "found"),
    [(-3.0, []), (35.0, []), (190.0, []), (220.0, ["answer"]), (350.0, ["answer"]),
     (500.0, ["answer"])],
)  # fmt: skip
def test_a_heartbeat_after_a_rebalance_began_is_refused(recording, after_ms, found):
    """One at the rebalance may have come before it."""
    line, beat = refused_after(recording)
    served = answered(beat, line["at_ms"] + after_ms - taken_ms(beat), (REBALANCE, NONE, 0))
    assert wrong(recording, line["group"], {beat["line"]: served}) == found


def served_before(recording: Recording) -> tuple[Row, Row]:
    """A "Preparing" line, and the last heartbeat before it, which was answered at once."""
    for line, beats, _ in preparing(recording):
        served = [
            beat
            for beat in beats
            if beat["error_code"] == 0 and line["at_ms"] - 600.0 < beat["answered_ms"]
            if beat["answered_ms"] < line["at_ms"] - 20.0
        ]
        if served and line["generation"] > 0:
            return line, max(served, key=lambda beat: float(beat["at_ms"]))
    raise LookupError("no such rebalance")


@pytest.mark.parametrize("before_ms", [40.0, 100.0])
def test_no_heartbeat_is_refused_before_the_rebalance_begins(recording, before_ms):
    line, beat = served_before(recording)
    by_ms = max(line["at_ms"] - before_ms - beat["answered_ms"], 0.0)
    early = answered(beat, by_ms, (NONE, REBALANCE, 27))
    assert wrong(recording, line["group"], {beat["line"]: early}) == ["answer"]


def line_of(recording: Recording, client: str, api: str, answer: str) -> Line:
    """The last request of a client with an API and an answer."""
    return [
        line
        for line in recording.lines
        if line.row.get("api") == api and line.row["client_id"] == client
        if answer in line.row["response"]
    ][-1]


def held(line: Line, part: str, by_ms: float) -> Row:
    """A request that took longer, by what its line says of one part of its time."""
    logged = line.request
    assert logged is not None
    longer = {part: logged[part] + by_ms, "totalTimeMs": logged["totalTimeMs"] + by_ms}
    text = json.dumps({**logged, **longer}, separators=(",", ":"))
    logged_ms = line.row["logged_ms"] + by_ms
    read = times_of(parse_request(COMPLETED + text).times_ms, logged_ms)
    return {**line.row, **dict(zip(TIMES, read, strict=False)), "logged_ms": logged_ms}


COMMIT = ("returning-c", "OFFSET_COMMIT", NONE)
REFUSED = ("sessions-scout", "HEARTBEAT", '"errorCode":25')
LEAVE = ("pending-a", "LEAVE_GROUP", NONE)
# a second to be handled, one to be answered; a commit may wait for its write, 5 s
BOUNDS = {(COMMIT, "remoteTimeMs"): 7_000.0, (REFUSED, "remoteTimeMs"): 2_000.0,
          (REFUSED, "requestQueueTimeMs"): 3_000.0, (REFUSED, "localTimeMs"): 3_000.0}  # fmt: skip


@pytest.mark.parametrize("off_ms", [-6_000.0, -100.0, 100.0, 13_000.0])
@pytest.mark.parametrize(("about", "part"), BOUNDS)
def test_a_broker_that_works_answers_in_time(recording, about, part, off_ms):
    line = line_of(recording, *about)
    late = held(line, part, max(BOUNDS[about, part] + off_ms, 0.0))
    found = wrong(recording, line.group, {line.number: late})
    assert found == (["answered_late"] if off_ms > 0 else [])


@pytest.mark.parametrize("by_ms", [0.0, 900.0, 1_900.0, 2_200.0, 5_000.0])
def test_a_leave_is_acted_on_in_time(recording, by_ms):
    line = line_of(recording, *LEAVE)
    lines = [
        row
        for row in recording.rows_by_group[line.group]
        if row["template"] in ("left", "preparing", "empty", "heartbeat_of_nobody")
        if abs(row["at_ms"] - line.row["at_ms"]) < 50.0
    ]
    assert len(lines) >= 3
    # a millisecond of the clock after the answer (Scala), so somewhat earlier
    late_ms = max(by_ms - 3.0, 0.0)
    instead = {row["line"]: {**row, "at_ms": row["at_ms"] + late_ms} for row in lines}
    instead[line.number] = held(line, "remoteTimeMs", by_ms)
    found = wrong(recording, line.group, instead)
    assert bool(found) == (by_ms > 2_000.0), found


def given_to_all(recording: Recording, group: str) -> tuple[Line, list[Row]]:
    """The SyncGroup of a leader whose assignment others wait for, and the rows of its group."""
    rows = list(recording.rows_by_group[group])
    syncs = [row for row in rows if row["template"] is None and row["api"] == "SYNC_GROUP"]
    for line in recording.lines:
        if line.group == group and line.row.get("api") == "SYNC_GROUP":
            assert line.request is not None
            at_ms = line.row["answered_ms"]
            others = [row for row in syncs if abs(row["answered_ms"] - at_ms) < 8.0]
            if line.request["request"]["assignments"] and len(others) > 2:
                return line, rows
    raise LookupError("no such assignment")


@pytest.mark.parametrize("by_ms", [0.0, 900.0, 1_100.0, 4_000.0, 5_500.0])
@pytest.mark.parametrize("group", ["removal", "failover"])
def test_an_assignment_is_given_to_all_at_once(recording, group, by_ms):
    """The leader's own answer is held, though the others show that the write is confirmed."""
    line, rows = given_to_all(recording, group)
    mine, at_ms = line.row["connection"], line.row["at_ms"]
    instead = {  # it goes on without the answer, on another connection
        row["line"]: {**row, "connection": "another"}
        for row in rows
        if row["template"] is None and row["connection"] == mine and row["at_ms"] > at_ms
    }
    instead[line.number] = held(line, "remoteTimeMs", by_ms)
    found = wrong(recording, group, instead)
    assert found[:1] == (["answered_late"] if by_ms > 1_000.0 else [])


@pytest.mark.parametrize("off_ms", [-100.0, 100.0, 4_000.0])
def test_a_commit_waits_no_longer_than_a_later_one(recording, off_ms):
    line = line_of(recording, *COMMIT)
    again = {name: line.row[name] + 300.0 for name in TIMES}
    later = {**line.row, **again, "line": 1_000_000, "connection": "another"}
    held_up = held(line, "remoteTimeMs", BOUNDS[REFUSED, "remoteTimeMs"] + off_ms)
    rows = [row for row in recording.rows_by_group[line.group] if row["line"] != line.number]
    tables = compared(recording.context, line.group, [*rows, held_up, later])
    found = [row["rule"] for name, row in tables if name == "violations"]
    assert found == (["answered_late"] if off_ms > 0 else [])


@pytest.mark.parametrize("by_ms", [1_500.0, 2_100.0, 6_000.0])
def test_a_heartbeat_waits_for_no_write_on_a_scala_coordinator(by_ms):
    """It does on a Java one."""
    recording = RECORDINGS["kafka-3.9.1-scala"]
    line = line_of(recording, "pending-a", "HEARTBEAT", NONE)
    late = held(line, "remoteTimeMs", by_ms)
    found = wrong(recording, line.group, {line.number: late})
    assert found == (["answered_late"] if by_ms > 2_000.0 else [])
