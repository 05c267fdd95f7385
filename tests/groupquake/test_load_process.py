"""The load as a child process; a small program stands in for Locust."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from groupquake import load_process
from scenarios import named

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
        child = psutil.Process().children()[-1]
        (sleeper,) = child.children()
    assert psutil.wait_procs([sleeper], timeout=10)[1] == []


def test_other_processes_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_process, "dying_with_parent", lambda *_: [sys.executable, "-c", LOAD])
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            with load_process.running(tmp_path, "127.0.0.1:1", named("demo")):
                pass
            assert other.poll() is None
        finally:
            other.kill()
