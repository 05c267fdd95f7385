"""The one rule: which differences a disturbance makes unknown, and which stay proven."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from reports.judgement.breaches import LATE, OF_CLIENTS, Breach
from reports.judgement.disturbances import (
    EXPLAINS,
    MOST_GAPS,
    Disturbances,
    of_gaps,
    of_pressure,
    of_standstills,
)
from reports.judgement.findings import Finding
from reports.judgement.missing.gaps import gap
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.machine_log import busy
from reports.timing import AROUND_BUSY_MS, TIMER_SLACK_MS

TIMERS = {"max_session_timeout_ms": 6_000.0, "max_rebalance_timeout_ms": 9_000.0}
GROUPS = {"g": {**TIMERS, "brokers": ["1"]}, "h": {**TIMERS, "brokers": ["1", "2"]}}
TIMERS_MS = 9_000.0
BREACHES = frozenset(Breach)


def finding(at_ms: float, kind: str = "late", group: str = "g", **other: Any) -> Finding:
    of = {"broker": "1", "since_ms": at_ms - 100.0, "seen_ms": at_ms, **other}
    return Finding(kind, group, at_ms, at_ms, at_ms, "due", "seen", line=1, **of)


def lasting(source: Source, from_ms: float, until_ms: float, broker: str = "") -> Disturbance:
    return Disturbance(broker, from_ms, until_ms, "a cause", source)


def proven(found: list[Finding], *disturbances: Disturbance) -> list[bool]:
    return [one.proven for one in Disturbances(disturbances, GROUPS).judged(found)]


MAY_EXPLAIN: dict[Source, Any] = {
    Source.PRESSURE: {"late", *LATE},
    Source.STANDSTILL: set(),
    Source.WRITES: {"late"},
    Source.ELECTION: {"late"},
    Source.FAULT: set(),
    Source.LOG: {"late", *BREACHES},
    Source.REQUESTS: {"late", *BREACHES},
    Source.UNSEEN: {"late", *BREACHES},
    Source.HISTORY: OF_CLIENTS,
    Source.UNREAD: {"late", *BREACHES},
}


def test_what_each_source_may_explain():
    assert {*EXPLAINS} == {*Source} == {*MAY_EXPLAIN, Source.CLOCK}
    for source, kinds in MAY_EXPLAIN.items():
        for kind in ("late", *BREACHES):
            is_proven = proven([finding(50_000.0, str(kind))], lasting(source, 0.0, 1e15))
            assert is_proven == [kind not in kinds], (source, kind)


@pytest.mark.parametrize("source", MAY_EXPLAIN)
def test_pressure_explains_nothing_that_stands_despite_lateness(source):
    late = lasting(source, 0.0, 1e15)
    found = [finding(50_000.0, despite_lateness=stands) for stands in (False, True)]
    may_be = [proven([one], late)[0] for one in found]
    assert may_be == ([False, True] if source is Source.PRESSURE else [may_be[0]] * 2)


@pytest.mark.parametrize(("broker", "until_ms"), [("1", 1e15), ("", inf)])
def test_nothing_tells_how_late_one_broker_is_or_a_machine_without_samples(broker, until_ms):
    stands = [finding(50_000.0, despite_lateness=True)]
    machine = busy(48_000.0, 49_000.0, "of all brokers")
    assert proven(stands, *of_pressure([machine])) == [True]
    known_by_none = busy(49_000.0, until_ms, "of one, or without an end", broker)
    assert proven(stands, *of_pressure([machine, known_by_none])) == [False]
    earlier = [finding(48_500.0, despite_lateness=True, since_ms=48_000.0)]
    assert proven(earlier, *of_pressure([machine])) == [True]


@pytest.mark.parametrize(
    ("source", "first_ms", "last_ms"),
    [
        (Source.PRESSURE, 49_900.0, 50_000.0),
        (Source.WRITES, 49_900.0, 50_000.0),
        (Source.ELECTION, 49_900.0, 50_000.0),
        (Source.LOG, 49_900.0 - TIMERS_MS, 50_000.0 + TIMERS_MS),
        (Source.REQUESTS, 49_900.0 - TIMERS_MS, 50_000.0),
        (Source.UNSEEN, 49_900.0, 50_000.0),
    ],
)
def test_its_window_has_to_meet_it(source, first_ms, last_ms):
    """The window goes from 49,900 to 50,000; timers of the group run for 9 s at most."""
    meets = lambda from_ms, until_ms: (
        not proven([finding(50_000.0)], lasting(source, from_ms, until_ms))[0]
    )
    assert meets(first_ms - 500.0, first_ms)
    assert not meets(first_ms - 500.0, first_ms - 1.0)
    assert meets(last_ms, last_ms + 500.0)
    assert not meets(last_ms + 1.0, last_ms + 500.0)


def test_what_clients_were_given_depends_on_all_that_came_before():
    went_back = finding(50_000.0, Breach.OFFSET_WENT_BACK)
    assert proven([went_back], lasting(Source.REQUESTS, 1.0, 2.0)) == [False]
    assert proven([went_back], lasting(Source.REQUESTS, 50_001.0, 50_002.0)) == [True]


@pytest.mark.parametrize("source", [Source.PRESSURE, Source.UNSEEN])
def test_another_broker_does_not_concern_it(source):
    elsewhere = lasting(source, 0.0, 1e15, broker="2")
    assert proven([finding(50_000.0)], elsewhere) == [True]
    assert proven([finding(50_000.0, broker="")], elsewhere) == [False], "it has no line"


def test_a_hole_concerns_the_next_broker_once_it_is_over():
    """What a killed broker had not answered concerns that one alone, and what follows from it."""
    for source, next_is_proven in ((Source.REQUESTS, False), (Source.UNSEEN, True)):
        hole = lasting(source, 48_000.0, 49_000.0, broker="2")
        assert proven([finding(48_900.0)], hole) == [True]
        assert proven([finding(50_000.0)], hole) == [next_is_proven]


def test_a_hole_in_the_numbers_of_a_client_concerns_its_group():
    hole = lambda group: replace(
        lasting(Source.REQUESTS, 49_000.0, 49_500.0, "1"), groups=frozenset({group})
    )
    assert proven([finding(50_000.0)], hole("g")) == [False]
    assert proven([finding(50_000.0)], hole("other")) == [True]


@pytest.mark.parametrize(
    ("group", "kind", "broker", "is_proven"),
    [
        ("g", "late", "1", True),
        ("h", "late", "1", False),
        ("h", "late", "3", True),
        ("g", Breach.SENT_WHILE_DOWN, "1", False),
        ("g", Breach.OFFSET_WENT_BACK, "1", True),
    ],
)
def test_a_clock_that_is_off_concerns_what_compares_clocks(group, kind, broker, is_proven):
    """The group `g` had one broker alone: its times go by one clock."""
    off = Disturbance(broker, float("-inf"), float("inf"), "", Source.CLOCK)
    assert proven([finding(50_000.0, kind, group)], off) == [is_proven]


def test_a_fault_explains_what_a_line_says_that_was_loaded_and_nothing_else():
    fault = lasting(Source.FAULT, 0.0, 1e15)
    lines = [finding(50_000.0, "wrong_line", about=kind) for kind in ("group_loaded", "stabilized")]
    assert proven(lines, fault) == [False, True]


def test_what_follows_while_the_state_is_lost_is_a_consequence():
    """10 s and the timers of the group after the end; another group has its own findings."""
    killed = Disturbance("1", 0.0, 1_000.0, "killed", Source.UNSEEN, frozenset({"g"}))
    times = 900.0, 20_000.0, 20_001.0
    found = [finding(at_ms, broker="1" if at_ms < 1_000.0 else "2") for at_ms in times]
    judged = Disturbances([killed], GROUPS).judged([*found, finding(2_000.0, group="h")])
    assert [one.root for one in judged] == [None, 0, None, None]
    assert [one.proven for one in judged] == [False, False, True, True]
    (first, *_) = judged
    assert first.may_be == killed


def test_a_state_that_is_lost_is_so_until_a_rebalance_is_as_expected():
    killed = Disturbance("1", 0.0, 1_000.0, "killed", Source.UNSEEN, frozenset({"g"}))
    rebalances = {"g": [(900.0, False), (40_000.0, False), (50_000.0, True), (60_000.0, False)]}
    found = [finding(at_ms) for at_ms in (900.0, 40_000.0, 60_000.0)]
    judged = Disturbances([killed], GROUPS, rebalances).judged(found)
    assert [(one.root, one.proven) for one in judged] == [(None, False), (0, False), (None, True)]


def test_a_busy_time_ends_one_sample_later_and_those_beside_each_other_are_one():
    samples = [busy(at, at + 1_000.0, "a") for at in (3_000.0, 1_000.0, 2_000.0)]
    throttled, later = busy(1_000.0, 2_000.0, "b", "2"), busy(9_000.0, 9_500.0, "b")
    found = [(one.broker, one.from_ms, one.until_ms) for one in
             of_pressure([*samples, throttled, later])]  # fmt: skip
    around = AROUND_BUSY_MS
    assert sorted(found) == [
        ("", 1_000.0 - around, 4_000.0 + around),
        ("", 9_000.0 - around, 9_500.0 + around),
        ("2", 1_000.0 - around, 2_000.0 + around),
    ]


@pytest.mark.parametrize(
    ("lasted_ms", "sources"),
    [(249, []), (250, ["standstill"]), (3_000, ["standstill", "writes_after_standstill"])],
)
def test_writes_fail_after_a_long_standstill(lasted_ms, sources):
    still = Disturbance("1", 1_000, 1_000 + lasted_ms, "stopped", Source.STANDSTILL)
    found = [*of_standstills([still])]
    assert [one.source for one in found] == sources
    for one in found[1:]:
        assert one.until_ms == 1_000 + lasted_ms + 10_000


@pytest.mark.parametrize(("count", "lasts"), [(MOST_GAPS - 1, False), (MOST_GAPS, True)])
def test_behind_the_last_gap_that_is_read_there_may_be_more(count, lasts):
    gaps = [gap("1", line, float(line), "line not understood") for line in range(count)]
    found = [*of_gaps(gaps)]
    assert any(one.until_ms == float("inf") for one in found) == lasts
    assert len(found) == count


def test_a_missing_line_is_seen_to_be_missing_a_while_later():
    assert finding(0.0, since_ms=-5.0, seen_ms=TIMER_SLACK_MS).window == (-5.0, TIMER_SLACK_MS)
