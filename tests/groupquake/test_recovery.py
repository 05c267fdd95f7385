"""What is found of a killed run, from its folder alone."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.journal import Journal, open_faults, read
from groupquake.load_process import end_members
from groupquake.recovery import _is_over, recover, recover_all
from loadtest.settings import RUN_FOLDER


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run that was killed while a member was frozen."""
    folder = tmp_path / "runs" / "killed"
    folder.mkdir(parents=True)
    with Journal(folder / "journal.jsonl") as journal:
        journal.phase("impact")
        undo = {"do": "resume-member", "member": "static-0"}
        journal.write("intent", fault_id="f1.1", kind="recoverable", undo=undo)
    return folder


def test_recovering_twice_is_recovering_once(killed: Path) -> None:
    first = recover(killed)
    assert ([fault.healed for fault in first.faults], first.ok) == ([True], True)
    written = (killed / "journal.jsonl").read_bytes()
    assert json.loads(written.splitlines()[-1])["event"] == "recovered"
    again = recover(killed)
    assert (again.faults, again.ended, again.deleted) == ((), (), ())
    assert (killed / "journal.jsonl").read_bytes() == written


def test_the_next_run_recovers_those_that_were_killed(killed: Path) -> None:
    runs, said = killed.parent, list[str]()
    (runs / "latest").symlink_to(killed.name)
    ended = runs / "ended"
    ended.mkdir()
    with Journal(ended / "journal.jsonl") as journal:
        journal.phase("end")
    going_on = runs / "going-on"
    going_on.mkdir()
    with Journal(going_on / "journal.jsonl") as journal:
        journal.phase("impact")
        recover_all(runs, said.append)
    assert said == [
        f"{killed} was killed before its end; healing it first",
        "f1.1: healed: nothing to undo: the load process is gone, and its members with it",
    ]
    assert open_faults(read(killed / "journal.jsonl")) == ()
    said.clear()
    recover_all(runs, said.append)
    assert said == [f"{going_on} was killed before its end; healing it first"]
    said.clear()
    recover_all(runs, said.append)
    recover_all(runs / "none", said.append)
    assert said == []


BORROWED = {
    "bootstrap": "127.0.0.1:1", "topics": ["t"], "groups": ["g"], "offsets_leaders": [1],
    "client_properties": None,
}  # fmt: skip


def properties_without_their_secret(folder: Path) -> dict[str, object]:
    file = folder / "alice.properties"
    file.write_text("sasl.password=${env:NO_SUCH_NAME}\n")
    return {"client_properties": str(file)}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            properties_without_their_secret,
            "the environment has no variable NO_SUCH_NAME",
        ),
        (lambda _: {"client_properties": "/no/such.properties"}, "/no/such.properties"),
        (lambda _: {"client_properties": 7}, "the journal was altered"),
        (lambda _: {"topics": None}, "the journal was altered"),
        (lambda _: {"topics": [None]}, "the journal was altered"),
        (lambda _: {"groups": "g"}, "the journal was altered"),
        (lambda _: {"bootstrap": ""}, "the journal was altered"),
    ],
)
def test_what_cannot_be_given_back_holds_up_no_other_run(
    change: Callable[[Path], dict[str, object]], why: str, killed: Path
) -> None:
    """Its heal says what is missing, in one line, and the next try begins anew."""
    with Journal(killed / "journal.jsonl") as journal:
        journal.write("borrowed", **{**BORROWED, **change(killed)})
        journal.phase("end")
    for _ in range(2):
        said: list[str] = []
        recover_all(killed.parent, said.append)
        assert said[-1].startswith(f"{killed} cannot be healed: NOT HEALED: ")
        assert why in said[-1]
        assert "\n" not in said[-1]


def test_a_run_is_not_over_before_what_it_borrowed_is_given_back(killed: Path) -> None:
    """Its end could not delete it, and went on to the journal's last entry."""
    path = killed / "journal.jsonl"
    with Journal(path) as journal:
        journal.write("healed", fault_id="f1.1", healed=True, how="")
        journal.write("borrowed", **BORROWED)
        journal.phase("end")
    assert not _is_over(path)
    with Journal(path) as journal:
        journal.write("given_back")
        journal.phase("end")
    assert _is_over(path)


def test_what_cannot_be_healed_is_tried_again(killed: Path) -> None:
    with Journal(killed / "journal.jsonl") as journal:
        journal.write("intent", fault_id="f2.1", kind="recoverable", undo={"do": "magic"})
    for _ in range(2):
        said: list[str] = []
        recover_all(killed.parent, said.append)
        assert any("f2.1: NOT healed: this version does not know" in line for line in said)


def test_programs_that_members_started_end_with_their_run(killed: Path) -> None:
    """A shell between the load and a client: the client outlives the load."""
    environment = {**os.environ, RUN_FOLDER: str(killed)}
    script = "import subprocess, sys; subprocess.Popen(['sleep', '600'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    other = {**os.environ, RUN_FOLDER: f"{killed}-2"}
    with subprocess.Popen(["sleep", "600"], env=other) as other_process:
        try:
            found = recover(killed)
            assert len(found.ended) == 1
            assert other_process.poll() is None
            assert end_members(killed) == ()
        finally:
            other_process.kill()
