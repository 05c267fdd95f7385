"""What `python -m selftest mutants` works out: a sample of it, and all of it (marked long)."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from groupquake.fuzz.judge import Verdict
from reference_coordinator.classic.step import step
from reports.judgement.recording import Recording
from scenarios import named, names
from selftest.broken_rules import MUTANTS
from selftest.lies.table import LIES, LieResult
from selftest.mutants import judging, traces
from selftest.mutants.catching_experiments import CATCHING_EXPERIMENTS
from selftest.mutants.command import KEPT
from selftest.mutants.evidence import Runs
from selftest.mutants.table import (
    Row,
    Table,
    is_caught_as_oracle,
    is_caught_in_logs,
    row,
)
from tests.groupquake.conftest import Command

PAGE = (Path(__file__).parents[3] / "docs" / "mutants.md").read_text(encoding="utf-8")
CAUGHT = Row("m", "Break it", "KIP-345", "demo", 10, 10, 1, 5, 0, 0)
SAMPLE = ("does_not_fence_heartbeats", "keeps_old_member_id", "tells_leader_of_itself_alone")


def in_docs(mutant: str) -> str:
    (line,) = re.findall(rf"^\| `{mutant}` \|.*$", PAGE, re.MULTILINE)
    return str(line)


def test_every_mutant_has_a_group_of_an_experiment_that_catches_it() -> None:
    assert CATCHING_EXPERIMENTS.keys() == MUTANTS.keys()
    assert len(MUTANTS) >= 40
    for assigned in CATCHING_EXPERIMENTS.values():
        assert assigned.experiment in names()
        workload = named(assigned.experiment).workload
        groups = {group.name for group in workload.groups} | set(workload.wire_scripts)
        assert assigned.group in groups


def test_every_mutant_is_in_the_docs_with_its_experiment_and_source() -> None:
    for mutant, assigned in CATCHING_EXPERIMENTS.items():
        assert f"| {assigned.source} | `{assigned.experiment}` " in in_docs(mutant)


@pytest.mark.exhaustive
def test_the_docs_have_the_results_of_all_mutants_on_all_seeds(process: Command) -> None:
    done = process("mutants", timeout_s=900)
    assert done.code == 0, done.err
    rows = [line for line in done.out.splitlines() if line.startswith("| `")]
    assert rows == [in_docs(name) for name in (*MUTANTS, *LIES)]


@pytest.mark.parametrize("mutant", SAMPLE)
def test_the_docs_have_the_results_of_the_evidence(mutant: str, runs: Runs) -> None:
    mine = runs[CATCHING_EXPERIMENTS[mutant].experiment]
    worked_out = row(mutant, mine, traces.read_all(KEPT / "traces"), ())
    assert worked_out.line == in_docs(mutant)
    assert worked_out.caught_in_logs
    assert worked_out.caught_as_oracle


@pytest.mark.parametrize(
    "experiment", sorted({a.experiment for a in CATCHING_EXPERIMENTS.values()})
)
def test_unaltered_evidence_has_no_finding(experiment: str, runs: Runs) -> None:
    first = runs[experiment][0]
    assert first.groups
    assert [found for group in first.groups for found in judging.found(first, group)] == []


@pytest.mark.parametrize(
    "experiment", sorted({a.experiment for a in CATCHING_EXPERIMENTS.values()})
)
def test_one_mutant_of_each_experiment(experiment: str, runs: Runs) -> None:
    mutant = next(
        name for name, catching in CATCHING_EXPERIMENTS.items() if catching.experiment == experiment
    )
    run, group = runs[experiment][0], CATCHING_EXPERIMENTS[mutant].group
    assert is_caught_in_logs(mutant, run)
    assert judging.found(judging.synthesized_run_of(step, run, group), group) == []


def test_the_oracle_explains_the_kept_sequences_and_a_mutant_does_not() -> None:
    kept = traces.read_all(KEPT / "traces")
    small = sorted(kept, key=lambda sequence: len(sequence.requests))[:3]
    assert {traces.verdict(sequence) for sequence in small} == {Verdict.EXPLAINED}
    fooled = [traces.verdict(s, MUTANTS["gives_no_id_first"], traces.BRIEFLY) for s in kept]
    assert Verdict.UNEXPLAINED in fooled


def test_real_responses_contradict_a_coordinator_without_its_partition() -> None:
    recording = Recording(KEPT / "kafka-4.3.0")
    assert is_caught_as_oracle("speaks_without_office", recording, "failover")
    assert not is_caught_as_oracle("has_no_max_size", recording, "failover")


@pytest.mark.parametrize(
    "row",
    [
        replace(CAUGHT, caught=9),
        replace(CAUGHT, caught=9, seeds=9),
        replace(CAUGHT, unexplained=0),
    ],
)
def test_one_miss_makes_the_table_bad(row: Row) -> None:
    assert Table((CAUGHT,), (), 50, 0, 5, 0).good
    assert not Table((CAUGHT, row), (), 50, 0, 5, 0).good


def test_one_lie_that_is_believed_makes_the_table_bad() -> None:
    found = LieResult("l", "lines", "demo", 10, 9, 1)
    believed = replace(found, fails=8)
    assert Table((CAUGHT,), (found,), 50, 0, 5, 0).good
    assert not Table((CAUGHT,), (found, believed), 50, 0, 5, 0).good
    assert not Table((CAUGHT,), (replace(found, runs=9, fails=8),), 50, 0, 5, 0).good


def test_a_finding_in_unaltered_evidence_makes_it_bad() -> None:
    assert not Table((CAUGHT,), (), 50, 1, 5, 0).good
    assert not Table((CAUGHT,), (), 50, 0, 5, 1).good


def test_without_evidence_the_table_has_no_result(command: Command, tmp_path: Path) -> None:
    missing = command("mutants", "--evidence", tmp_path / "none")
    assert (missing.code, "does not exist" in missing.err) == (64, True)
