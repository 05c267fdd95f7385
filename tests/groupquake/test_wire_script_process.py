"""Stories beside a run: it waits for what they come to, and not for them once it is stopped."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.journal import Journal
from groupquake.wire_script_process import Stories, telling
from scenarios import Experiment, named


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of somebody who takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


@pytest.fixture
def told() -> Experiment:
    """It tells a story that nobody has to be killed for."""
    return named("stale-pending-sync")


def failures(journal: Path) -> list[str]:
    entries = map(json.loads, journal.read_text().splitlines())
    return [entry["error"] for entry in entries if entry["event"] == "failed"]


def finished(stories: Stories | None) -> None:
    assert stories is not None
    stories.finish()


def test_an_experiment_without_stories_tells_none(tmp_path: Path, journal: Journal) -> None:
    with telling(tmp_path, "127.0.0.1:1", named("demo"), 0, journal, print) as stories:
        assert stories is None


def test_whoever_stops_it_does_not_wait_for_them(
    tmp_path: Path, journal: Journal, deaf: str, told: Experiment
) -> None:
    said: list[str] = []
    with telling(tmp_path, deaf, told, 0, journal, said.append) as stories:
        assert stories is not None
        waits = threading.Thread(target=stories.finish)
        waits.start()
        stories.stop()
        waits.join(timeout=30)
        assert not waits.is_alive()
        assert stories.process.poll() is None, "it was still being told"
    assert stories.process.poll() is not None
    after_their_begin = [line for line in said if "their begin" not in line]
    assert after_their_begin == ["stories: stale_sync cut short"]
    assert failures(tmp_path / "journal.jsonl") == [
        "the stories: stale_sync cut short; see stories.log"
    ]


def test_a_story_that_fails_says_why(tmp_path: Path, journal: Journal, told: Experiment) -> None:
    with telling(tmp_path, "127.0.0.1:1", told, 0, journal, print) as stories:
        finished(stories)
    [failure] = failures(tmp_path / "journal.jsonl")
    assert failure.startswith("the stories: groupquake: stale_sync-scout: no broker answers")


def test_nobody_waits_for_a_story_to_hold_that_has_failed(tmp_path: Path, journal: Journal) -> None:
    experiment = named("crash-before-sync")
    with telling(tmp_path, "127.0.0.1:1", experiment, 0, journal, print) as stories:
        assert stories is not None
        assert stories.process.poll() == 1


class Program:
    """What tells the stories, as far as it goes."""

    def __init__(self, log: Path, *says: str) -> None:
        self.log, self.says, self.returncode = log, list(says), None
        log.touch()

    def poll(self) -> int | None:
        """Say the next thing whenever somebody looks; end with the last."""
        if self.says:
            with self.log.open("a") as log:
                log.write(f"{self.says.pop(0)}\n")
        else:
            self.returncode = 0
        return self.returncode


@pytest.fixture
def telling_of(tmp_path: Path, journal: Journal) -> Callable[..., Stories]:
    def telling_of(*says: str) -> Stories:
        log = tmp_path / "stories.log"
        program = Program(log, *says)
        return Stories(("unstored", "missed"), program, log, journal, print)  # type: ignore[arg-type]

    return telling_of


def test_it_waits_until_those_hold_whose_coordinator_is_to_be_killed(
    telling_of: Callable[..., Stories],
) -> None:
    stories = telling_of("missed: told", "unstored: holds", "unstored: told")
    stories.await_held()
    assert stories.process.says == ["unstored: told"]  # type: ignore[attr-defined]
    stories.finish()
    assert failures(stories.log.with_name("journal.jsonl")) == []
