"""What would make a verdict claim too much: a run that is not whole, or evidence that is not."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reports.judgement import doubtful, verdict
from reports.judgement.missing.gaps import gap
from reports.judgement.recording import Recording
from reports.judgement.results import Results
from reports.judgement.run.run_folder import RunFolder
from tests.recorded.logs import RECORDINGS
from tests.reports.page_run import ZERO_MS, MadeUpRun

Json = dict[str, Any]

STOPPED = "the run was stopped before its time was over"
CUT = "the journal ends before the run did"
NOT_HEALED = " was not put right"
UNREADABLE = "line not understood: \\x00"


def doubts(made: MadeUpRun) -> list[str]:
    _, judged, *_ = made.finish()
    assert judged["verdict"] == ("unknown" if judged["unknown_because"] else "pass")
    return judged["unknown_because"]


def too_few(made: MadeUpRun) -> None:
    """Let the group `dynamic` rebalance too seldom."""
    del made.comparison[6:]


def wrong_answer(made: MadeUpRun) -> None:
    made.add_violation("2:777", made.recovery_ms - 1_000, "dynamic", "dynamic-dynamic-3")


def stopped(made: MadeUpRun) -> None:
    """Let somebody stop the run at the end of its last fault."""
    at = next(i for i, entry in enumerate(made.journal) if entry.get("phase") == "recovery")
    made.journal[at] = {"at_ms": made.recovery_ms, "event": "stopped"}


def unreadable(made: MadeUpRun, at_ms: float | None) -> None:
    made.gaps.append(gap("3", 7, at_ms, UNREADABLE))


def last_of(made: MadeUpRun, event: str) -> Json:
    return next(entry for entry in reversed(made.journal) if entry["event"] == event)


def without_phase(made: MadeUpRun, phase: str) -> None:
    made.journal = [entry for entry in made.journal if entry.get("phase") != phase]


def never_healed(made: MadeUpRun) -> None:
    first = next(entry for entry in made.journal if entry["event"] == "intent")
    first["kind"] = "recoverable"
    heal = ("healed", first["fault_id"])
    made.journal = [e for e in made.journal if (e["event"], e.get("fault_id")) != heal]


def restarted(
    made: MadeUpRun, *, healed: bool = True, starts: Mapping[str, int] | None = None
) -> None:
    """Let a fault have broker 2 stopped and started; the logs show so many starts of brokers."""
    came = {"at_ms": made.recovery_ms - 4_000, "fault_id": "f99"}
    made.journal[-1:-1] = [
        {**came, "event": "intent", "fault": "broker.stop", "target": "broker-2",
         "kind": "recoverable", "args": {"broker": 2}},
        {**came, "event": "injected"},
        {**came, "event": "verified", "verified": True, "witness": "it is gone"},
        {**came, "event": "healed", "healed": healed, "witness": "it is back"},
    ]  # fmt: skip
    made.starts |= {"2": 2, **(starts or {})}


def starts(broker: int, logged: int, known: int) -> str:
    return f"/{broker}/group.log: {logged} starts of the broker are in the log, {known} in the"


@pytest.mark.parametrize(
    ("scenario", "doubt"),
    [
        (lambda made: None, None),
        (lambda made: unreadable(made, None), f"/3/group.log:7: {UNREADABLE}"),
        (lambda made: unreadable(made, ZERO_MS - 60_000), f"/3/group.log:7: {UNREADABLE}"),
        (lambda made: without_phase(made, "recovery"), CUT),
        (lambda made: without_phase(made, "end"), CUT),
        (lambda made: last_of(made, "healed").update(healed=False), NOT_HEALED),
        (never_healed, NOT_HEALED),
        (restarted, None),
        (lambda made: restarted(made, starts={"2": 1}), starts(2, 1, 2)),
        (lambda made: restarted(made, starts={"2": 3}), starts(2, 3, 2)),
        (lambda made: restarted(made, starts={"1": 0}), starts(1, 0, 1)),
        (lambda made: restarted(made, starts={"1": 2}), starts(1, 2, 1)),
        # the starts of a broker whose fault was not healed are not known
        (lambda made: restarted(made, healed=False), NOT_HEALED),
        (stopped, None),
    ],
    ids=["whole", "a line without a time", "a line of another time", "no recovery", "no end",
         "not healed", "no attempt to heal", "a restart", "a start too few", "a start too many",
         "no start", "a start of another", "a restart not healed", "stopped"],
)  # fmt: skip
def test_a_pass_needs_a_whole_run(made, scenario, doubt):
    scenario(made)
    found = doubts(made)
    if doubt is None:
        assert found == []
    else:
        (because,) = found
        assert doubt in because


def test_starts_are_counted_in_runs_that_came_to_their_end(made):
    """If a run died, `groupquake heal` wrote the last entries of its journal."""
    restarted(made, starts={"2": 1})
    made.journal.pop()
    assert doubts(made) == [CUT]


def failed_script(made: MadeUpRun) -> None:
    failed = {"event": "failed", "fault_id": None, "error": "a wire script"}
    made.journal.insert(-1, {"at_ms": made.recovery_ms, **failed})


@pytest.mark.parametrize(
    ("wrong", "scenario", "expected"),
    [
        (too_few, lambda made: None, "fail"),
        (too_few, lambda made: made.journal.pop(), "unknown"),
        (too_few, failed_script, "unknown"),
        (too_few, stopped, "unknown"),
        (wrong_answer, lambda made: None, "fail"),
        (wrong_answer, stopped, "fail"),
        (wrong_answer, lambda made: restarted(made, starts={"2": 1}), "unknown"),
        (wrong_answer, lambda made: made.kip_848.append("dynamic"), "unknown"),
    ],
    ids=["whole", "cut", "a script failed", "stopped", "answer", "answer and stopped",
         "answer and a start too few",
         "answer to a group of KIP-848"],
)  # fmt: skip
def test_what_a_fail_proves_in_a_run_that_is_not_whole(made, wrong, scenario, expected):
    """More rebalances might have come; a broken protocol is broken all the same."""
    wrong(made)
    scenario(made)
    _, judged, *_ = made.finish()
    assert judged["verdict"] == expected
    assert (judged["unknown_because"] == []) == (expected == "fail")


def test_a_fault_that_was_cut_short_leaves_it_open(made):
    stopped(made)
    last_of(made, "verified").update(verified=False, witness="was not waited for")
    why, cut = doubts(made)
    assert why == STOPPED
    assert "was not waited for" in cut


WIRE = {"evidence": "wire"}
ASSUMED = {"cluster_id": "c", "assumed": True, "unsure": ["defaults are assumed"]}


@pytest.mark.parametrize(
    ("environment", "bound", "kip_848", "expected"),
    [
        ({}, {}, [], "fail"),
        (WIRE, {"new_member_id": 3}, [], "fail"),
        (ASSUMED, {}, [], "fail"),
        (WIRE | {"cluster_id": "c"}, {}, [], "fail"),
        (WIRE, {"unseen_member": 1}, [], "unknown"),
        (WIRE, {"unseen_takeover": 1}, [], "unknown"),
        (WIRE, {"census": 1}, [], "unknown"),
        (WIRE | ASSUMED, {}, [], "unknown"),
        ({}, {}, ["dynamic"], "unknown"),
    ],
    ids=["logs", "wire", "a cluster of the user's", "wire, and the user's", "an unseen member",
         "an unseen takeover", "a census", "settings are assumed", "KIP-848"],
)  # fmt: skip
def test_a_number_proves_nothing_where_evidence_passed_the_tap_by(
    made, environment, bound, kip_848, expected
):
    too_few(made)
    result = judged_with(made, environment, bound, kip_848)
    assert result["expectations_unmet"]
    assert result["verdict"] == expected
    if expected == "unknown":
        assert result["unknown_because"] or "census" in bound, "findings come with a census"


def judged_with(
    made: MadeUpRun, environment: Mapping[str, Any], bound: Mapping[str, int], kip_848: list[str]
) -> Json:
    if "cluster_id" in environment:
        made.starts = dict.fromkeys(made.starts, 0)  # its brokers ran before
    _, _, data, *_ = made.finish()
    (made.folder / "environment.json").write_text(json.dumps({**made.environment, **environment}))
    data = replace(data, bound={"dynamic": dict(bound)}, kip_848=kip_848)
    return verdict.evaluate(RunFolder(made.folder), data, "4.3")


def test_other_groups_are_judged_as_before(made):
    too_few(made)
    made.owners = "  - {group: static, phase: impact, rebalances: 1}\n"
    assert judged_with(made, WIRE, {"unseen_member": 1}, [])["verdict"] == "fail"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("broker_error", "2 requests were answered with errors that are not the group's"),
        ("unlogged_return", "2 members have ids that no response gave"),
    ],
)
def test_what_is_bound_and_a_doubt(made, kind, why):
    run, _, data, *_ = made.finish()
    data.bound["static"][kind] = 2
    judged = verdict.evaluate(run, data, "4.3")
    (because,) = judged["unknown_because"]
    assert judged["verdict"] == "unknown"
    assert f"group static: {why}" in because


@pytest.mark.parametrize(("failed", "doubts"), [(0, 0), (72, 0), (73, 1)])
def test_unusually_many_failed_writes_are_a_doubt(made, failed, doubts):
    """Eight members, no broker was down: each has time for 30 s x 1.5 / 5 s = 9 of them."""
    run, *_ = made.finish()
    members = sum(member.group == "static" for member in run.experiment.members())
    assert (members, len(run.outages)) == (8, 0)
    found = [*doubtful.failed_writes(run, {"static": {"failed_write": failed}})]
    assert len(found) == doubts


@pytest.mark.parametrize(("after_ms", "may_fail"), [(0, True), (9_900, True), (10_100, False)])
def test_writes_may_fail_until_replicas_have_caught_up(recording, after_ms, may_fail):
    run = recording.run
    ((_, _, killed_ms),) = run.killed_between
    healed_ms = max(e["at_ms"] for e in run.journal if e["event"] == "healed")
    (outage,) = run.outages
    assert killed_ms < healed_ms
    assert outage.has(healed_ms + after_ms) == may_fail
    assert not outage.has(killed_ms - 100.0)


@pytest.mark.parametrize("left", [0, 1])
def test_a_group_without_requests_is_a_doubt(left):
    """One of real clients, and of wire scripts; one request is evidence, others are gaps."""
    folder = RECORDINGS["kafka-4.3.0"].folder.parent / "leaders" / "skip-assignment-4.3.0"
    run = Recording(folder).run
    names = set(run.experiment.group_names)
    assert (
        names
        == set(Recording(folder).groups)
        == {"static", "java", "leader_returns", "leader_misses"}
    )
    for group in names:
        counts = dict.fromkeys(names, 50) | {group: left}
        rows = {name: {"requests": n, "explained": n} for name, n in counts.items() if n}
        found = verdict.evaluate(run, Results(groups=rows), "4.3")
        doubts = [one for one in found["unknown_because"] if "no request of it" in one]
        missing = f"group {group}: no request of it in any broker's log"
        assert doubts == ([] if left else [missing])
        assert set(found["groups"]) == names
