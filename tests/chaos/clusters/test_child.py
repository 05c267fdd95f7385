"""A frozen process: none of its threads runs, however busy the machine is."""

import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from chaos.clusters.child import freeze, launch

SPINS = """
import threading
def spin():
    while True:
        sum(range(1000))
for _ in range(10):
    threading.Thread(target=spin, daemon=True).start()
print("spins", flush=True)
spin()
"""
SLEEPS = "import time; print('ready', flush=True); time.sleep(600)"


@pytest.fixture
def started(tmp_path: Path):
    with ExitStack() as stack:

        def start(code, name):
            output = tmp_path / name
            process = launch([sys.executable, "-c", code], output)
            stack.callback(process.wait)
            stack.callback(process.kill)
            while not output.read_bytes():
                pass
            return process

        yield start


def states(process):
    found = set()
    for stat in Path(f"/proc/{process.pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found.add(stat.read_text().rpartition(")")[2].split()[0])
    return found


def test_no_thread_runs_after_a_freeze(started):
    busy = [started(SPINS, str(number)) for number in range(2)]
    for _ in range(5):
        for process in busy:
            assert freeze(process)
            assert states(process) == {"T"}
            process.send_signal(signal.SIGCONT)


def test_a_process_that_does_not_freeze_goes_on(started, monkeypatch):
    process = started(SLEEPS, "out")
    monkeypatch.setattr("chaos.clusters.child._FREEZE_S", 0.1)
    monkeypatch.setattr("chaos.clusters.child._STOPPED", frozenset("Z"))
    assert not freeze(process)
    while states(process) == {"T"}:  # until SIGCONT has taken effect
        pass
