"""Which holes in the evidence a kill accounts for."""

from math import inf

import pytest

from reports.judgement.log.split_rows import END_MISSING, START_MISSING
from reports.judgement.missing.gaps import (
    gap,
    possible_deletions,
    unlogged,
    without_cuts,
    without_kills,
)
from reports.judgement.run.disturbance import Disturbance, Source


def lost(line: int, at_ms: float, what: str = END_MISSING, broker: str = "2") -> Disturbance:
    return gap(broker, line, at_ms, what)


def test_a_kill_explains_the_end_of_a_log_and_a_line_cut_off():
    cut_off = lost(102, 5_001, "line not understood: 37 17952")
    assert without_kills([lost(101, 5_000), cut_off], {("2", 5_010): 101}) == []


def test_a_kill_explains_one_process_of_one_log():
    gaps = [lost(101, 5_000), lost(160, 9_000), lost(80, 5_000, broker="3")]
    assert without_kills(gaps, {("2", 5_010): 101}) == gaps[1:]
    assert without_kills(gaps, {("2", 5_010): 101, ("2", 9_010): 160}) == gaps[2:]
    # a process that ended by itself before the one that was killed
    assert without_kills(gaps[:2], {("2", 9_010): 160}) == gaps[:1]


@pytest.mark.parametrize("line", [90, 101])
def test_lines_that_are_missing_before_the_kill_stay_a_gap(line):
    hole = lost(line, 4_900, "3 lines missing before serial number 35")
    assert without_kills([hole, lost(101, 5_000)], {("2", 5_010): 101}) == [hole]


def test_a_kill_does_not_explain_a_log_that_ends_after_it():
    later = [lost(101, 7_000)]
    assert without_kills(later, {("2", 5_000): 101}) == later


@pytest.mark.parametrize(("lines", "whole"), [(90, True), (101, True), (102, False), (200, False)])
def test_the_journal_knows_how_long_a_log_was_at_a_kill(lines, whole):
    end = [lost(101, 5_000)]
    assert without_kills(end, {("2", 5_500.0): lines}) == ([] if whole else end)


def test_a_broker_that_did_not_shut_down_ends_one_process_of_one_log():
    cut_off = lost(161, 9_001, "line not understood: 37 17952")
    gaps = [lost(101, 5_000), lost(160, 9_000), cut_off, lost(80, 5_000, broker="3")]
    assert without_cuts(gaps, {"2"}) == [gaps[0], gaps[3]]
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
