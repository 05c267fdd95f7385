"""Whole nights, as a user or a timer starts them."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import psutil
import pytest

from chaos.journal import open_faults, read
from chaos.waiting import until
from groupquake.nightly.night import judged
from tests.groupquake.conftest import Command, arguments, running
from tests.groupquake.nightly.conftest import Write
from tests.groupquake.test_whole_run import require_healed

Json = dict[str, Any]


FAIL = {"verdict": "fail", "because": "p", "group": "g"}
PASS = {"verdict": "pass", "because": None, "group": None}
OUTCOMES: tuple[tuple[int, str, Json | None, bool, str, str | None], ...] = (
    (0, "pass", None, False, "pass", None),
    (1, "fail", FAIL, True, "pass", "fail, as expected"),
    (1, "fail", FAIL, False, "fail", "fail, though fail because of p in g was expected"),
    (0, "pass", FAIL, False, "fail", "pass, though fail because of p in g was expected"),
    (1, "fail", PASS, False, "fail", "fail, though pass was expected"),
    (2, "unknown", PASS, False, "unknown", "unknown, though pass was expected"),
)
"""Exit code and verdict of a run, what its experiment expects, whether that came true; what the
night makes of it, and why."""


def test_a_run_passes_with_the_verdict_that_its_experiment_expects(tmp_path: Path) -> None:
    nothing: Json = {"groups": {}, "why": []}
    for code, verdict, expected, met, outcome, why in OUTCOMES:
        expects = expected and expected | {"met": met}
        text = json.dumps({"verdict": verdict, "expected_verdict": expects, **nothing})
        (tmp_path / "verdict.json").write_text(text)
        run = judged(code, 1.0, tmp_path, tmp_path / "output.txt")
        assert (run["verdict"], run["why"]) == (outcome, why)


def test_a_run_says_its_first_reason(tmp_path: Path) -> None:
    reasons = ["a line is missing (to settle it: the whole log)", "It came. Due: Nothing."]
    verdict: Json = {"verdict": "unknown", "expected_verdict": None, "groups": {}, "why": reasons}
    (tmp_path / "verdict.json").write_text(json.dumps(verdict))
    why = judged(2, 1.0, tmp_path, tmp_path / "output.txt")["why"]
    assert why == "a line is missing (to settle it: the whole log) (and 1 more)"


def last_night(folder: Path) -> Json:
    record: Json = json.loads((folder / "nights" / "latest" / "night.json").read_text())
    return record


@pytest.mark.long
@pytest.mark.cluster
def test_a_night_that_fails_and_one_that_passes_stand_on_one_page(
    process: Command, experiment: Write, suite: Write, tmp_path: Path
) -> None:
    experiment("tiny")
    experiment("wrong", rebalances=3)
    failed = process("nightly", suite("tiny", "wrong"), "--json", timeout_s=900)
    record = json.loads(failed.out)
    assert record == last_night(tmp_path)
    # on a busy machine a count that is not met proves nothing: then it is unknown
    code, *counts = {"fail": (1, "2", "1", "0"), "unknown": (2, "2", "0", "1")}[record["verdict"]]
    assert failed.code == code, failed.err
    assert record["state"] == "ended"
    tiny, wrong = record["runs"]
    assert (tiny["verdict"], tiny["why"], tiny["exit_code"]) == ("pass", None, 0)
    assert tiny["groups"] == {"clerks": {"rebalances": 0}}
    assert wrong["verdict"] == record["verdict"]
    why = "The number of rebalances of clerks in the impact was 0. Due: "
    assert code == 2 or wrong["why"].startswith(why)

    night = (tmp_path / "nights" / "latest").resolve()
    assert (night / tiny["folder"] / "report.html").is_file()
    assert "verdict: pass" in (night / tiny["output"]).read_text()
    junit = ET.parse(night / "junit.xml").getroot()
    assert [junit.get("tests"), junit.get("failures"), junit.get("errors")] == counts

    passed = process("nightly", suite("tiny"), timeout_s=900)
    assert passed.code == 0, passed.err
    assert "pass     tiny on 4.3.0 java, seed 11\nnight: pass\n" in passed.out
    page = (tmp_path / "nights" / "index.html").read_text()
    newest, oldest = page.index(last_night(tmp_path)["started_at"][:10]), page.index(night.name)
    assert newest < oldest
    assert page.count(f'href="{night.name}/{tiny["folder"]}/report.html"') == 1
    assert "2 nights, the oldest on the left" in page
    assert running(str(tmp_path)) == []


def test_a_night_that_ran_nothing_fails_and_says_so(
    groupquake: Command, experiment: Write, suite: Write, tmp_path: Path
) -> None:
    experiment()
    done = groupquake("nightly", suite("tiny"), env={"JAVA_HOME": str(tmp_path / "nowhere")})
    assert done.code == 1
    assert "night: fail (nothing ran)" in done.out
    record = last_night(tmp_path)
    assert (record["verdict"], record["why"]) == ("fail", "nothing ran")
    assert record["runs"][0]["verdict"] == "not run"
    assert "Java" in record["runs"][0]["why"]
    junit = ET.parse(tmp_path / "nights" / "latest" / "junit.xml").getroot()
    assert junit.get("errors") == "1"
    assert "nothing ran" in (tmp_path / "nights" / "index.html").read_text()


def test_a_run_that_has_not_started_in_time_is_skipped(
    groupquake: Command, experiment: Write, suite: Write, tmp_path: Path
) -> None:
    experiment()
    done = groupquake("nightly", suite("tiny", more="max_duration: 1ms"))
    assert done.code == 1
    assert last_night(tmp_path)["runs"][0]["why"] == "the suite's max_duration was over"


def test_a_platform_without_its_engine_is_no_pass(
    groupquake: Command, experiment: Write, suite: Write, tmp_path: Path
) -> None:
    experiment()
    file = suite("tiny", on="{kafka: 4.3.0, cluster: docker}")
    done = groupquake("nightly", file, env={"DOCKER_HOST": f"unix://{tmp_path}/nowhere.sock"})
    assert done.code == 1
    run = last_night(tmp_path)["runs"][0]
    assert run["verdict"] == "not run"
    assert "Docker" in run["why"]


@pytest.mark.cluster
def test_a_night_killed_in_the_middle_can_be_read_and_its_run_heals(
    groupquake: Command, experiment: Write, suite: Write, tmp_path: Path
) -> None:
    """The kernel sends SIGTERM to the run."""
    experiment("long", down_for="1m", impact="2m")
    experiment("tiny")
    with started(suite("long", "tiny"), tmp_path) as process:
        journal = await_event("injected", tmp_path, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    record = last_night(tmp_path)
    assert (record["state"], record["verdict"]) == ("running", "not run")
    assert [run["state"] for run in record["runs"]] == ["running", "waiting"]
    assert until(lambda: not running(str(tmp_path)), 60)
    require_healed(journal.parent)
    assert "SIGTERM: healing and stopping" in output_of(record, 0, tmp_path)
    again = groupquake("nightly", suite("tiny", more="max_duration: 1ms"))
    assert again.code == 1
    page = (tmp_path / "nights" / "index.html").read_text()
    assert "goes on, or was cut off" in page
    assert "cut off in the middle" in page


@pytest.mark.cluster
def test_a_crashed_run_costs_no_more_than_itself_and_a_signal_ends_the_next_one(
    experiment: Write, suite: Write, tmp_path: Path
) -> None:
    for name in ("long", "next", "last"):
        experiment(name, down_for="1m", impact="2m")
    with started(suite("long", "next", "last"), tmp_path) as process:
        crashed = await_event("injected", tmp_path, process)
        (run,) = psutil.Process(process.pid).children()
        run.kill()
        following = await_event("started", tmp_path, process, "*-next-*")
        assert open_faults(read(crashed)) == ()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 4, err.decode()
    assert b"Traceback" not in err
    record = last_night(tmp_path)
    assert (record["state"], record["aborted"], record["verdict"]) == ("ended", "SIGINT", "unknown")
    first, second, third = record["runs"]
    assert (first["exit_code"], first["verdict"]) == (-signal.SIGKILL, "unknown")
    assert "ended by signal 9" in first["why"]
    assert "f1.1: healed" in output_of(record, 0, tmp_path)
    assert (second["exit_code"], second["verdict"]) == (4, "not run")
    assert read(following)[-1]["phase"] == "end"
    assert (third["verdict"], third["why"]) == ("not run", "the night was ended by SIGINT")
    assert running(str(tmp_path)) == []


def started(suite: Path, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        arguments("nightly", suite), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def output_of(record: Json, run: int, folder: Path) -> str:
    number, name = run + 1, record["runs"][run]["experiment"]
    return (folder / "nights" / "latest" / "output" / f"{number}-{name}.log").read_text()


def await_event(
    event: str, folder: Path, process: subprocess.Popen[bytes], run: str = "latest"
) -> Path:
    """Wait until a run of the night has an event in its journal, and return this."""
    runs = folder / "nights" / "latest" / "runs"

    def reached() -> list[Path]:
        assert process.poll() is None, process.communicate()
        journals = runs.glob(f"{run}/journal.jsonl")
        return [file for file in journals if f'"event": "{event}"' in file.read_text()]

    assert until(reached, 120)
    return reached()[0].resolve()
