"""A run that failed leaves the counterexample of its first wrong answer in its folder."""

import shutil
import subprocess
import sys
from dataclasses import replace as altered
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from groupquake.commands.oracle import replay as oracle_replay
from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.event_files.reading import read
from reference_coordinator.event_files.writing import event_lines
from reference_coordinator.replay import Evidence, ObservedRequest, Outage, Stall, replay
from reports.judgement.counterexample import FILES, group_of, reduced
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.recording import Recording
from reports.judgement.run.run_folder import RunFolder
from tests.recorded.logs import RECORDINGS

GROUPS = [(name, group) for name, recording in RECORDINGS.items() for group in recording.groups]


RECORDED = RECORDINGS["kafka-4.3.0"]


def folder_in(path: Path) -> RunFolder:
    """Return a run folder with all that is needed beside the evidence."""
    environment = RECORDED.folder / "environment.json"
    (path / environment.name).write_bytes(environment.read_bytes())
    return RunFolder(path)


def write(run: RunFolder, evidence: Evidence, profile: Profile) -> dict[str, Any] | None:
    """Write the counterexample into the run folder; return the entry of `verdict.json`."""
    found = reduced(run, evidence, profile, LogPlaces())
    if found is None:
        return None
    entry, texts, _ = found
    for name, text in texts.items():
        (run.path / name).write_text(text, encoding="utf-8")
    return entry


def header_of(recording: Recording) -> dict[str, object]:
    environment = recording.environment
    keys = {"kafka": "kafka_version", "coordinator": "coordinator", "config": "broker_config"}
    return {key: environment[name] for key, name in keys.items()}


def lied(evidence: Evidence) -> tuple[Evidence, ObservedRequest]:
    """Answer one heartbeat, after the failover, as if its generation were over."""
    beats = [
        s
        for s in evidence.requests
        if s.api == "HEARTBEAT" and s.response_fields.get("errorCode") == 0
    ]
    wrong = altered(
        beats[-5], response={**beats[-5].response_fields, "errorCode": Error.ILLEGAL_GENERATION}
    )
    requests = tuple(wrong if seen.id == wrong.id else seen for seen in evidence.requests)
    return altered(evidence, requests=requests), wrong


@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_the_evidence_of_a_run_is_the_same_in_an_event_file(name, group):
    recording = RECORDINGS[name]
    evidence = altered(
        recording.evidence(group),
        stalls=(Stall("1", 5.0, float("inf")),),
        outages=(Outage(7.0, 9.0),),
    )
    (sequence,) = read(event_lines(header_of(recording), evidence), "events")
    assert sequence.evidence == evidence


class Failed(NamedTuple):
    """A run with one wrong answer, reduced and written down."""

    run: RunFolder
    entry: dict[str, Any]
    evidence: Evidence
    wrong: ObservedRequest


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Failed:
    run = folder_in(tmp_path_factory.mktemp("run"))
    evidence, wrong = lied(RECORDED.evidence("failover"))
    entry = write(run, evidence, RECORDED.profile)
    assert entry is not None
    return Failed(run, entry, evidence, wrong)


def test_a_wrong_answer_is_reduced_and_written_down(failed):
    entry, wrong = failed.entry, failed.wrong
    assert entry["request"] == wrong.id
    assert entry["requests"] + entry["left_out"] == len(failed.evidence.requests)
    assert entry["requests"] < len(failed.evidence.requests) / 3
    assert entry["files"] == [*FILES]
    page, events, _ = ((failed.run.path / name).read_text() for name in FILES)
    broker, _, line = wrong.id.partition(":")
    assert f"brokers/{broker}/group.log:{line}: " in page
    assert "error=ILLEGAL_GENERATION" in page
    (sequence,) = read(events.splitlines(), "events")
    outcome = replay(sequence.evidence, RECORDED.profile)
    assert [v.request for v in outcome.violations] == [wrong.id]
    assert outcome.violations[0].searched


def test_the_files_of_a_run_are_red_by_themselves(failed, tmp_path, monkeypatch):
    """The test that was written fails until the answer is right; the event file is replayed."""
    folder = shutil.copytree(failed.run.path, tmp_path / "run")
    case, events = folder / FILES[2], folder / FILES[1]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", case.name]
    tested = lambda: subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    red = tested()
    assert red.returncode == 1, red.stdout
    assert "1 failed" in red.stdout
    case.write_text(case.read_text().replace('"errorCode":22', '"errorCode":0'))
    green = tested()
    assert green.returncode == 0, green.stdout
    monkeypatch.chdir(folder)
    assert oracle_replay.callback is not None
    assert oracle_replay.callback(str(events), None, None, 30.0, as_json=False) == 1


def test_a_run_without_a_wrong_answer_has_none(tmp_path):
    assert write(folder_in(tmp_path), RECORDED.evidence("failover"), RECORDED.profile) is None
    assert not any((tmp_path / name).exists() for name in FILES)


def test_it_is_of_the_group_whose_proven_wrong_answer_came_first():
    def wrong(group: str, at_ms: float, *, searched: bool = True) -> dict[str, object]:
        return {"group": group, "at_ms": at_ms, "searched": searched}

    def root(group: str, *, proven: bool = True) -> dict[str, object]:
        return {"group": group, "root": True, "proven": proven}

    roots = {"findings": [root("a"), root("b"), root("gaps", proven=False), root("lines")]}
    first, second = wrong("b", 2.0), wrong("a", 3.0)
    doubts = [wrong("gaps", 0.0), wrong("a", 1.0, searched=False)]
    assert group_of(roots, [second, first, *doubts]) == "b"
    assert group_of(roots, doubts) is None
