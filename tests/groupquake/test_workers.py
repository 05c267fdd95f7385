"""Whole runs whose members are in several Locust workers, as a user starts them."""

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.groupquake.conftest import SMALL, Command, arguments, running, state_in

LEADER = "{leader-member-of: static}, at: 500ms"
EVERYBODY = "static, group: static, at: 500ms"
MEMBERS = ("clerk-0", "clerk-1", "dynamic-dynamic-0", "dynamic-dynamic-1")


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def workers_of(folder: Path) -> dict[str, str]:
    """Return which worker had which client."""
    history = lines(folder / "history.jsonl")
    return {line["member"]: line["worker"] for line in history if line["event"] == "leased"}


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_two_workers_give_the_verdict_of_one_process(
    groupquake: Command, small: Path, tmp_path: Path
) -> None:
    """The same counts as in `test_external`; every member has a fault."""
    small.write_text(small.read_text().replace(LEADER, EVERYBODY))
    done = groupquake("run", small, "--seed", 5, "--processes", 2)
    folder = (tmp_path / "runs" / "latest").resolve()
    assert done.code == 0, done.err
    assert f"repeat: groupquake run {small} --seed 5 --processes=2" in done.out
    assert running(str(tmp_path)) == []

    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["groups"]["static"]["rebalances_observed"]["impact"] == 0
    assert verdict["groups"]["dynamic"]["rebalances_observed"]["impact"] in (3, 4)
    workers = workers_of(folder)
    assert workers.keys() == {*MEMBERS, "producer-0"}
    assert {workers[name] for name in MEMBERS} == {*workers.values()}
    assert len({*workers.values()}) == 2
    assert {fault["target"] for fault in verdict["faults"]} == {*MEMBERS}
    assert all(fault["verified"] and fault["healed"] for fault in verdict["faults"])

    ends = [line for line in lines(folder / "history.jsonl") if line["event"] == "closed"]
    assert sorted(line["member"] for line in ends) == sorted([*MEMBERS, *MEMBERS, "producer-0"])
    assert list(folder.glob("history-of-worker-*")) == []


@contextmanager
def started(line: str, folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start two workers by the line that a run shows, each in a folder of its own."""
    command = [sys.executable, "-m", "locust", *shlex.split(line)]
    workers = []
    for elsewhere in (folder / "elsewhere-0", folder / "elsewhere-1"):
        elsewhere.mkdir()
        with (elsewhere / "log").open("wb") as log:
            workers.append(subprocess.Popen(command, cwd=elsewhere, stdout=log, stderr=log))
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


@dataclass(frozen=True)
class Lost:
    """A run with two workers that a user has started; one of them was killed in the impact."""

    folder: Path
    killed_ms: float

    def journal(self, event: str) -> list[dict[str, Any]]:
        return [one for one in lines(self.folder / "journal.jsonl") if one["event"] == event]

    @property
    def worker(self) -> dict[str, Any]:
        [lost] = self.journal("worker_lost")
        return lost

    @property
    def had(self) -> set[str]:
        """The members that the worker had."""
        had = workers_of(self.folder)
        return {name for name, worker in had.items() if worker == self.worker["worker"]}


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Lost:
    folder = tmp_path_factory.mktemp("workers")
    file = folder / "small.yaml"
    later = "  - {fault: member.restart, target: all, group: static, at: 6s, down_for: 600ms}\n"
    text = SMALL.replace(LEADER, EVERYBODY).replace("phases:", f"{later}phases:")
    file.write_text(text.replace("impact: 7s", "impact: 8s"))
    command = arguments("run", file, "--seed", 5, "--expect-workers", 2, "--no-report")
    with subprocess.Popen(
        command, cwd=folder, env=state_in(folder), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while not (shown := re.search(r"of 2 workers: locust (.+)", process.stderr.readline())):
            assert process.poll() is None
        with started(shown[1], folder) as (first, second):
            journal = folder / "runs" / "latest" / "journal.jsonl"
            await_count(journal, '"event": "verified"', 2, process)
            # what a worker did not tell before it was killed is unknown
            await_count(journal.with_name("history.jsonl"), '"event":"created"', 8, process)
            killed_ms = time.time() * 1000
            first.kill()
            _, err = process.communicate(timeout=240)
            assert process.returncode == 0, err
            assert second.wait(timeout=60) == 0, (folder / "elsewhere-1" / "log").read_text()
    assert running(str(folder)) == []
    return Lost(journal.parent.resolve(), killed_ms)


def await_count(file: Path, text: str, times: int, process: subprocess.Popen[str]) -> None:
    """Wait until a file of the run has a text so many times."""
    deadline = time.monotonic() + 90
    while not file.exists() or file.read_text().count(text) < times:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.cluster
def test_a_worker_that_is_killed_is_a_fault_with_a_time(lost: Lost) -> None:
    assert lost.killed_ms < lost.worker["seen_at_ms"] < lost.killed_ms + 60_000
    assert set(lost.worker["members"]) == lost.had
    assert lost.had & {"clerk-0", "clerk-1"}
    phases = [entry["phase"] for entry in lost.journal("phase")]
    assert phases == ["formation", "impact", "recovery", "teardown", "end"], "it went on to its end"
    events = {line["member"]: line["event"] for line in lines(lost.folder / "history.jsonl")
              if line["event"] in ("closed", "killed")}  # fmt: skip
    gone = {name for name, event in events.items() if event == "killed"}
    assert gone
    assert gone <= lost.had - {"producer-0"}, "one that a fault has stopped does not end once more"
    assert events.keys() >= {*MEMBERS}


@pytest.mark.cluster
def test_faults_on_what_a_lost_worker_had_fail_and_those_on_the_others_do_not(lost: Lost) -> None:
    targets = {entry["fault_id"]: entry["target"] for entry in lost.journal("intent")}
    failed = {targets[one["fault_id"]] for one in lost.journal("failed") if one["fault_id"]}
    assert failed
    assert failed <= lost.had
    verified = {one["fault_id"] for one in lost.journal("verified") if one["verified"]}
    later = {id_: target for id_, target in targets.items() if id_.startswith("f3.1")}
    assert {later[id_] for id_ in verified & later.keys()} == {"clerk-0", "clerk-1"} - lost.had


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_that_lost_a_worker_is_unknown(lost: Lost, groupquake: Command) -> None:
    assert groupquake("report", lost.folder).code == 2
    because = json.loads((lost.folder / "verdict.json").read_text())["unknown_because"]
    name = lost.worker["worker"]
    assert [one for one in because if one.startswith(f"{name} was lost at ")]
    whole = f"the history of {name} is not whole: it did not say how many lines it wrote"
    assert whole in because


REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--processes=0",), "0 is not in the range 1<=x<=1000"),
    (("--processes=2", "--expect-workers=2"), "give --processes or --expect-workers, not both"),
    (("--processes=2", "--ui"), "--processes and --expect-workers cannot be used with --ui"),
    (("--listen=127.0.0.1",), "--listen is for --expect-workers"),
    (("--expect-workers=1", "--listen=here:x"), "'here:x' is no address"),
    (
        ("--expect-workers=1", "--set", "workload.groups.0.members.0.client=java"),
        "clerk-0 is a program (client: java), and needs files of this machine",
    ),
)


def test_workers_that_cannot_be_are_refused(groupquake: Command, small: Path) -> None:
    for options, problem in REFUSED:
        done = groupquake("run", small, *options)
        assert done.code == 64
        assert problem in " ".join(done.err.split())
