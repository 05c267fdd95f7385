"""What would make a pass claim too much, though every answer and rebalance is as it has to be."""

from pathlib import Path

import pytest

from reports.judgement.missing.gaps import gap
from tests.reports.page_run import ZERO_MS, MadeUpRun, made_up


@pytest.fixture
def made(tmp_path: Path) -> MadeUpRun:
    return made_up(tmp_path / "run")


def doubts(made: MadeUpRun) -> list[str]:
    _, verdict, *_ = made.finish()
    assert verdict["verdict"] == ("unknown" if verdict["unknown_because"] else "pass")
    return verdict["unknown_because"]


def test_nothing_is_in_doubt(made: MadeUpRun) -> None:
    assert doubts(made) == []


@pytest.mark.parametrize("at_ms", [None, ZERO_MS - 60_000])
def test_an_unreadable_line_is_in_doubt_at_any_time(made: MadeUpRun, at_ms: float | None) -> None:
    made.gaps.append(gap("3", 7, at_ms, "line not understood: \\x00"))
    assert doubts(made) == [
        "evidence is missing: brokers/3/group.log:7: line not understood: \\x00"
    ]


@pytest.mark.parametrize("phase", ["recovery", "end"])
def test_a_run_that_did_not_come_to_its_end(made: MadeUpRun, phase: str) -> None:
    made.journal = [entry for entry in made.journal if entry.get("phase") != phase]
    assert doubts(made) == ["the journal ends before the run did"]


def test_a_count_proves_nothing_in_a_run_that_did_not_come_to_its_end(made: MadeUpRun) -> None:
    del made.comparison[6:]
    made.journal.pop()
    _, verdict, *_ = made.finish()
    assert verdict["expectations_unmet"] != []
    assert verdict["verdict"] == "unknown"


def test_a_count_proves_nothing_after_a_failed_wire_script(made: MadeUpRun) -> None:
    del made.comparison[6:]
    _, verdict, *_ = made.finish()
    assert verdict["verdict"] == "fail"
    failed = {
        "at_ms": made.recovery_ms,
        "event": "failed",
        "fault_id": None,
        "error": "a wire script",
    }
    made.journal.insert(-1, failed)
    _, verdict, *_ = made.finish()
    assert verdict["verdict"] == "unknown"


def test_starts_are_counted_in_runs_that_came_to_their_end(made: MadeUpRun) -> None:
    """If a run died, `groupquake heal` wrote the last entries of its journal."""
    start_again(made, "2")
    made.journal.pop()
    assert doubts(made) == ["the journal ends before the run did"]


def test_a_fault_that_was_not_healed(made: MadeUpRun) -> None:
    last = next(entry for entry in reversed(made.journal) if entry["event"] == "healed")
    last["healed"] = False
    (doubt,) = doubts(made)
    assert doubt.endswith(" was not put right")


def test_a_fault_without_an_attempt_to_heal(made: MadeUpRun) -> None:
    first = next(entry for entry in made.journal if entry["event"] == "intent")
    first["kind"] = "recoverable"
    made.journal = [
        entry
        for entry in made.journal
        if (entry["event"], entry.get("fault_id")) != ("healed", first["fault_id"])
    ]
    (doubt,) = doubts(made)
    assert doubt.endswith(" was not put right")


def start_again(made: MadeUpRun, broker: str, *, healed: bool = True) -> None:
    """Let a fault have the broker stopped and started."""
    at_ms = made.recovery_ms - 4_000
    came = {"at_ms": at_ms, "fault_id": "f99"}
    made.journal[-1:-1] = [
        {**came, "event": "intent", "fault": "broker.stop", "target": f"broker-{broker}",
         "kind": "recoverable", "args": {"broker": int(broker)}},
        {**came, "event": "injected"},
        {**came, "event": "verified", "verified": True, "witness": "it is gone"},
        {**came, "event": "healed", "healed": healed, "witness": "it is back"},
    ]  # fmt: skip


def test_a_broker_that_was_started_again_has_two_processes(made: MadeUpRun) -> None:
    start_again(made, "2")
    made.starts["2"] = 2
    assert doubts(made) == []


@pytest.mark.parametrize(("broker", "starts"), [("2", 1), ("2", 3), ("1", 0), ("1", 2)])
def test_a_log_with_another_number_of_starts(made: MadeUpRun, broker: str, starts: int) -> None:
    start_again(made, "2")
    made.starts |= {"2": 2, broker: starts}
    made.add_violation("2:777", made.recovery_ms - 1_000, "dynamic", "dynamic-dynamic-3")
    (doubt,) = doubts(made)
    started = {"1": 1, "2": 2}[broker]
    assert doubt == (
        f"evidence is missing: brokers/{broker}/group.log: {starts} starts of the broker are in the"
        f" log, {started} in the journal"
    )


def test_a_broker_that_was_not_healed_may_have_been_started(made: MadeUpRun) -> None:
    start_again(made, "2", healed=False)
    made.starts["2"] = 2
    (doubt,) = doubts(made)
    assert doubt.endswith(" was not put right")


@pytest.mark.parametrize(("kip_848", "verdict"), [([], "fail"), (["dynamic"], "unknown")])
def test_answers_to_a_group_of_the_other_protocol_prove_nothing(
    made: MadeUpRun, kip_848: list[str], verdict: str
) -> None:
    made.add_violation("2:777", made.recovery_ms - 1_000, "dynamic", "dynamic-dynamic-3")
    made.kip_848 = kip_848
    _, judged, *_ = made.finish()
    assert judged["verdict"] == verdict
