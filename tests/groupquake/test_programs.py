"""Programs that are no members: missing, ended by themselves, or with a client.id of their own."""

import json
import sys
from pathlib import Path

import pytest
import yaml
from click import UsageError

from chaos.errors import ChaosError
from groupquake.clients.programs import outsiders, require_there
from scenarios import Experiment, load
from tests.groupquake.conftest import Command, running
from tests.loadtest.loads import of_one_group

PROGRAM = """
import os, signal
from pathlib import Path
from confluent_kafka import Consumer

name = os.environ["GROUPQUAKE_CLIENT_ID"]
journal = Path(os.environ["GROUPQUAKE_RUN_FOLDER"]) / "journal.jsonl"
consumer = Consumer({
    "bootstrap.servers": os.environ["GROUPQUAKE_BOOTSTRAP"],
    "group.id": os.environ["GROUPQUAKE_GROUP"],
    "client.id": "payments" if name.endswith("-2") else name,
})
consumer.subscribe(["orders"])
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
while not stopped and not (name.endswith("-1") and '"impact"' in journal.read_text()):
    consumer.poll(0.1)
if stopped:
    consumer.close()
print("nothing left to do")
"""


def written(folder: Path, *command: str, count: int = 1, within: str = "60s") -> Path:
    """Write an experiment of a group of programs."""
    members = {"kind": "dynamic", "count": count, "client": {"command": [*command]}}
    content = yaml.safe_load(of_one_group("app", [members]))
    probe = {"name": "all", "probe": "group.members", "group": "app", "tolerance": "all"}
    content["steady_state"] = {"within": within, "probes": [probe]}
    file = folder / "experiment.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def of(folder: Path, *command: str, count: int = 1) -> Experiment:
    return load(written(folder, *command, count=count))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with a program, a file that is none, and a folder."""
    monkeypatch.chdir(tmp_path)
    for name, mode in (("program", 0o755), ("text", 0o644)):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("program", ["./no", "/no/such", "no-such-program", "./text", "./folder"])
def test_a_program_that_cannot_be_run_is_bad_usage(folder: Path, program: str) -> None:
    with pytest.raises(UsageError, match=f"'app-dynamic-0' .* there is no program '{program}'; "):
        require_there(of(folder, program))


@pytest.mark.parametrize("program", ["./program", "program", "sh", sys.executable, "{group}/run"])
def test_a_program_may_be_anywhere_and_only_its_member_may_know_where(
    folder: Path, program: str
) -> None:
    require_there(of(folder, program))


def test_a_run_with_a_missing_program_ends_before_it_begins(
    groupquake: Command, tmp_path: Path
) -> None:
    done = groupquake("run", written(tmp_path, "./no-such"))
    assert done.code == 64
    assert "there is no program './no-such'" in done.err
    assert not (tmp_path / "runs").exists()


def test_a_client_id_that_nobody_was_given_is_named_with_those_that_are_missing(
    folder: Path,
) -> None:
    experiment, names = of(folder, "sh", count=3), [f"app-dynamic-{n}" for n in range(3)]
    there: dict[str, frozenset[str]] = {"app": frozenset(names)}
    assert list(outsiders(experiment, there.__getitem__)) == []
    there["app"] = frozenset(names[:1])
    assert list(outsiders(experiment, there.__getitem__)) == [], "these may still come"
    there["app"] = frozenset([*names[:2], "payments"])
    (line,) = outsiders(experiment, there.__getitem__)
    assert line == (
        "group app has members with client.id ['payments'], which nobody was given, and lacks"
        " ['app-dynamic-2']; a program has to use GROUPQUAKE_CLIENT_ID"
    )

    def refuse(_: str) -> frozenset[str]:
        raise ChaosError("no broker answers")

    assert list(outsiders(experiment, refuse)) == []


@pytest.mark.cluster
def test_a_program_that_crashes_as_it_starts_ends_the_formation(
    groupquake: Command, tmp_path: Path
) -> None:
    crash = "import sys; sys.exit('ValueError: no such setting')"
    done = groupquake("run", written(tmp_path, sys.executable, "-c", crash, within="10m"))
    assert done.code == 3
    last = done.err.splitlines()[-1]
    assert last.startswith("groupquake: steady state not met: app-dynamic-0: its process has ended")
    assert "exit code 1; last in members/app-dynamic-0.log: 'ValueError: no such setting'" in last
    events = (tmp_path / "runs" / "latest" / "journal.jsonl").read_text()
    assert '"phase": "impact"' not in events
    assert running(str(tmp_path)) == []


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_programs_that_are_no_members_make_a_run_unknown_and_are_named(
    groupquake: Command, tmp_path: Path
) -> None:
    done = groupquake("run", written(tmp_path, sys.executable, "-c", PROGRAM, count=3))
    assert done.code == 2, done.err
    ended = (
        "app-dynamic-1: its process has ended by itself, exit code 0;"
        " last in members/app-dynamic-1.log: 'nothing left to do'"
    )
    said = done.err.splitlines()
    assert any("client.id ['payments'], which nobody was given" in line for line in said)
    assert any(line.endswith(ended) for line in said), done.err
    folder = (tmp_path / "runs" / "latest").resolve()
    first = (folder / "verdict.json").read_bytes()
    verdict = json.loads(first)
    found = {one["kind"]: one["observed"] for one in verdict["findings"]}
    assert found["member_ended"] == ended
    assert found["not_a_member"] == "no JoinGroup has it; others, which nobody was given: payments"
    assert len(verdict["findings"]) == 2
    assert groupquake("report", folder).code == 2
    assert (folder / "verdict.json").read_bytes() == first
