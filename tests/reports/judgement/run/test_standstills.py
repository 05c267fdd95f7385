"""When brokers stood still, as far as their lines allow it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from reference_coordinator.replay import Stall
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.machine_log import Signs, stood_still


def standstill(broker: str, from_ms: float, until_ms: float, cause: str) -> Disturbance:
    return Disturbance(broker, from_ms, until_ms, cause, Source.STANDSTILL)


def proven(said: Iterable[Disturbance], lines: Signs) -> list[Disturbance]:
    return [*stood_still([], said, lines)[1]]


def silent(pauses: Iterable[Stall], lines: Signs) -> tuple[Stall, ...]:
    return stood_still(pauses, [], lines)[0]


STOPPED = standstill("1", 1_000, 3_000, "its process was stopped")


@pytest.mark.parametrize(
    ("lines", "span"),
    [
        ({}, (1_000, 3_000)),
        ({"2": [2_000.0]}, (1_000, 3_000)),
        ({"1": [1_030.0, 2_990.0]}, (1_030, 2_990)),
        ({"1": [2_000.0, 2_100.0]}, (1_000, 2_000)),
    ],
)
def test_a_standstill_is_proven_where_no_line_contradicts(lines, span):
    (kept,) = proven([STOPPED], lines)
    assert (kept.from_ms, kept.until_ms) == span


def test_a_standstill_is_listed_once():
    """One within another of its broker is not, nor one in the journal, nor one while it writes."""
    collected, other = (
        standstill(broker, 1_200, 1_800, "its JVM collected garbage (Pause Full)")
        for broker in "12"
    )
    assert proven([collected, STOPPED, other], {}) == [STOPPED, other]
    assert proven([STOPPED], {"1": [float(at) for at in range(0, 5_000, 50)]}) == []
    assert stood_still([Stall("1", 990, 2_950)], [STOPPED], {})[1] == ()
    assert stood_still([Stall("2", 990, 2_950)], [STOPPED], {})[1] == (STOPPED,)


PAUSE = Stall("1", 1_000.0, 11_000.0)
ENDLESS = replace(PAUSE, until_ms=float("inf"))


@pytest.mark.parametrize(
    ("pause", "lines", "from_ms", "until_ms"),
    [
        (PAUSE, {"1": [999.0, 11_100.0], "2": [5_000.0]}, 1_000.0, 11_000.0),
        (PAUSE, {"1": [1_010.0, 1_030.0]}, 1_030.0, 11_000.0),
        (PAUSE, {"1": [10_950.0, 10_990.0]}, 1_000.0, 11_000.0),
        (PAUSE, {"1": [10_850.0, 10_990.0]}, 1_000.0, 10_850.0),
        (PAUSE, {"1": [4_000.0]}, 4_000.0, 11_000.0),
        (ENDLESS, {"1": [900.0]}, 1_000.0, float("inf")),
        (ENDLESS, {"1": [9_000.0]}, 9_000.0, float("inf")),
    ],
    ids=["no line comes", "what is written before the signal", "up to 100 ms before the entry",
         "earlier", "a line within cuts it", "without an end", "a line within one without an end"],
)  # fmt: skip
def test_a_pause_of_the_journal_lasts_while_no_line_comes(pause, lines, from_ms, until_ms):
    (left,) = silent([pause], lines)
    assert (left.from_ms, left.until_ms) == (from_ms, until_ms)


@pytest.mark.parametrize(("apart_ms", "counts"), [(90, 0), (110, 1), (190, 1)])
def test_a_pause_lasts_100_ms_at_least(apart_ms, counts):
    log = [1_000.0 + apart_ms * n for n in range(12_000 // apart_ms)]
    assert len(silent([PAUSE], {"1": log})) == counts


def test_a_standstill_in_a_fault_s_pause_is_listed_once_and_only_if_the_log_is_silent():
    pause = Stall("1", 1_000, 4_000)
    within, after = (
        standstill("1", from_ms, from_ms + 2_000, "stopped") for from_ms in (1_500, 6_000)
    )
    silence = {"1": [900, 4_100]}
    assert stood_still([pause], [within, after], silence) == ((pause,), (after,))
    works = {"1": list(range(900, 9_000, 50))}
    assert stood_still([pause], [within, after], works) == ((), ())
