"""Timers of a whole run that expire late: a doubt on a quiet broker, a finding on one that works.

The logs are those that a coordinator with late timers would have written (`go-static` failed so on
a busy machine: a join phase from generation 0 that ended 800 ms late).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from groupquake.selftest.mutants.judging import synthesized_run_of
from reference_coordinator.classic.effects import Arm, Effect
from reference_coordinator.classic.events import Event, TimerKind
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import Step, step
from reference_coordinator.replay import Stall
from reports.judgement.broker_activity import possible, signs_of
from reports.judgement.machine_log import Busy
from reports.judgement.recording import Recording
from tests.recorded.logs import RECORDINGS

Row = Mapping[str, Any]
RECORDED = sorted(RECORDINGS)


def late(kind: TimerKind, late_ms: float) -> Step:
    """Make a coordinator whose timers of one kind expire late."""

    def delayed(effect: Effect) -> Effect:
        if isinstance(effect, Arm) and effect.timer.kind is kind:
            return replace(effect, deadline_ms=effect.deadline_ms + late_ms)
        return effect

    def late_step(group: Group, event: Event, profile: Profile) -> tuple[Group, tuple[Effect, ...]]:
        after, effects = step(group, event, profile)
        return after, tuple(map(delayed, effects))

    return late_step


def activity_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    every = list(rows)
    yield [row for row in every if "request" in row]
    yield [row for row in every if "request" not in row]


def explains(run: Recording, group: str, stalls: Iterable[Stall] = ()) -> bool:
    judge = replace(run.judge, stalls=(*run.judge.stalls, *stalls))
    return judge.explains(group, run.rows_by_group[group])


@pytest.mark.parametrize("recorded", RECORDED)
@pytest.mark.parametrize(
    ("kind", "late_ms", "group"),
    [
        (TimerKind.JOIN, 800, "absent"),
        (TimerKind.JOIN, 2_500, "sessions"),
        (TimerKind.SESSION, 800, "pending"),
        (TimerKind.SESSION, 2_500, "absent"),
        (TimerKind.SYNC, 800, "silent"),
        (TimerKind.SYNC, 2_500, "absent"),
    ],
)
def test_a_late_timer(recorded: str, kind: TimerKind, late_ms: float, group: str) -> None:
    run = synthesized_run_of(late(kind, late_ms), RECORDINGS[recorded], group)
    assert not explains(run, group)
    quiet = possible(signs_of(*activity_of(run.rows_by_group[group])))
    assert explains(run, group, quiet), "nothing shows that a broker with this group alone worked"
    assert not explains(run, group, possible(signs_of(*run.activity))), "it answered other groups"


@pytest.mark.parametrize("recorded", RECORDED)
def test_a_timer_within_its_slack_needs_no_excuse(recorded: str) -> None:
    run = synthesized_run_of(late(TimerKind.JOIN, 400), RECORDINGS[recorded], "absent")
    assert explains(run, "absent")


@pytest.mark.parametrize("recorded", RECORDED)
def test_a_timer_that_never_expires_is_wrong_on_a_quiet_broker_too(recorded: str) -> None:
    run = synthesized_run_of(late(TimerKind.SYNC, 60_000), RECORDINGS[recorded], "silent")
    quiet = possible(signs_of(*activity_of(run.rows_by_group["silent"])))
    assert not explains(run, "silent", quiet)


@pytest.mark.parametrize("recorded", RECORDED)
def test_a_line_that_is_written_late_makes_a_timer_seem_early(recorded: str) -> None:
    """It is a doubt on a busy machine alone, and only as far as lines may be late."""
    run = synthesized_run_of(late(TimerKind.SESSION, -150), RECORDINGS[recorded], "absent")
    earlier = synthesized_run_of(late(TimerKind.SESSION, -400), RECORDINGS[recorded], "absent")
    busy = (Busy("", 0, float("inf"), "load"),)
    rows = run.rows_by_group["absent"]
    stalls = possible(signs_of(*activity_of(rows), busy))
    assert not explains(run, "absent", stalls)
    judge = replace(run.judge, stalls=stalls, busy=busy)
    assert judge.explains("absent", rows)
    assert not judge.explains("absent", earlier.rows_by_group["absent"])
