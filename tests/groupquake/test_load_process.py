"""The load as a child process; in some tests a small program stands in for Locust."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import create_autospec

import psutil
import pytest

from chaos.clusters.ports import HOST, free_ports
from chaos.members import Members
from groupquake import load_process
from groupquake.exits import NotSteadyError
from groupquake.live.attached import _attached
from groupquake.load_workers import WorkerOptions
from loadtest.members.settings import RUN_FOLDER
from scenarios import load, named
from tests.groupquake.conftest import SMALL
from tests.process_family import below

LOAD = """
import json, subprocess, sys, time
from pathlib import Path
subprocess.Popen(["sleep", "600"], start_new_session=True)
control = Path(sys.argv[sys.argv.index("--control-file") + 1])
control.with_suffix(".new").write_text(json.dumps({"port": 1}))
control.with_suffix(".new").rename(control)
time.sleep(600)
"""


def test_what_members_started_ends_with_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in a session of its own outlives the member that started it."""
    started = [sys.executable, "-c", LOAD]
    monkeypatch.setattr(load_process, "dying_with_parent", lambda *_: started)
    with load_process.running(tmp_path, "127.0.0.1:1", named("demo")):
        (child,) = below(os.getpid(), "--control-file")
        (sleeper,) = child.children()
    assert psutil.wait_procs([sleeper], timeout=10)[1] == []


def test_what_members_started_ends_with_its_run_while_the_page_goes_on(tmp_path: Path) -> None:
    def start(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "600"], env={**os.environ, RUN_FOLDER: str(folder)})

    page = create_autospec(Members, instance=True)
    with start(tmp_path.resolve()) as own, start(tmp_path.resolve() / "next") as next_run:
        try:
            with _attached(page, tmp_path, "127.0.0.1:1", named("demo"), {}):
                assert own.poll() is None
            assert own.wait(10) == -signal.SIGKILL
            assert next_run.poll() is None
        finally:
            own.kill()
            next_run.kill()
    page.quit.assert_not_called()


def test_other_processes_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_process, "dying_with_parent", lambda *_: [sys.executable, "-c", LOAD])
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            with load_process.running(tmp_path, "127.0.0.1:1", named("demo")):
                pass
            assert other.poll() is None
        finally:
            other.kill()


def test_a_load_that_fails_ends_its_workers_elsewhere(tmp_path: Path) -> None:
    """They have members that look for their broker, and close them."""
    file, log = tmp_path / "experiment.yaml", tmp_path / "worker.log"
    file.write_text(SMALL.replace("kind: static", "kind: static, client: wire"))
    (nobody,) = free_ports(1)
    workers: list[subprocess.Popen[bytes]] = []

    def start(line: str) -> None:
        shown = shlex.split(line.partition(": locust ")[2])
        with log.open("wb") as output:
            worker = [sys.executable, "-m", "locust", *shown]
            environment = load_process.environment()
            workers.append(subprocess.Popen(worker, stdout=output, stderr=output, env=environment))

    def fail_once_they_run(members: Members) -> None:
        deadline = time.monotonic() + 60
        while {row["state"] for row in members.list()} != {"starting"}:
            assert time.monotonic() < deadline, members.list()
            time.sleep(0.05)
        raise NotSteadyError

    options = WorkerOptions(elsewhere=1).start(start)
    bootstrap = f"{HOST}:{nobody}"
    try:
        with (
            pytest.raises(NotSteadyError),
            load_process.running(tmp_path, bootstrap, load(file), workers=options) as members,
        ):
            fail_once_they_run(members)
        assert workers[0].wait(timeout=20) == 0, log.read_text()
        history = [
            json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()
        ]
        assert len([line for line in history if line["event"] == "closed"]) == 5, "and a producer"
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
