"""Wire scripts beside a run: the runner awaits their states, and not their end once stopped."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.journal import Journal
from groupquake.wire_script_process import WireScripts, running
from scenarios import Experiment, named


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of a server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


@pytest.fixture
def stale_sync() -> Experiment:
    """An experiment with one wire script, which needs no kill."""
    return named("stale-pending-sync")


def failures(journal: Path) -> list[str]:
    entries = map(json.loads, journal.read_text().splitlines())
    return [entry["error"] for entry in entries if entry["event"] == "failed"]


def test_an_experiment_without_wire_scripts_runs_none(tmp_path: Path, journal: Journal) -> None:
    with running(tmp_path, "127.0.0.1:1", named("demo"), 0, journal, print) as wire_scripts:
        wire_scripts.stop()
        wire_scripts.finish()
        assert wire_scripts.process is None


def test_finish_returns_once_they_are_stopped(
    tmp_path: Path, journal: Journal, deaf: str, stale_sync: Experiment
) -> None:
    said: list[str] = []
    with running(tmp_path, deaf, stale_sync, 0, journal, said.append) as wire_scripts:
        assert wire_scripts.process is not None
        waits = threading.Thread(target=wire_scripts.finish)
        waits.start()
        wire_scripts.stop()
        waits.join(timeout=30)
        assert not waits.is_alive()
        assert wire_scripts.process.poll() is None, "the script still ran"
    assert wire_scripts.process.poll() is not None
    after_their_start = [line for line in said if "their start" not in line]
    assert after_their_start == ["wire scripts: stale_sync stopped early"]
    assert failures(tmp_path / "journal.jsonl") == [
        "wire scripts: stale_sync stopped early; see wire_scripts.log"
    ]


def test_the_journal_says_why_a_script_failed(
    tmp_path: Path, journal: Journal, stale_sync: Experiment
) -> None:
    with running(tmp_path, "127.0.0.1:1", stale_sync, 0, journal, print) as wire_scripts:
        wire_scripts.finish()
    [failure] = failures(tmp_path / "journal.jsonl")
    assert failure.startswith("wire scripts: groupquake: stale_sync-scout: no broker answers")


def test_a_failed_script_is_not_awaited_for_its_kill(tmp_path: Path, journal: Journal) -> None:
    experiment = named("crash-before-sync")
    with running(tmp_path, "127.0.0.1:1", experiment, 0, journal, print) as wire_scripts:
        assert wire_scripts.process is not None
        assert wire_scripts.process.poll() == 1


class Program:
    """A process that prints the given lines, one for each poll."""

    def __init__(self, log: Path, *lines: str) -> None:
        self.log, self.lines, self.returncode = log, list(lines), None
        log.touch()

    def poll(self) -> int | None:
        """Print the next line; end after the last one."""
        if self.lines:
            with self.log.open("a") as log:
                log.write(f"{self.lines.pop(0)}\n")
        else:
            self.returncode = 0
        return self.returncode


@pytest.fixture
def scripts_that_print(tmp_path: Path, journal: Journal) -> Callable[..., WireScripts]:
    def scripts_that_print(*lines: str) -> WireScripts:
        log = tmp_path / "wire_scripts.log"
        program = Program(log, *lines)
        return WireScripts(("unstored", "missed"), program, log, journal, print)  # type: ignore[arg-type]

    return scripts_that_print


def test_it_waits_until_scripts_that_need_a_kill_are_ready_for_it(
    scripts_that_print: Callable[..., WireScripts],
) -> None:
    wire_scripts = scripts_that_print(
        "missed: finished", "unstored: ready for the fault", "unstored: finished"
    )
    wire_scripts.await_ready()
    assert wire_scripts.process.lines == ["unstored: finished"]  # type: ignore[attr-defined]
    wire_scripts.finish()
    assert failures(wire_scripts.log.with_name("journal.jsonl")) == []
