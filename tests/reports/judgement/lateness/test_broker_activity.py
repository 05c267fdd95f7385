"""When brokers worked, stood still, or nothing shows either."""

from dataclasses import replace

import pytest

from reference_coordinator.replay import Stall
from reports.judgement.lateness import broker_activity
from reports.judgement.lateness.broker_activity import (
    WORKS_ON_MS,
    held_up,
    lines_of,
    possible,
    possible_in,
    signs_of,
    silent,
    stood_still,
)
from reports.judgement.run.machine_log import Busy, Standstill


def request(logged_ms: float, *, held_ms: float = 0.0, waited_ms: float = 0.0) -> dict:
    """A row of `requests`: held up in the handler, or waiting for others."""
    arrived_ms = logged_ms - held_ms - waited_ms
    return {
        "broker": "1",
        "arrived_ms": arrived_ms,
        "earliest_ms": arrived_ms - 40.0,
        "at_ms": arrived_ms + held_ms / 2,
        "answered_ms": logged_ms,
        "logged_ms": logged_ms,
    }


def line(at_ms: float) -> dict:
    return {"broker": "1", "at_ms": at_ms}


def test_a_request_that_is_handled_at_once_is_a_sign() -> None:
    assert signs_of([request(1_000), request(3_000, waited_ms=900)], []) == {"1": [1_000, 3_000]}


def test_a_request_that_was_held_up_is_none() -> None:
    assert signs_of([request(1_000, held_ms=101)], []) == {}


def test_an_answer_that_was_sent_late_is_none() -> None:
    assert signs_of([request(1_000) | {"answered_ms": 880.0, "arrived_ms": 880.0}], []) == {}


def test_a_line_is_a_sign_unless_the_machine_was_busy() -> None:
    assert signs_of([], [line(1_000)]) == {"1": [1_000]}
    assert signs_of([], [line(1_000)], [Busy("", 500, 1_500, "load")]) == {}
    assert signs_of([], [line(1_000)], [Busy("2", 500, 1_500, "throttled")]) == {"1": [1_000]}


def test_a_request_handled_at_once_on_a_busy_machine_is_a_sign() -> None:
    busy = [Busy("", 500, 1_500, "load")]
    assert signs_of([request(1_000)], [line(1_100)], busy) == {"1": [1_000]}


def test_on_a_busy_machine_a_request_that_waited_within_its_broker_is_none() -> None:
    """Nothing tells whether it waited for others, or for the thread of its group."""
    busy = [Busy("", 500, 1_500, "load")]
    rows = [request(1_000, waited_ms=101), request(1_200, waited_ms=99)]
    assert signs_of(rows, [], busy) == {"1": [1_200]}
    assert signs_of(rows, [], [Busy("2", 500, 1_500, "throttled")]) == {"1": [1_000, 1_200]}


def test_an_unreadable_request_is_no_sign() -> None:
    assert signs_of([request(1_000) | {"arrived_ms": None}], []) == {}
    assert lines_of([request(1_000) | {"logged_ms": None}], []) == {}


def test_nothing_is_known_between_signs_that_are_far_apart() -> None:
    assert possible({"1": [1_000, 1_200, 3_000]}, ["1"], 1_000, 3_100) == (
        Stall("1", 1_200 + WORKS_ON_MS, 3_000, proven=False),
    )


def test_a_broker_that_works_all_the_time_cannot_have_stood_still() -> None:
    signs = {"1": [float(at) for at in range(0, 10_000, 200)]}
    assert possible(signs, ["1"], 0, 10_000) == ()


def test_nothing_is_known_before_the_first_sign_and_after_the_last() -> None:
    """A broker that shows nothing at all is one of those that may have stood still."""
    assert possible({"1": [1_000]}, ["1", "2"], 0, 3_000) == (
        Stall("1", 0, 1_000, proven=False),
        Stall("1", 1_000 + WORKS_ON_MS, 3_000, proven=False),
        Stall("2", 0, 3_000, proven=False),
    )


def test_the_time_in_question_is_that_of_all_rows_busy_or_not() -> None:
    rows = [request(1_000), request(1_200, held_ms=150)], [line(4_000)]
    busy = [Busy("", 0, 5_000, "load")]
    assert possible_in(*rows, ["1"], busy) == (
        Stall("1", 1_000 + WORKS_ON_MS, 4_000, proven=False),
    )
    assert possible_in([], [], ["1"]) == ()


STOPPED = Standstill("1", 1_000, 3_000, "its process was stopped")


@pytest.mark.parametrize(
    ("lines", "span"),
    [
        ({}, (1_000, 3_000)),
        ({"2": [2_000.0]}, (1_000, 3_000)),
        ({"1": [1_030.0, 2_990.0]}, (1_030, 2_990)),
        ({"1": [2_000.0, 2_100.0]}, (1_000, 2_000)),
    ],
)
def test_a_standstill_is_proven_where_no_line_contradicts(lines, span) -> None:
    (kept,) = broker_activity.proven([STOPPED], lines)
    assert (kept.from_ms, kept.until_ms) == span


def test_a_standstill_within_another_is_not_listed() -> None:
    collected = Standstill("1", 1_200, 1_800, "its JVM collected garbage (Pause Full)")
    other = Standstill("2", 1_200, 1_800, "its JVM collected garbage (Pause Full)")
    assert broker_activity.proven([collected, STOPPED, other], {}) == [STOPPED, other]


def test_a_broker_that_went_on_writing_did_not_stand_still() -> None:
    assert broker_activity.proven([STOPPED], {"1": [float(at) for at in range(0, 5_000, 50)]}) == []


def test_a_standstill_in_the_journal_is_not_listed_again() -> None:
    assert broker_activity.unjournalled([STOPPED], [Stall("1", 990, 2_950)]) == []
    assert broker_activity.unjournalled([STOPPED], [Stall("2", 990, 2_950)]) == [STOPPED]


def test_counts_are_unsure_where_a_broker_stood_still() -> None:
    words = held_up([STOPPED], [], 0, 10_000)
    assert words == (
        "broker 1 stood still for 2,000 ms from 00:00:01.000 UTC on: its process was stopped"
    )
    assert held_up([STOPPED], [], 3_000, 10_000) is None


def test_counts_are_unsure_where_the_machine_was_busy_for_half_of_the_time() -> None:
    busy = [Busy("", at, at + 1_000, "load") for at in range(0, 5_000, 1_000)]
    assert held_up([], busy, 0, 10_000) == "the machine was busy for 5 s of the time: load"
    assert held_up([], [*busy[:4], *busy[:4]], 0, 10_000) is None


def test_the_doubt_names_broker_and_time() -> None:
    stall = broker_activity.longest_near(
        possible({"3": [1_000.0, 4_000.0]}, ["3"], 1_000, 4_000), 4_100
    )
    busy = [Busy("", 0, 2_000, "the runner itself ran 900 ms late")]
    assert broker_activity.doubt("g", stall, busy) == (
        "group g: what is wrong is explained if its brokers acted late, and nothing shows whether"
        " broker 3 worked in the 2,750 ms from 00:00:01.250 UTC on"
        " (the runner itself ran 900 ms late)"
    )
    assert "at their pace" in broker_activity.doubt("g", None, busy)


class TestPauseOfTheJournal:
    pause = Stall("1", 1_000.0, 11_000.0)

    def test_lasts_while_no_line_comes(self) -> None:
        assert silent([self.pause], {"1": [999.0, 11_100.0], "2": [5_000.0]}) == (self.pause,)

    def test_begins_after_what_is_written_before_the_signal(self) -> None:
        (left,) = silent([self.pause], {"1": [1_010.0, 1_030.0]})
        assert (left.from_ms, left.until_ms) == (1_030.0, 11_000.0)

    @pytest.mark.parametrize(("line_ms", "until_ms"), [(10_950.0, 11_000.0), (10_850.0, 10_850.0)])
    def test_ends_up_to_100_ms_before_the_entry(self, line_ms: float, until_ms: float) -> None:
        (left,) = silent([self.pause], {"1": [line_ms, 10_990.0]})
        assert left.until_ms == until_ms

    def test_is_cut_by_a_line_within(self) -> None:
        (left,) = silent([self.pause], {"1": [4_000.0]})
        assert (left.from_ms, left.until_ms) == (4_000.0, 11_000.0)

    @pytest.mark.parametrize(("apart_ms", "counts"), [(90, 0), (110, 1), (190, 1)])
    def test_lasts_100_ms_at_least(self, apart_ms: int, counts: int) -> None:
        log = [1_000.0 + apart_ms * n for n in range(12_000 // apart_ms)]
        assert len(silent([self.pause], {"1": log})) == counts

    def test_may_have_no_end(self) -> None:
        endless = replace(self.pause, until_ms=float("inf"))
        assert silent([endless], {"1": [900.0]}) == (endless,)
        (left,) = silent([endless], {"1": [9_000.0]})
        assert (left.from_ms, left.until_ms) == (9_000.0, float("inf"))


def test_a_standstill_in_a_fault_s_pause_is_listed_once_and_only_if_the_log_is_silent() -> None:
    pause = Stall("1", 1_000, 4_000)
    within, after = (
        Standstill("1", from_ms, from_ms + 2_000, "stopped") for from_ms in (1_500, 6_000)
    )
    silence = {"1": [900, 4_100]}
    assert stood_still([pause], [within, after], silence) == ((pause,), [after])
    works = {"1": list(range(900, 9_000, 50))}
    assert stood_still([pause], [within, after], works) == ((), [])
