"""Whole runs whose members are in several Locust workers, as a user starts them."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.groupquake.conftest import Command, arguments, running
from tests.process_family import below

pytestmark = pytest.mark.cluster

LEADER = "{leader-member-of: static}, at: 500ms"
EVERYBODY = "static, group: static, at: 500ms"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def workers_of(folder: Path) -> dict[str, str]:
    """Return which worker had which client."""
    history = lines(folder / "history.jsonl")
    return {line["member"]: line["worker"] for line in history if line["event"] == "leased"}


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_two_workers_give_the_verdict_of_one_process(
    process: Command, small: Path, tmp_path: Path
) -> None:
    """The same experiment and counts as in `test_whole_run`; every member has a fault."""
    small.write_text(small.read_text().replace(LEADER, EVERYBODY))
    done = process("run", small, "--seed", 5, "--processes", 2)
    folder = (tmp_path / "runs" / "latest").resolve()
    assert done.code == 0, done.err
    assert f"repeat: groupquake run {small} --seed 5 --processes=2" in done.out
    assert running(str(tmp_path)) == []

    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["groups"]["static"]["rebalances_observed"]["impact"] == 0
    assert verdict["groups"]["dynamic"]["rebalances_observed"]["impact"] in (3, 4)
    workers = workers_of(folder)
    members = {"clerk-0", "clerk-1", "dynamic-dynamic-0", "dynamic-dynamic-1"}
    assert workers.keys() == {*members, "producer-0"}
    assert {workers[name] for name in members} == {*workers.values()}
    assert len({*workers.values()}) == 2
    assert {fault["target"] for fault in verdict["faults"]} == members
    assert all(fault["verified"] and fault["healed"] for fault in verdict["faults"])

    ends = [line for line in lines(folder / "history.jsonl") if line["event"] == "closed"]
    assert sorted(line["member"] for line in ends) == sorted([*members, *members, "producer-0"])
    assert list(folder.glob("history-of-worker-*")) == []


def run_without_one(
    small: Path, tmp_path: Path, file: str, event: str, times: int
) -> tuple[float, int, tuple[str, str]]:
    """Run with two workers, and kill one as soon as a file of the run has an event so many times.

    Return when that was (ms), the exit code, and what the run printed to both streams.
    """
    with subprocess.Popen(
        arguments("run", small, "--seed", 5, "--processes", 2),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        await_count(tmp_path / "runs" / "latest" / f"{file}.jsonl", event, times, process)
        killed_ms = time.time() * 1000
        os.kill(a_worker(process.pid), signal.SIGKILL)
        out, err = process.communicate(timeout=400)
    return killed_ms, process.returncode, (out.decode(), err.decode())


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_worker_that_is_killed_is_a_fault_with_a_time(small: Path, tmp_path: Path) -> None:
    later = "  - {fault: member.restart, target: all, group: static, at: 6s, down_for: 600ms}\n"
    text = small.read_text().replace(LEADER, EVERYBODY).replace("phases:", f"{later}phases:")
    small.write_text(text.replace("impact: 7s", "impact: 8s"))
    killed_ms, code, printed = run_without_one(small, tmp_path, "journal", '"event": "verified"', 2)
    assert code == 2, printed
    assert running(str(tmp_path)) == []

    folder = tmp_path / "runs" / "latest"
    journal = lines(folder / "journal.jsonl")
    [lost] = [entry for entry in journal if entry["event"] == "worker_lost"]
    assert killed_ms < lost["seen_at_ms"] < killed_ms + 60_000
    had = {name for name, worker in workers_of(folder).items() if worker == lost["worker"]}
    assert set(lost["members"]) == had
    assert had & {"clerk-0", "clerk-1"}
    phases = [entry["phase"] for entry in journal if entry["event"] == "phase"]
    assert phases == ["formation", "impact", "recovery", "teardown", "end"], "it went on to its end"

    targets = {e["fault_id"]: e["target"] for e in journal if e["event"] == "intent"}
    failed = {targets[e["fault_id"]] for e in journal if e["event"] == "failed" and e["fault_id"]}
    assert failed
    assert failed <= had
    later_faults = {id_: target for id_, target in targets.items() if id_.startswith("f3.1")}
    verified = {e["fault_id"]: e["verified"] for e in journal if e["event"] == "verified"}
    assert {t for id_, t in later_faults.items() if verified.get(id_)} == {
        "clerk-0",
        "clerk-1",
    } - had

    because = json.loads((folder / "verdict.json").read_text())["unknown_because"]
    assert [one for one in because if one.startswith(f"{lost['worker']} was lost at ")]
    whole = f"the history of {lost['worker']} is not whole: it did not say how many lines it wrote"
    assert whole in because
    events = {line["member"]: line["event"] for line in lines(folder / "history.jsonl")
              if line["event"] in ("closed", "killed")}  # fmt: skip
    gone = {name for name, event in events.items() if event == "killed"}
    assert gone
    assert gone <= had - {"producer-0"}, "one that a fault has stopped does not end once more"


def test_a_worker_that_is_lost_in_formation_ends_the_run_at_once(
    small: Path, tmp_path: Path
) -> None:
    """The steady state never holds: after two minutes the run would say so, and no more."""
    text = small.read_text().replace("tolerance: Stable", "tolerance: Empty", 1)
    small.write_text(text.replace("within: 30s", "within: 2m"))
    _, code, (_, err) = run_without_one(small, tmp_path, "history", '"event":"assigned"', 4)
    assert code == 3, err
    journal = lines(tmp_path / "runs" / "latest" / "journal.jsonl")
    [lost] = [entry for entry in journal if entry["event"] == "worker_lost"]
    assert lost["members"]
    said = f"steady state not met: worker lost: {lost['worker']}, with {', '.join(lost['members'])}"
    assert said in err
    assert running(str(tmp_path)) == []


def await_count(
    file: Path, text: str, times: int, process: subprocess.Popen[bytes], within_s: float = 90
) -> None:
    """Wait until a file of the run has a text so many times."""
    deadline = time.monotonic() + within_s
    while not file.exists() or file.read_text().count(text) < times:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def a_worker(runner: int) -> int:
    """Return the process id of a Locust worker of a run: a child of its master."""
    family = below(runner, "--processes=2")
    return next(one.pid for one in family if one.ppid() in {other.pid for other in family})


def test_workers_that_a_user_starts_need_no_path_of_the_master(small: Path, tmp_path: Path) -> None:
    command = arguments("run", small, "--seed", 5, "--expect-workers", 1, "--no-report")
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while not (shown := re.search(r"start a worker: locust (.+)", process.stderr.readline())):
            assert process.poll() is None
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        with (elsewhere / "log").open("wb") as log:
            locust = [sys.executable, "-m", "locust", *shlex.split(shown[1])]
            worker = subprocess.Popen(locust, cwd=elsewhere, stdout=log, stderr=subprocess.STDOUT)
        try:
            _, err = process.communicate(timeout=240)
            assert worker.wait(timeout=60) == 0, (elsewhere / "log").read_text()
        finally:
            worker.kill()
            worker.wait()
    assert process.returncode == 0, err
    folder = tmp_path / "runs" / "latest"
    journal = lines(folder / "journal.jsonl")
    assert [entry["verified"] for entry in journal if entry["event"] == "verified"] == [True] * 3
    assert [entry for entry in journal if entry["event"] == "failed"] == []
    assert len({*workers_of(folder).values()}) == 1
    ends = [line for line in lines(folder / "history.jsonl") if line["event"] == "closed"]
    assert len(ends) == 5 + 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--processes=0"], "0 is not in the range 1<=x<=1000"),
        (["--processes=2", "--expect-workers=2"], "give --processes or --expect-workers, not both"),
        (["--processes=2", "--ui"], "--processes and --expect-workers cannot be used with --ui"),
        (["--listen=127.0.0.1"], "--listen is for --expect-workers"),
        (["--expect-workers=1", "--listen=here:x"], "'here:x' is no address"),
        (
            ["--expect-workers=1", "--set", "workload.groups.0.members.0.client=java"],
            "clerk-0 is a program (client: java), and needs files of this machine",
        ),
    ],
)
def test_workers_that_cannot_be_are_refused(
    groupquake: Command, small: Path, options: list[str], problem: str
) -> None:
    done = groupquake("run", small, *options)
    assert done.code == 64
    assert problem in " ".join(done.err.split())
