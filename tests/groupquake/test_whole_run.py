"""How a run ends that does not come to its verdict: healed, and nothing of it goes on.

`test_night` has a run that gets SIGTERM during a fault, one that gets SIGINT before its first, and
one that gets SIGKILL; `test_heal_walk` has what is left then.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from chaos.journal import read
from groupquake import open_runs
from tests.groupquake.conftest import arguments, run_in, running
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import unpacked

pytestmark = pytest.mark.cluster


def require_healed(run: Path) -> None:
    """Check that all faults of a run are healed, and that its journal and its healing are over."""
    journal = read(run / "journal.jsonl")
    healed = {e["fault_id"] for e in journal if e["event"] == "healed" and e["healed"]}
    assert healed
    assert healed == {e["fault_id"] for e in journal if e["event"] == "intent"}
    assert (journal[-1]["event"], journal[-1]["phase"]) == ("phase", "end")
    assert open_runs.own_journals() == ()


def test_a_signal_during_a_fault(small: Path, tmp_path: Path) -> None:
    small.write_text(small.read_text().replace("down_for: 1s}", "down_for: 1m}"))
    with subprocess.Popen(
        arguments("run", small), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        await_event(tmp_path, "injected", process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err.decode()
    assert b"SIGINT: healing and stopping" in err
    assert b"member.restart" in err
    assert out == b""
    require_healed(tmp_path / "runs" / "latest")
    assert running(str(tmp_path)) == []


def test_a_terminal_that_is_closed_during_a_fault(small: Path, tmp_path: Path) -> None:
    """The kernel sends SIGHUP, and each further line that is printed is an error (EIO).

    Nobody reads the terminal before that: it does not hold up the run.
    """
    small.write_text(small.read_text().replace("down_for: 1s}", "down_for: 1m}"))
    ours, theirs = os.openpty()
    # under nohup, which these tests may have, a program rightly goes on
    heeds = ["env", "--default-signal=HUP"]
    command = ["setsid", "--ctty", *heeds, *arguments("run", small)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm"},  # its bar fills the terminal, which nobody reads
    ) as process:  # fmt: skip
        os.close(theirs)
        await_event(tmp_path, "injected", process)
        os.close(ours)
        assert process.wait(60) == 4
    require_healed(tmp_path / "runs" / "latest")
    assert running(str(tmp_path)) == []


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


@pytest.mark.spark
def test_a_run_that_is_kept_is_judged_first_and_stays_as_it_was_judged(
    small: Path, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "latest"
    command = arguments("run", small, "--keep", "--cluster=oracle")
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        kept = next(line for line in process.stderr or () if "the cluster keeps running" in line)
        judged = (run / "verdict.json").read_bytes()
        host, port = re.findall(r"([\d.]+):(\d+)", kept)[0]
        socket.create_connection((host, int(port)), timeout=10).close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines()[1] == "verdict: pass"
    assert "SIGINT: stopping the cluster" in err
    assert running(str(tmp_path)) == []
    assert run_in(tmp_path, "report", run).code == 0
    assert (run / "verdict.json").read_bytes() == judged


@pytest.mark.spark
def test_what_a_signal_left_is_judged_by_the_command_that_it_prints(
    small: Path, tmp_path: Path
) -> None:
    """A second signal loses nothing."""
    with subprocess.Popen(
        arguments("run", small, "--cluster=oracle"), cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        await_event(tmp_path, "injected", process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    command = err.strip().splitlines()[-1].partition("judge what there is: groupquake ")[2]
    done = run_in(tmp_path, *shlex.split(command))
    assert (done.code, done.out.splitlines()[1]) == (2, "verdict: unknown")


def await_event(folder: Path, event: str, process: subprocess.Popen[Any]) -> None:
    """Wait until the journal of the only run has an event."""
    journal = folder / "runs" / "latest" / "journal.jsonl"
    deadline = time.monotonic() + 240
    while not journal.exists() or f'"event": "{event}"' not in journal.read_text():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
