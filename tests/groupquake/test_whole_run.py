"""Whole runs on a real cluster, as a user starts them."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from groupquake import open_runs
from tests.groupquake.conftest import Command, arguments, running
from tests.other_thread import signal_other_thread
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import unpacked

pytestmark = pytest.mark.cluster


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_passes_and_its_evidence_gives_the_same_verdict_again(
    process: Command, groupquake: Command, small: Path, tmp_path: Path
) -> None:
    done = process("run", small, "--seed", 5)
    assert done.code == 0, done.err
    assert "verdict: pass" in done.out
    assert f"repeat: groupquake run {small} --seed 5" in done.out
    folder = (tmp_path / "runs" / "latest").resolve()
    assert running(str(tmp_path)) == []

    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["seed"] == 5
    assert verdict["findings"] == []
    static, dynamic = (verdict["groups"][name] for name in ("static", "dynamic"))
    assert static["rebalances_observed"]["impact"] == 0
    assert dynamic["rebalances_observed"]["impact"] in (3, 4)
    for name, group in verdict["groups"].items():
        logs = [log.read_text() for log in folder.glob("brokers/*/group.log")]
        grepped = sum(text.count(f'"request":{{"groupId":"{name}"') for text in logs)
        assert group["responses_explained"] == group["responses_checked"] == grepped > 20
        assert group["rebalances_observed"] == group["rebalances_expected"]
    assert len(verdict["faults"]) == 3
    assert all(fault["verified"] and fault["healed"] for fault in verdict["faults"])

    journal = lines(folder / "journal.jsonl")
    phases = [entry["phase"] for entry in journal if entry["event"] == "phase"]
    assert phases == ["formation", "impact", "recovery", "teardown", "end"]
    seen = {entry["event"] for entry in lines(folder / "history.jsonl")}
    assert {"created", "assigned", "revoked", "committed", "closed", "produced"} <= seen

    first = (folder / "verdict.json").read_bytes()
    again = groupquake("report", tmp_path / "runs" / "latest")
    assert again.code == 0
    assert (folder / "verdict.json").read_bytes() == first


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_fault_heals_and_ends(
    number: signal.Signals, small: Path, tmp_path: Path
) -> None:
    small.write_text(small.read_text().replace("down_for: 1s}", "down_for: 1m}"))
    with subprocess.Popen(
        arguments("run", small), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        await_event(tmp_path, "injected", process)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err.decode()
    assert number.name.encode() in err
    assert out == b""
    require_healed(tmp_path)


def require_healed(folder: Path) -> None:
    journal = lines(folder / "runs" / "latest" / "journal.jsonl")
    healed = {e["fault_id"] for e in journal if e["event"] == "healed" and e["healed"]}
    assert healed == {e["fault_id"] for e in journal if e["event"] == "intent"}
    assert {"at_ms": journal[-1]["at_ms"], "event": "phase", "phase": "end"} == journal[-1]
    assert open_runs.own_journals() == ()
    assert running(str(folder)) == []


def test_a_terminal_that_is_closed_during_a_fault(small: Path, tmp_path: Path) -> None:
    """The kernel sends SIGHUP, and each further line that is printed is an error (EIO)."""
    small.write_text(small.read_text().replace("down_for: 1s}", "down_for: 1m}"))
    ours, theirs = os.openpty()
    command = ["setsid", "--ctty", *arguments("run", small)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        await_event(tmp_path, "injected", process)
        os.close(ours)
        assert process.wait(60) == 4
    require_healed(tmp_path)


def test_a_signal_during_the_analysis(tmp_path: Path) -> None:
    """A run and `report` analyse alike; here it is evidence that was recorded."""
    folder = unpacked(RECORDINGS["kafka-4.3.0"], tmp_path / "run")
    with subprocess.Popen(
        arguments("report", folder), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        while b"reading the lines" not in (line := process.stderr.readline()):
            assert line, "it ended without an analysis"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err.decode()
    assert b"Traceback" not in err
    assert not (folder / "verdict.json").exists()
    assert running(str(tmp_path)) == []


def test_a_cluster_that_is_kept_goes_at_a_signal_to_any_thread(small: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        arguments("run", small, "--keep"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        while b"the cluster keeps running" not in (line := process.stderr.readline()):
            assert line, "the run ended without its cluster being kept"
        signal_other_thread(process.pid, signal.SIGINT)
        while b"starting Spark" not in (line := process.stderr.readline()):
            assert line, "the run ended without being judged"
        assert [line for line in running(str(tmp_path)) if "kafka.Kafka" in line] == []
        process.kill()  # the rest is as without --keep


def test_nothing_outlives_a_killed_runner(groupquake: Command, small: Path, tmp_path: Path) -> None:
    small.write_text(small.read_text().replace("down_for: 1s}", "down_for: 1m}"))
    with subprocess.Popen(
        arguments("run", small), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        await_event(tmp_path, "injected", process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    deadline = time.monotonic() + 20
    while left := running(str(tmp_path)):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    done = groupquake("heal", tmp_path / "runs" / "latest")
    assert done.code == 0
    assert "healed" in done.out


def await_event(folder: Path, event: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the journal of the only run has an event."""
    journal = folder / "runs" / "latest" / "journal.jsonl"
    deadline = time.monotonic() + 90
    while not journal.exists() or f'"event": "{event}"' not in journal.read_text():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
