"""Timers of a whole run that expire late: a doubt on a quiet broker, a finding on one that works.

The logs are those that a coordinator with late timers would have written (`go-static` failed so on
a busy machine: a join phase from generation 0 that ended 800 ms late).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from groupquake.selftest.mutants import judging
from groupquake.selftest.mutants.judging import synthesized_run_of
from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Arm, Effect
from reference_coordinator.classic.events import Event, TimerKind
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import Step, step
from reference_coordinator.replay import EpochEvent, Stall
from reports.judgement.findings import MissingEvidence
from reports.judgement.lateness.broker_activity import possible_in, signs_of
from reports.judgement.lateness.second_judgement import SecondJudgement
from reports.judgement.recording import Recording
from reports.judgement.run.machine_log import Busy, Standstill
from tests.recorded.logs import RECORDINGS
from tests.reports.alter import moved
from tests.reports.explained import explains

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


def explained(run: Recording, group: str, stalls: Iterable[Stall] = ()) -> bool:
    judge = replace(run.judge, stalls=(*run.judge.stalls, *stalls))
    return explains(judge, group, run.rows_by_group[group])


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
    assert not explained(run, group)
    quiet = possible_in(*activity_of(run.rows_by_group[group]), run.run.brokers)
    assert explained(run, group, quiet), "nothing shows that a broker with this group alone worked"
    stalls = possible_in(*run.activity, run.run.brokers)
    assert not explained(run, group, stalls), "it answered other groups"


@pytest.mark.parametrize("recorded", RECORDED)
def test_a_timer_within_its_slack_needs_no_excuse(recorded: str) -> None:
    run = synthesized_run_of(late(TimerKind.JOIN, 400), RECORDINGS[recorded], "absent")
    assert explained(run, "absent")


def starved(at_ms: float, waited_ms: float) -> tuple[Busy, ...]:
    """A machine that was busy for 2 s about a time, whose sampler waited for a CPU before."""
    busy = Busy("", at_ms - 1_000, at_ms + 1_000, "something waited for a CPU")
    return busy, Busy("", at_ms - 60_200, at_ms - 60_000, "the runner ran late", waited_ms)


@pytest.mark.parametrize("recorded", RECORDED)
@pytest.mark.parametrize(
    ("kind", "group", "late_ms", "waited_ms", "doubtful"),
    [
        (TimerKind.SYNC, "silent", 780, 0.0, True),
        (TimerKind.SYNC, "silent", 830, 0.0, False),
        (TimerKind.SESSION, "pending", 780, 0.0, True),
        (TimerKind.SESSION, "pending", 830, 0.0, False),
        (TimerKind.SESSION, "pending", 930, 150.0, True),
        (TimerKind.SESSION, "pending", 980, 150.0, False),
    ],
)
def test_single_threads_wait_for_a_cpu_on_a_busy_machine(
    recorded: str, kind: TimerKind, group: str, late_ms: float, waited_ms: float, *, doubtful: bool
) -> None:
    """Others of the broker's threads worked meanwhile. Three threads wait, one after the other."""
    run = synthesized_run_of(late(kind, late_ms), RECORDINGS[recorded], group)
    rows, wrong_ms = run.rows_by_group[group], min(one.at_ms for one in judging.found(run, group))
    working = possible_in(*run.activity, run.run.brokers)
    second = SecondJudgement(run.judge, MissingEvidence({}, (), {}), working)
    assert second.doubt(group, rows, wrong_ms) is None
    elsewhere = replace(second, busy=starved(wrong_ms - 10_000, waited_ms))
    assert elsewhere.doubt(group, rows, wrong_ms) is None, "the machine was calm then"
    doubt = replace(second, busy=starved(wrong_ms, waited_ms)).doubt(group, rows, wrong_ms)
    assert (doubt is not None) == doubtful
    if doubt is not None:
        assert f"threads of its brokers waited up to {max(waited_ms, 100):.0f} ms" in doubt


@pytest.mark.parametrize("recorded", RECORDED)
def test_threads_wait_when_something_is_wrong_that_silence_does_not_explain(recorded: str) -> None:
    """Nothing shows that the broker worked at the first; the machine is busy at the second."""
    group = "silent"
    run = synthesized_run_of(late(TimerKind.SYNC, 780), RECORDINGS[recorded], group)
    first, other = judging.proven(judging.found(run, group))
    assert other.at_ms - first.at_ms > 3_000
    rows = run.rows_by_group[group]
    quiet = [Stall(first.broker, first.at_ms - 900, first.at_ms + 100, proven=False)]
    busy = starved(other.at_ms, 0.0)
    second = SecondJudgement(run.judge, MissingEvidence({}, (), {}), quiet, busy)
    doubt = second.doubt(group, rows, first.at_ms)
    assert doubt is not None
    assert "threads of its brokers waited up to 100 ms" in doubt
    assert replace(second, busy=()).doubt(group, rows, first.at_ms) is None
    assert replace(second, possible=()).doubt(group, rows, first.at_ms) is None, "calm at the first"


@pytest.mark.parametrize("recorded", RECORDED)
@pytest.mark.parametrize(("early_ms", "doubtful"), [(12.0, None), (40.0, True), (180.0, False)])
def test_a_thread_that_waits_between_an_answer_and_its_line(
    recorded: str, early_ms: float, *, doubtful: bool | None
) -> None:
    """A coordinator answers the SyncGroups before it prints that it prepares the next rebalance.

    None stands for what is in order on a calm machine, too.
    """
    recording, group = RECORDINGS[recorded], "silent"
    rows = [*recording.rows_by_group[group]]
    begun_ms = next(
        row["answered_ms"]
        for row in rows
        if row["template"] is None
        and row["error_code"] == Error.REBALANCE_IN_PROGRESS
        and row["api"] == "SYNC_GROUP"
    )
    near = lambda row: row["template"] == "preparing" and abs(row["at_ms"] - begun_ms) < 10
    late_lines = [moved(row, early_ms) if near(row) else row for row in rows]
    assert late_lines != rows
    second = SecondJudgement(recording.judge, MissingEvidence({}, (), {}), ())
    assert explains(recording.judge, group, rows)
    assert explains(recording.judge, group, late_lines) == (doubtful is None)
    if doubtful is not None:
        assert second.doubt(group, late_lines, begun_ms) is None
        doubt = replace(second, busy=starved(begun_ms, 0.0)).doubt(group, late_lines, begun_ms)
        assert (doubt is not None) == doubtful


def test_the_broker_that_may_have_been_late_is_one_that_was_asked() -> None:
    """Others are idle for longer: one that wrote lines about the group, one that refused it."""
    run = synthesized_run_of(late(TimerKind.SESSION, 800), RECORDINGS["kafka-4.3.0"], "leading")
    (wrong,) = judging.proven(judging.found(run, "leading"))
    rows = run.rows_by_group["leading"]
    (wrote,) = {row["broker"] for row in rows if row["template"]} - {wrong.broker}
    assert {row["broker"] for row in rows if row["template"] is None} == {wrong.broker}
    heartbeat = next(row for row in rows if row.get("api") == "HEARTBEAT")
    answer = {"throttleTimeMs": 0, "errorCode": Error.NOT_COORDINATOR}
    refusal = {"broker": "9", "error_code": answer["errorCode"], "response": json.dumps(answer)}
    refused = {**heartbeat, **refusal}
    quiet = [
        Stall(broker, wrong.at_ms - silent_ms, wrong.at_ms + 100, proven=False)
        for broker, silent_ms in ((wrong.broker, 900), (wrote, 30_000), ("9", 10_000))
    ]
    second = SecondJudgement(run.judge, MissingEvidence({}, (), {}), quiet)

    def named(*others: Row, at: str = "") -> str:
        doubt = second.doubt("leading", [*rows, *others], wrong.at_ms, at)
        assert doubt is not None
        return doubt.partition("whether broker ")[2].partition(" worked")[0]

    assert named() == wrong.broker
    assert named(refused) == "9"
    assert named(refused, at=wrong.broker) == wrong.broker


@pytest.mark.parametrize("recorded", RECORDED)
def test_a_timer_that_never_expires_is_wrong_on_a_quiet_broker_too(recorded: str) -> None:
    run = synthesized_run_of(late(TimerKind.SYNC, 60_000), RECORDINGS[recorded], "silent")
    quiet = possible_in(*activity_of(run.rows_by_group["silent"]), run.run.brokers)
    assert not explained(run, "silent", quiet)


@pytest.mark.parametrize("recorded", RECORDED)
def test_a_line_that_is_written_late_makes_a_timer_seem_early(recorded: str) -> None:
    """It is a doubt on a busy machine alone, and only as far as lines may be late."""
    run = synthesized_run_of(late(TimerKind.SESSION, -150), RECORDINGS[recorded], "absent")
    earlier = synthesized_run_of(late(TimerKind.SESSION, -400), RECORDINGS[recorded], "absent")
    busy = (Busy("", 0, float("inf"), "load"),)
    rows = run.rows_by_group["absent"]
    stalls = possible_in(*activity_of(rows), run.run.brokers, busy)
    assert not explained(run, "absent", stalls)
    judge = replace(run.judge, stalls=stalls, busy=busy)
    assert explains(judge, "absent", rows)
    assert not explains(judge, "absent", earlier.rows_by_group["absent"])


@pytest.mark.parametrize("recorded", RECORDED)
@pytest.mark.parametrize(
    ("kind", "group"), [(TimerKind.JOIN, "absent"), (TimerKind.SESSION, "pending")]
)
def test_brokers_that_never_showed_their_pace(recorded: str, kind: TimerKind, group: str) -> None:
    """Every request is held up on a machine that is busy all the time: there is no sign at all."""
    run = synthesized_run_of(late(kind, 800), RECORDINGS[recorded], group)
    requests, lines = run.activity
    slow = [{**row, "arrived_ms": (row["arrived_ms"] or 0.0) - 150} for row in requests]
    busy = (Busy("", 0, float("inf"), "load"),)
    assert signs_of(slow, lines, busy) == {}
    assert explained(run, group, possible_in(slow, lines, run.run.brokers, busy))


def test_a_late_timer_and_missing_evidence_afterwards() -> None:
    """Lateness need not explain what follows a gap: that is not proven in any case."""
    group = "silent"
    whole = synthesized_run_of(late(TimerKind.SYNC, 800), RECORDINGS["kafka-4.3.0"], group)
    first_ms = min(one.at_ms for one in judging.found(whole, group))
    rows = whole.rows_by_group[group]
    lost = next(
        row
        for row in rows
        if row["template"] is None and row["api"] == "SYNC_GROUP" and row["at_ms"] > first_ms + 3e3
    )
    rows = [row for row in rows if row is not lost]
    quiet = possible_in(*activity_of(rows), whole.run.brokers)
    second = SecondJudgement(whole.judge, MissingEvidence({}, (), {}), quiet)
    assert second.doubt(group, rows, first_ms) is None
    missing = MissingEvidence({group: lost["logged_ms"]}, (), {})
    doubt = replace(second, missing=missing).doubt(group, rows, first_ms)
    assert doubt is not None
    assert "acted late, apart from what missing evidence may explain, and nothing shows" in doubt
    working = possible_in(*whole.activity, whole.run.brokers)
    assert replace(second, missing=missing, possible=working).doubt(group, rows, first_ms) is None


def test_a_commit_that_failed_at_once_after_another_broker_stood_still() -> None:
    """It is a doubt: the standstill is proven, and nothing proves that it made the write fail."""
    recording, group = RECORDINGS["kafka-4.3.0"], "static"
    rows = [*recording.rows_by_group[group]]
    place, commit = next(
        (place, row)
        for place, row in enumerate(rows)
        if row["template"] is None
        and row["api"] == "OFFSET_COMMIT"
        and '"errorCode":0' in row["response"]
    )
    failed = commit["response"].replace('"errorCode":0', '"errorCode":15')
    rows[place] = {**commit, "response": failed}
    at_ms = commit["at_ms"]
    other = next(broker for broker in recording.run.brokers if broker != commit["broker"])
    lines = deepcopy(recording.judge.epochs)
    line = EpochEvent(commit["answered_ms"], commit["broker"], AppendError.NOT_REPLICATED)
    lines.of_groups[group].append(line)
    judge = replace(recording.judge, epochs=lines)
    second = SecondJudgement(judge, MissingEvidence({}, (), {}), ())
    assert second.doubt(group, rows, at_ms) is None
    stopped = Standstill(other, at_ms - 42_000, at_ms - 1_000, "its process was stopped")
    doubt = replace(second, standstills=[stopped]).doubt(group, rows, at_ms)
    assert doubt is not None
    assert f"writes failed because broker {other} stood still for 41,000 ms" in doubt
    brief = replace(stopped, from_ms=stopped.until_ms - 2_900)
    assert replace(second, standstills=[brief]).doubt(group, rows, at_ms) is None
    unlogged = replace(second, judge=recording.judge, standstills=[stopped])
    assert unlogged.doubt(group, rows, at_ms) is None, "no line says that a write failed"
    earlier = replace(stopped, until_ms=at_ms - 12_000)
    assert replace(second, standstills=[earlier]).doubt(group, rows, at_ms) is None
