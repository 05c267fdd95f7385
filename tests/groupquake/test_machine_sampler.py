"""The sampler of the machine notes what a broker's process and the machine go through."""

import io
import json
import os
import signal
import subprocess
import threading
import time

import pytest

from groupquake import folders, machine_sampler, timing
from groupquake.machine_sampler import MachineSampler
from tests.chaos.fakes import until


@pytest.fixture
def process():
    """Start a process that sleeps."""
    started = subprocess.Popen(["sleep", "60"])
    yield started
    started.kill()
    started.wait()


@pytest.fixture
def looks(monkeypatch):
    """When the sampler looked at processes, in s, and whether it saw one that was stopped."""
    seen, look = [], machine_sampler._is_stopped

    def is_stopped(pid):
        found = look(pid)
        seen.append((time.time(), found))
        return found

    monkeypatch.setattr(machine_sampler, "_is_stopped", is_stopped)
    return seen


def noted(file, event):
    if not file.exists():
        return []
    with file.open() as lines:
        entries = list(map(json.loads, lines))
    return [entry for entry in entries if entry["event"] == event]


def test_a_stopped_broker_is_noted(tmp_path, process, looks):
    file = tmp_path / "machine.jsonl"
    with MachineSampler(file, lambda: {2: process.pid}):
        until(lambda: looks)
        began_ms = time.time() * 1000
        os.kill(process.pid, signal.SIGSTOP)
        stopped_s = lambda: [at_s for at_s, found in looks if found]
        # the last look is at what a tick's time says, or later, and the one before is over by then
        until(lambda: len(stopped_s()) > 1 and stopped_s()[-2] - stopped_s()[0] > 0.31)
        os.kill(process.pid, signal.SIGCONT)
        ended_ms = time.time() * 1000
        until(lambda: noted(file, "stopped"))
    (stopped,) = noted(file, "stopped")
    assert stopped["broker"] == "2"
    assert began_ms - 1 <= stopped["from_ms"] <= stopped["until_ms"] <= ended_ms + 1
    assert stopped["until_ms"] - stopped["from_ms"] >= 300


def test_a_broker_that_stays_stopped_is_noted_at_the_end(tmp_path, process, looks):
    file = tmp_path / "machine.jsonl"
    os.kill(process.pid, signal.SIGSTOP)
    with MachineSampler(file, lambda: {1: process.pid}):
        until(lambda: any(found for _, found in looks))
    assert [entry["broker"] for entry in noted(file, "stopped")] == ["1"]


def ticked(monkeypatch, event, *at_ms, stopped_ms=(0, 0)):
    """Return what the sampler notes that looks at these times at a broker that is stopped once."""
    clock = {"ms": 0}
    first, last = stopped_ms
    monkeypatch.setattr(machine_sampler.time, "monotonic", lambda: clock["ms"] / 1_000)
    monkeypatch.setattr(machine_sampler.time, "time", lambda: clock["ms"] / 1_000)
    monkeypatch.setattr(machine_sampler, "_is_stopped", lambda _: first <= clock["ms"] <= last)
    out = io.StringIO()
    ticks = machine_sampler._Ticks(out, lambda: {1: 123})
    for clock["ms"] in at_ms:
        ticks.tick()
    entries = map(json.loads, out.getvalue().splitlines())
    (noted,) = (entry for entry in entries if entry["event"] == event)
    return noted["from_ms"], noted["until_ms"]


def test_a_stop_lasts_from_the_first_look_that_saw_it_to_the_last_one(monkeypatch):
    """A sampler that looks rarely, as on a busy machine, does not stretch what it saw."""
    looks = (50, 10_050, 10_100, 10_200, 20_000, 20_050)
    found = ticked(monkeypatch, "stopped", *looks, stopped_ms=(10_050, 10_200))
    assert found == (10_050, 10_200)


def test_a_tick_is_late_from_150_ms_on(monkeypatch):
    assert ticked(monkeypatch, "late", 50, 199, 350) == (199, 350)


def test_what_came_late_at_the_end_is_noted(tmp_path):
    began = threading.Event()

    def held_up():
        began.set()
        time.sleep(0.4)
        return {}

    file = tmp_path / "machine.jsonl"
    with MachineSampler(file, held_up):
        began.wait()
    assert any(e["until_ms"] - e["from_ms"] >= 400 for e in noted(file, "late"))


def test_samples_have_load_and_pressure(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "SAMPLE_S", 0.1)
    file = tmp_path / "machine.jsonl"
    with MachineSampler(file, lambda: {1: os.getpid(), 2: 999_999_999}):
        until(lambda: len(noted(file, "sample")) >= 2)
    samples = noted(file, "sample")
    assert all(sample["load"] >= 0 for sample in samples)
    assert all(0 <= sample.get("cpu_waiting", 0) <= 1 for sample in samples)
    assert all(0 <= sample.get("cpu_busy", 0) <= 1 for sample in samples)


def test_a_system_without_pressure_figures_is_sampled(tmp_path, monkeypatch):
    def unreadable(*_):
        raise FileNotFoundError

    monkeypatch.setattr(timing, "SAMPLE_S", 0.1)
    monkeypatch.setattr(machine_sampler.Path, "read_text", unreadable)
    monkeypatch.setattr(machine_sampler.Path, "read_bytes", unreadable)
    file = tmp_path / "machine.jsonl"
    asked = []
    with MachineSampler(file, lambda: asked.append(1) or 1 / 0):
        until(lambda: len(asked) > 2)
    monkeypatch.undo()
    assert "cpu_waiting" not in str(noted(file, "sample"))


@pytest.mark.parametrize(
    ("waiting", "load", "busy"),
    [(0.3, 100.0, False), (0.7, 1.0, True), (None, 100.0, True), (None, 1.0, False)],
)
def test_a_busy_machine_is_reported(monkeypatch, waiting, load, busy):
    monkeypatch.setattr(machine_sampler, "_pressure_avg10", lambda: waiting)
    monkeypatch.setattr(machine_sampler.os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(machine_sampler.os, "cpu_count", lambda: 2)
    line = machine_sampler.busy_line()
    assert (line is not None) == busy
    assert line is None or "\n" not in line


def test_a_full_disk_is_told_of_once(tmp_path, monkeypatch):
    """Whether a line cannot be written, or little is left for the next ones."""
    said = []
    file = tmp_path / "machine.jsonl"
    file.symlink_to("/dev/full")
    with MachineSampler(file, dict, said.append):
        until(lambda: said)
    monkeypatch.setattr(folders, "TO_GO_ON_MB", 1 << 40)
    with MachineSampler(tmp_path / "other.jsonl", dict, said.append):
        until(lambda: len(said) == 2)
    assert said[0].startswith(f"evidence: no space left on {tmp_path} (No space left on device); ")
    assert f" MB are free, and {1 << 40} MB needed); free 32 MB or give another --runs" in said[1]
