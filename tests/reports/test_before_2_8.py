"""Runs on Kafka 2.4 to 2.7, whose brokers log requests as text: recorded, and judged."""

import re
from pathlib import Path
from typing import Any

import pytest

from groupquake.mutants.recording import Recording
from reference_coordinator.replay.event_file import read
from tests.reports.conftest import Judge, unpacked

pytestmark = pytest.mark.spark

RECORDED = Path(__file__).parents[1] / "recorded" / "before-2.8"
RUNS = sorted(folder.name for folder in RECORDED.iterdir())


def run_of(name: str, tmp_path: Path) -> Path:
    return unpacked(Recording(RECORDED / name), tmp_path / "run")


def completed(run: Path) -> int:
    return sum(log.read_text().count("Completed request:") for log in run.glob("brokers/*/*.log"))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_has_the_verdict_that_its_experiment_foretells(
    name: str, tmp_path: Path, judge: Judge
) -> None:
    run = run_of(name, tmp_path)
    verdict = judge(run)
    assert verdict["verdict"] == (verdict["foretold"] or "pass")
    assert verdict["unknown_because"] == []
    assert verdict["coverage"]["rejected"] == 0
    checked = sum(group["responses_checked"] for group in verdict["groups"].values())
    assert checked == completed(run) > 0


def test_both_sides_of_each_defect_are_there() -> None:
    told = [Recording(RECORDED / name).run.experiment for name in RUNS]
    sides = {(one.name, one.foretold) for one in told if one.foretold}
    assert sides == {
        ("replaced-then-failover", "fail"),
        ("replaced-then-failover", "pass"),
        ("replaced-while-completing", "fail"),
        ("replaced-while-completing", "pass"),
    }


def roots(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in verdict["findings"] if finding["root"]]


def test_an_empty_assignment_is_seen_by_its_length(tmp_path: Path, judge: Judge) -> None:
    """KAFKA-9801; under the rules of 2.4.1 that is as it has to be."""
    run = run_of("replaced-while-completing-2.4.1", tmp_path)
    log = run / "brokers" / "1" / "group.log"
    given = re.search(r"apiKey=SYNC_GROUP.*clientId=replaced-b,.*", log.read_text())
    assert given is not None
    assert "error_code=0,assignment=java.nio.HeapByteBuffer[pos=0 lim=0 cap=0]" in given[0]
    by_release(run)
    assert judge(run)["verdict"] == "pass"
    log.write_text(log.read_text().replace(given[0], given[0].replace("lim=0", "lim=7")))
    verdict = judge(run)
    assert verdict["verdict"] == "fail"
    [root] = roots(verdict)
    assert root["kind"] == "wrong_answer"
    assert root["expected"].startswith("SYNC_GROUP of replaced-b: assignment=")
    assert "(7 bytes)" in root["observed"]
    assert (run / "counterexample.jsonl").exists()
    [sequence] = read((run / "counterexample.jsonl").read_text().splitlines(), "counterexample")
    assert sequence.kafka == "2.4.1"


def by_release(run: Path) -> None:
    """Judge a run by the rules of its release."""
    experiment = run / "experiment.yaml"
    text, _, _ = experiment.read_text().partition("verdicts:")
    experiment.write_text(text.replace("judge: kip-345", "judge: release"))


def test_metadata_of_one_length_may_differ(tmp_path: Path, judge: Judge) -> None:
    """A follower rejoins with others, and the group rebalances: whether that is due is not told."""
    run = run_of("protocol-corners-2.4.1", tmp_path)
    longer, as_before = "lim=22 cap=22", "lim=18 cap=18"
    for log in run.glob("brokers/*/group.log"):
        told = log.read_text()
        assert longer in told or "group_id=leading" not in told
        log.write_text(told.replace(longer, as_before))
    verdict = judge(run)
    assert verdict["verdict"] == "unknown"
    assert {finding["group"] for finding in verdict["findings"]} == {"leading"}
    assert any("metadata changed is not in the log" in why for why in verdict["unknown_because"])


def test_a_line_that_may_mean_two_things_is_a_gap(tmp_path: Path, judge: Judge) -> None:
    run = run_of("replaced-while-completing-2.5.1", tmp_path)
    log = run / "brokers" / "1" / "group.log"
    beat = re.search(r"apiKey=HEARTBEAT.*", log.read_text())
    assert beat is not None
    other = beat[0].replace("{group_id=static,", "{group_id=sta},tic,")
    assert other != beat[0]
    log.write_text(log.read_text().replace(beat[0], other))
    verdict = judge(run)
    assert verdict["verdict"] == "unknown"
    assert verdict["coverage"]["rejected"] == 1
