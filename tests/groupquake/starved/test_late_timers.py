"""Timers of a whole run that expire late: unknown while the machine was busy, else wrong.

The logs are those that a coordinator with late timers would have written (`go-static` failed so on
a busy machine: a join phase from generation 0 that ended 800 ms late).
"""

from dataclasses import replace

import pytest

from reference_coordinator.classic.effects import Arm, Effect
from reference_coordinator.classic.events import Event, TimerKind
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import Step, step
from reports.judgement.disturbances import Disturbances
from reports.judgement.findings import Finding, proven_roots
from reports.judgement.recording import Recording
from reports.judgement.run.disturbance import Disturbance, Source
from selftest.mutants import judging
from selftest.mutants.judging import synthesized_run_of
from tests.recorded.logs import RECORDINGS

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


def disturbed(run: Recording, group: str, *disturbances: Disturbance) -> list[Finding]:
    """Judge a group again in a run with these disturbances alone; return its roots."""
    found = Disturbances(disturbances, {}).judged(judging.found(run, group))
    return [one for one in found if one.root is None]


def pressure(from_ms: float, until_ms: float, broker: str = "") -> Disturbance:
    return Disturbance(broker, from_ms, until_ms, "something waited", Source.PRESSURE)


@pytest.mark.parametrize("recorded", RECORDED)
@pytest.mark.parametrize(
    ("kind", "late_ms", "group"),
    [
        (TimerKind.JOIN, 800, "absent"),
        (TimerKind.JOIN, 2_500, "sessions"),
        (TimerKind.SESSION, 800, "pending"),
        (TimerKind.SESSION, 2_500, "absent"),
        (TimerKind.SYNC, 800, "silent"),
        (TimerKind.SYNC, 60_000, "silent"),
    ],
)
def test_a_late_timer(recorded: str, kind: TimerKind, late_ms: float, group: str) -> None:
    run = synthesized_run_of(late(kind, late_ms), RECORDINGS[recorded], group)
    wrong = judging.found(run, group)
    (first, *_) = proven_roots(wrong)
    busy = [pressure(one.window[0], one.window[1]) for one in wrong]
    assert not proven_roots(disturbed(run, group, *busy))
    before, after = pressure(0.0, first.window[0] - 1.0), pressure(first.window[1] + 1.0, 1e15)
    assert first in disturbed(run, group, before), "the machine was calm by then"
    assert proven_roots(disturbed(run, group, after))[0] == first
    other = pressure(0.0, 1e15, broker="9")
    assert proven_roots(disturbed(run, group, other))[0].kind == first.kind


@pytest.mark.parametrize("recorded", RECORDED)
def test_a_timer_within_its_slack_needs_no_disturbance(recorded: str) -> None:
    run = synthesized_run_of(late(TimerKind.JOIN, 400), RECORDINGS[recorded], "absent")
    assert judging.found(run, "absent") == []


@pytest.mark.parametrize("recorded", RECORDED)
@pytest.mark.parametrize(("before_ms", "wrong"), [(100.0, False), (7_000.0, True)])
def test_what_a_timer_did_early_may_be_due_to_when_it_was_started(
    recorded: str, before_ms: float, *, wrong: bool
) -> None:
    """The line of the request that started it may be late: then the timer seems to be early."""
    run = synthesized_run_of(late(TimerKind.SESSION, -400), RECORDINGS[recorded], "absent")
    found = [one for one in judging.found(run, "absent") if one.is_early]
    (first, *_) = found
    busy = pressure(0.0, first.window[0] - before_ms)
    groups = {"absent": {"max_session_timeout_ms": 6_000.0}}
    judged = Disturbances([busy], groups).judged(judging.found(run, "absent"))
    assert any(one.is_early and one.proven for one in judged if one.root is None) == wrong
