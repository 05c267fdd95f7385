"""Which holes in the evidence a kill accounts for, and clocks that are off."""

from math import inf

import pytest

from reports.judgement import verdict
from reports.judgement.log.split_rows import END_MISSING, START_MISSING, ends_of_brokers
from reports.judgement.missing.gaps import (
    gap,
    possible_deletions,
    unlogged,
    without_cuts,
    without_kills,
    wrong_clocks,
)
from reports.judgement.recording import Recording
from reports.judgement.results import Results
from reports.judgement.run.disturbance import Disturbance, Source


def lost(line: int, at_ms: float, what: str = END_MISSING, broker: str = "2") -> Disturbance:
    return gap(broker, line, at_ms, what)


END, LATER, OF_ANOTHER = lost(101, 5_000), lost(160, 9_000), lost(80, 5_000, broker="3")
CUT_OFF = lost(102, 5_001, "line not understood: 37 17952")
HOLE = "3 lines missing before serial number 35"
KILL, LATER_KILL = {("2", 5_010): 101}, {("2", 9_010): 160}


@pytest.mark.parametrize(
    ("gaps", "kills", "left"),
    [
        ([END, CUT_OFF], KILL, []),
        ([END, LATER, OF_ANOTHER], KILL, [LATER, OF_ANOTHER]),
        ([END, LATER, OF_ANOTHER], KILL | LATER_KILL, [OF_ANOTHER]),
        ([END, LATER], LATER_KILL, [END]),
        ([lost(90, 4_900, HOLE), END], KILL, [lost(90, 4_900, HOLE)]),
        ([lost(101, 4_900, HOLE), END], KILL, [lost(101, 4_900, HOLE)]),
        ([lost(101, 7_000)], {("2", 5_000): 101}, [lost(101, 7_000)]),
    ],
    ids=["its end, and a line cut off", "one process of one log", "two processes",
         "a process that ended by itself before", "lines missing before", "just before",
         "a log that ends after the kill"],
)  # fmt: skip
def test_what_a_kill_explains(gaps, kills, left):
    assert without_kills(gaps, kills) == left


@pytest.mark.parametrize(("lines", "whole"), [(90, True), (101, True), (102, False), (200, False)])
def test_the_journal_knows_how_long_a_log_was_at_a_kill(lines, whole):
    end = [lost(101, 5_000)]
    assert without_kills(end, {("2", 5_500.0): lines}) == ([] if whole else end)


def test_a_broker_that_did_not_shut_down_ends_one_process_of_one_log():
    cut_off = lost(161, 9_001, "line not understood: 37 17952")
    gaps = [END, LATER, cut_off, OF_ANOTHER]
    assert without_cuts(gaps, {"2"}) == [END, OF_ANOTHER]
    assert without_cuts(gaps, set()) == gaps


@pytest.mark.parametrize(
    ("what", "until_ms"),
    [
        ("3 lines missing before serial number 35", 5_000.0),
        ("line not understood: 37 17952", 5_000.0),
        (END_MISSING, inf),
        (START_MISSING, inf),
    ],
)
def test_a_gap_concerns_all_groups_at_one_time_or_from_then_on(what, until_ms):
    one = lost(1, 5_000.0, what)
    assert (one.from_ms, one.until_ms, one.groups) == (5_000.0, until_ms, None)


def test_a_line_without_a_readable_time_may_stand_anywhere():
    one = gap("2", 1, None, "line not understood: \0\0")
    assert (one.from_ms, one.until_ms) == (-inf, inf)


def test_requests_that_are_missing_concern_their_group_at_that_time():
    row = {"broker": "2", "line": 1, "from_ms": 4_000.0, "at_ms": 5_000.0, "what": "1 request"}
    found = unlogged({**row, "group": "g", "sure": True})
    assert found.source is Source.REQUESTS
    assert (found.from_ms, found.until_ms, found.groups) == (4_000.0, 5_000.0, {"g"})


@pytest.mark.parametrize(
    "message",
    [
        "Generated 3 tombstone records while deleting offsets for topics [D[id=x-1, name=audit]].",
        "Generated 3 tombstone records while deleting offsets for partitions [audit-0, audit-12].",
        "Removed 3 offsets associated with deleted partitions: audit-0, audit-12.",
    ],
)
def test_offsets_that_go_with_a_deleted_topic_are_no_gap(message):
    row = {"broker": "1", "line": 1, "at_ms": 1.0, "template": "offsets_removed"}
    gaps = lambda text, *topics: [*possible_deletions([row | {"message": text}], topics)]
    assert gaps(message, "audit") == []
    assert len(gaps(message, "orders")) == len(gaps(message)) == 1
    both = message.replace("audit-0", "orders-0, audit-0").replace("=audit]", "=audit], [name=b]")
    assert len(gaps(both, "audit")) == 1
    long = message.replace("audit-0", "audit-1, " * 99 + "orders-0")
    long = long.replace("=audit]", "=audit]" + ", [name=audit]" * 40 + ", [name=b]")
    assert len(gaps(long, "audit")) == 1, "beyond what is quoted"


def test_groups_that_are_deleted_are_a_gap_whatever_they_are_called():
    text = "The following groups were deleted: audit-1, billing. A total of 3 offsets were removed."
    row = {"broker": "1", "line": 1, "at_ms": 1.0, "template": "groups_deleted", "message": text}
    (one,) = possible_deletions([row], {"audit"})
    assert (one.from_ms, one.until_ms, one.groups) == (1.0, inf, None)


# clocks that are off: nothing is proven, and the verdict says so


def ends(recording: Recording, shift_ms: float = 0.0) -> dict[str, float]:
    rows = recording.logs.merged.processes
    return {broker: at_ms + shift_ms for broker, at_ms in ends_of_brokers(rows, []).items()}


@pytest.mark.parametrize("off_ms", [-5_000, -1_500, 0, 500, 5_000])
def test_a_clock_that_is_off_is_a_gap_of_the_whole_log(recording, off_ms):
    found = [*wrong_clocks(ends(recording, off_ms), recording.run)]
    wrong = abs(off_ms) > 1_000
    assert [gap.broker for gap in found] == (list("123") if wrong else [])
    assert all(("behind" in gap.cause) == (off_ms < 0) for gap in found)


@pytest.mark.parametrize(("beside_ms", "wrong"), [(0, 0), (999, 0), (1_001, 2), (1_900, 2)])
def test_the_bound_is_exact(recording, beside_ms, wrong):
    began_ms, over_ms = recording.run.teardown or (0.0, 0.0)
    ended = {"1": began_ms - beside_ms, "2": over_ms + beside_ms}
    assert len([*wrong_clocks(ended, recording.run)]) == wrong


def test_nothing_is_proven_then(recording):
    row = {"requests": 1, "explained": 1, "max_rebalance_timeout_ms": 3_000.0, "brokers": ["1"]}
    nothing = Results(
        groups=dict.fromkeys(recording.run.experiment.group_names, row),
        starts=dict(recording.run.starts),
        ended_ms=ends(recording, 5_000),
    )
    judged = verdict.evaluate(recording.run, nothing, "4.3")
    assert judged["verdict"] == "unknown"  # though the experiment's counts are not met
    assert "ahead of that of the journal" in " ".join(judged["unknown_because"])


def test_a_log_whose_end_is_missing_tells_no_time():
    rows = [
        {"broker": "1", "process": 1, "last_ms": 5.0},
        {"broker": "1", "process": 2, "last_ms": 9.0},
        {"broker": "2", "process": 1, "last_ms": 7.0},
    ]
    killed = {"broker": "1", "process": 1, "what": END_MISSING}
    cut = {"broker": "2", "process": 1, "what": END_MISSING}
    assert ends_of_brokers(rows, [killed, cut]) == {"1": 9.0}
