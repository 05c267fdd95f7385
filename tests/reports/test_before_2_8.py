"""Runs on Kafka 2.4 to 2.7, whose brokers log requests as text: recorded, and judged."""

import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest

from kafka_protocol.request_log import COMPLETED
from reference_coordinator.classic.releases import promised_by
from reports.judgement.findings import Finding, proven_roots
from reports.judgement.recording import Recording
from reports.judgement.run_context import RunContext
from selftest.mutants.judging import found
from tests.reports import conftest
from tests.reports.judged_here import judged_here

RECORDED = Path(__file__).parents[1] / "recorded" / "before-2.8"
RUNS = sorted(folder.name for folder in RECORDED.iterdir())


class Promised(Recording):
    """A recorded run, judged by what KIP-345 promises."""

    @cached_property
    def context(self) -> RunContext:
        context = super().context
        promised = promised_by(context.profile)
        return replace(context, profile=promised, promised=promised)


def unpacked(name: str, tmp_path: Path) -> Path:
    return conftest.unpacked(Recording(RECORDED / name), tmp_path / "run")


def differences(run: Recording) -> list[Finding]:
    return [one for group in run.groups for one in found(run, group)]


@pytest.mark.parametrize("name", RUNS)
def test_every_line_is_understood_and_explained_by_the_rules_of_the_release(
    name: str, tmp_path: Path
) -> None:
    run = Recording(unpacked(name, tmp_path))
    assert run.gaps == []
    assert differences(run) == []
    requests = [line for line in run.lines if COMPLETED in line.text]
    assert requests
    assert all(line.row["readable"] for line in requests)


BOTH_SIDES = {
    "replaced-then-failover": {"2.6.0": "fail", "2.6.1": "pass"},
    "replaced-while-completing": {"2.4.1": "fail", "2.5.1": "pass"},
}


@pytest.mark.parametrize("defect", BOTH_SIDES)
def test_a_known_defect_fails_as_its_experiment_expects_up_to_its_release(
    defect: str, tmp_path: Path
) -> None:
    for release, verdict in BOTH_SIDES[defect].items():
        run = Promised(unpacked(f"{defect}-{release}", tmp_path / release))
        experiment = run.run.experiment
        assert (experiment.name, experiment.judge) == (defect, "kip-345")
        assert experiment.expected_verdict is not None
        assert experiment.expected_verdict.verdict == verdict
        assert bool(proven_roots(differences(run))) == (verdict == "fail")


def altered(name: str, tmp_path: Path, line: str, old: str, new: str) -> Path:
    """Copy a run with other words in the first line that is found."""
    run = unpacked(name, tmp_path)
    for log in run.glob("brokers/*/group.log"):
        text = log.read_text()
        if match := re.search(line, text):
            assert match[0].count(old) == 1, match[0]
            log.write_text(text.replace(match[0], match[0].replace(old, new)))
            return run
    raise AssertionError(f"no line {line}")


def test_an_empty_assignment_is_seen_by_its_length(tmp_path: Path) -> None:
    """KAFKA-9801: the rules of 2.4.1 have the member that is back given nothing."""
    given = r"apiKey=SYNC_GROUP.*clientId=replaced-b,.*"
    answer = "response:{throttle_time_ms=0,error_code=0,assignment=java.nio.HeapByteBuffer[pos=0 "
    lengths = f"{answer}lim=0", f"{answer}lim=7"
    run = altered("replaced-while-completing-2.4.1", tmp_path, given, *lengths)
    [root] = proven_roots(differences(Recording(run)))
    assert root.kind == "wrong_answer"
    assert root.expected.startswith("SYNC_GROUP of replaced-b: assignment=")
    assert root.observed == "SYNC_GROUP of replaced-b: assignment=(7 bytes)"


def test_a_line_that_may_mean_two_things_is_a_gap(tmp_path: Path) -> None:
    beat, group, two = r"apiKey=HEARTBEAT.*", "{group_id=static,", "{group_id=sta},tic,"
    run = altered("replaced-while-completing-2.5.1", tmp_path, beat, group, two)
    [gap] = Recording(run).gaps
    assert gap.cause.startswith("line not understood")


def test_metadata_of_one_length_may_differ(tmp_path: Path) -> None:
    """A follower rejoins with other metadata: no log shows whether the rebalance was due."""
    run = unpacked("protocol-corners-2.4.1", tmp_path)
    for log in run.glob("brokers/*/group.log"):
        log.write_text(log.read_text().replace("lim=22 cap=22", "lim=18 cap=18"))
    verdict = judged_here(run)
    assert verdict["verdict"] == "unknown"
    found = {(finding["group"], finding["proven"]) for finding in verdict["findings"]}
    assert found == {("leading", False)}
    why = "whether a member's metadata changed is not in the log, their length is"
    assert f"group leading: {why}" in verdict["unknown_because"]
