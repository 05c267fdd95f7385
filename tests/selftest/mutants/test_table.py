"""What `python -m selftest mutants` works out: a sample, and all (marked exhaustive)."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from groupquake.fuzz.judge import Verdict
from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.classic.step import step
from reports.judgement.log.log_places import Level
from reports.judgement.recording import Recording
from scenarios import named
from selftest.broken_rules import BROKEN_RULES, MUTANTS
from selftest.lies import LIES
from selftest.mutants import judging, table
from selftest.mutants.evidence import KEPT, Runs, sequences_in
from selftest.mutants.table import NOT_SHOWN, Row, Table, row, where
from tests.groupquake.conftest import Command
from tests.reports.conftest import COORDINATORS

PAGE = (
    (Path(__file__).parents[3] / "docs" / "mutants.md")
    .read_text("utf-8")
    .partition("## At level")[0]
)
LOGS, WIRE = Level.REQUESTS, Level.WIRE
SAMPLE = ("does_not_fence_heartbeats", "keeps_old_member_id", "tells_leader_of_itself_alone")
SLOW = "join_group_"
"""Lies about JoinGroup take seconds each: the whole table tells them."""
RULE = Row(LOGS, "never_expires", "KIP-345", "demo", 10, 10, 10, elsewhere="1 of 5 sequences")
LIE = Row(LOGS, "id_given_again", "member ids", "demo", 10, 10, 9, 1)
ON_WIRE = Row(WIRE, "never_expires", "KIP-345", "demo", 10, 10, 4, 5, 1)


def in_docs(name: str) -> str:
    (line,) = re.findall(rf"^\| `{name}` \|.*$", PAGE, re.MULTILINE)
    return str(line)


def test_every_rule_and_lie_is_in_the_docs_and_has_its_experiment() -> None:
    assert len(BROKEN_RULES) >= 58
    assert len(LIES) >= 91
    for name in (*BROKEN_RULES, *LIES):
        experiment, group = where(name)
        basis = BROKEN_RULES[name].source if name in BROKEN_RULES else LIES[name].freedom
        assert f"| {basis} | `{experiment}` " in in_docs(name)
        workload = named(experiment).workload
        assert group in {one.name for one in workload.groups} | set(workload.wire_scripts)


@pytest.mark.exhaustive
def test_the_docs_have_the_results_of_all_mutants_on_all_seeds(process: Command) -> None:
    done = process("mutants", timeout_s=900)
    assert done.code == 0, done.err
    rows = [line for line in done.out.splitlines() if line.startswith("| `")]
    assert rows == [in_docs(name) for name in (*BROKEN_RULES, *LIES)]


def test_the_docs_have_the_results_of_the_evidence(runs: Runs) -> None:
    sequences = sequences_in(KEPT / "traces")
    for name in SAMPLE:
        worked_out = row(name, LOGS, runs[BROKEN_RULES[name].experiment], sequences)
        assert worked_out.line == in_docs(name)
        assert worked_out.is_found


@pytest.mark.parametrize("experiment", sorted({rule.experiment for rule in BROKEN_RULES.values()}))
def test_a_mutant_of_each_experiment_is_found_and_nothing_where_no_rule_is_broken(
    experiment: str, runs: Runs
) -> None:
    run = runs[experiment][0]
    assert [found for group in run.groups for found in judging.found(run, group)] == []
    name, rule = next(
        (n, rule) for n, rule in BROKEN_RULES.items() if rule.experiment == experiment
    )
    result = row(name, LOGS, [run])
    assert (result.runs, result.fails) == (1, 1)
    kept = judging.synthesized_run_of(step, run, rule.group)
    assert judging.found(kept, rule.group) == []


def test_no_lie_is_believed(runs: Runs) -> None:
    listed = [name for name in LIES if not name.startswith(SLOW) and name not in NOT_SHOWN]
    by_run = sorted(listed, key=where)
    results = {name: row(name, LOGS, runs[where(name)[0]][:1]) for name in by_run}
    assert {n: r for n, r in results.items() if (r.runs, r.fails + r.doubts) != (1, 1)} == {}


@pytest.mark.parametrize(
    ("name", "fails", "untraced"),
    [
        ("does_not_fence_heartbeats", 1, 0),
        ("does_not_rebalance_on_leave", 1, 0),
        ("never_expires", 1, 0),
        ("heartbeat_unknown_member_id_without_a_fault", 1, 0),
        ("offset_commit_unknown_member_id_in_an_outage", 1, 0),
        ("preparing_line_late", 0, 1),
        ("fenced_line_left_out", 0, 1),
    ],
)
def test_what_changes_an_answer_is_found_on_the_wire(
    name: str, fails: int, untraced: int, runs: Runs
) -> None:
    result = row(name, WIRE, runs[where(name)[0]][:1])
    assert (result.runs, result.fails, result.doubts, result.untraced) == (1, fails, 0, untraced)
    assert result.is_found


def test_the_oracle_explains_the_kept_sequences_and_a_mutant_does_not() -> None:
    kept = sequences_in(KEPT / "traces")
    small = sorted(kept, key=lambda sequence: len(sequence.requests))[:3]
    assert {judging.explains(sequence) for sequence in small} == {Verdict.EXPLAINED}
    mutant = MUTANTS["gives_no_id_first"]
    fooled = [judging.explains(sequence, mutant, judging.BRIEFLY) for sequence in kept]
    assert Verdict.UNEXPLAINED in fooled


def test_real_responses_contradict_a_coordinator_without_its_partition() -> None:
    recording = Recording(KEPT / "kafka-4.3.0")
    assert judging.contradicts(recording, "failover", MUTANTS["answers_when_not_coordinator"])
    assert not judging.contradicts(recording, "failover", MUTANTS["has_no_max_size"])


@pytest.mark.parametrize(
    ("one", "found", "explained"),
    [
        (RULE, True, False),
        (replace(RULE, fails=9), False, False),
        (replace(RULE, fails=9, doubts=1), False, False),
        (replace(RULE, fails=9, runs=9), False, False),
        (replace(RULE, fails=9, runs=9, given=9), False, False),
        (replace(RULE, elsewhere=""), False, False),
        (LIE, True, False),
        (replace(LIE, fails=8), False, False),
        (replace(LIE, fails=8, runs=9), False, False),
        (replace(LIE, name="heartbeat_held", fails=8, doubts=0), False, True),
        (replace(LIE, name="heartbeat_held", fails=7, doubts=1), False, True),
        (replace(LIE, name="heartbeat_held", fails=7, doubts=0), False, False),
        (replace(LIE, name="heartbeat_held", fails=0, doubts=0, runs=0), False, False),
        (ON_WIRE, True, False),
        (replace(ON_WIRE, untraced=0), False, False),
        (replace(ON_WIRE, runs=0, fails=0, doubts=0, untraced=0), False, False),
        (replace(ON_WIRE, given=11), False, False),
        (replace(ON_WIRE, name="heartbeat_held", untraced=0), False, True),
    ],
)
def test_one_run_that_is_believed_makes_the_table_bad(
    one: Row, *, found: bool, explained: bool
) -> None:
    assert (one.is_found, one.is_explained) == (found, explained)
    assert Table((RULE, one), 50, 0, 5, 0).good == (found or explained)


@pytest.mark.parametrize("level", [LOGS, WIRE])
@pytest.mark.parametrize(
    ("altered", "plain", "unknown"),
    [
        ({"doubtful_line": 1}, {}, 1),
        ({"doubtful_line": 2}, {"doubtful_line": 1}, 1),
        ({"doubtful_line": 1}, {"doubtful_line": 1}, 0),
        ({"unseen_member": 1}, {}, 0),
        ({}, {}, 0),
    ],
)
def test_a_lie_is_unknown_only_by_a_doubt_of_its_own(
    level: Level, altered: dict[str, int], plain: dict[str, int], unknown: int, runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What makes the unaltered run unknown, too, or is not designed for the lie, shows nothing."""
    found = iter((altered, plain))
    monkeypatch.setattr(table, "fails", lambda *_: False)
    monkeypatch.setattr(table, "doubts", lambda *_: Counter(next(found)))
    result = row("fenced_line_with_another_holder", level, runs["duplicate-instance-id"][:1])
    assert (result.runs, result.fails, result.doubts) == (1, 0, unknown)


def test_two_recordings_stand_for_the_coordinators() -> None:
    """The rules of 3.9 on Java are those of 4.3: a recording of each coordinator tries mutants."""
    assert replace(PROFILES["3.9-java"], name="4.3") == PROFILES["4.3"]
    assert COORDINATORS == ("kafka-3.9.1-scala", "kafka-4.3.0")


@pytest.mark.parametrize(
    ("findings", "contradicted", "good"), [(0, 0, True), (1, 0, False), (0, 1, False)]
)
def test_a_finding_in_unaltered_evidence_makes_it_bad(
    findings: int, contradicted: int, *, good: bool
) -> None:
    assert Table((RULE,), 50, findings, 5, contradicted).good == good


def test_the_summary_counts_and_runs_without_a_place_are_listed_as_not_exercised() -> None:
    lies = (LIE, replace(LIE, name="heartbeat_held", fails=8, doubts=0), replace(LIE, fails=1))
    assert Table((RULE, replace(RULE, fails=1), *lies), 53, 2, 5, 1).summary == (
        "2 broken rules: 1 found; 3 lies: 1 found; 1 explained; 0 not exercised; unaltered:"
        " 2 findings in 53 runs, 1 of 5 sequences not explained"
    )
    some, none = replace(RULE, runs=7, fails=7), replace(LIE, runs=0, fails=0, doubts=0, given=0)
    assert some.line.endswith("| not exercised in 3 of 10 runs |")
    assert none.line.endswith("| not exercised in 0 of 0 runs |")
    idle = "0 found; 1 lies: 0 found; 0 explained; 2 not exercised;"
    assert idle in Table((some, none), 5, 0).summary


def test_without_evidence_the_table_has_no_result(command: Command, tmp_path: Path) -> None:
    missing = command("mutants", "--evidence", tmp_path / "none")
    assert (missing.code, "does not exist" in missing.err) == (64, True)
