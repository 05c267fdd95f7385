"""What is undone of a killed run: what this user's own journal says, and nothing else."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from chaos.clusters import commands
from chaos.errors import ChaosError, RunGoesOnError
from chaos.journal import Journal, open_faults, read
from groupquake import open_runs
from groupquake.exits import NotHealedError
from groupquake.load_process import end_members
from groupquake.recovery import recover, recover_all
from loadtest.members.settings import RUN_FOLDER
from tests.chaos.clusters.test_jars import LIBS, unpacked
from tests.groupquake.conftest import Command

FROZEN: dict[str, Any] = {"do": "resume-member", "member": "static-0"}


JAVA = """#!/bin/sh
case "$*" in
    -version) echo 'openjdk version "17"' ;;
    *) grep -h "${1#-Dgroupquake.run=}" "$XDG_STATE_HOME"/groupquake/*.jsonl; exit 1 ;;
esac
"""


class Killed(BaseException):
    """Ends a run as SIGKILL does: nothing is noted afterwards."""


def begin_and_kill(folder: Path, *entries: dict[str, Any]) -> Path:
    """Begin a run, write entries, and end as if killed; return the run folder."""
    folder.mkdir(parents=True)
    with suppress(Killed), open_runs.begun(folder, "process") as (_, journal):
        for entry in entries:
            journal.write(**entry)
        content = journal.path.read_bytes()
        raise Killed
    journal.path.write_bytes(content)
    (folder / "journal.jsonl").write_bytes(content)
    return folder


def intent(fault_id: str = "f1.1", **undo: Any) -> dict[str, Any]:
    return {"event": "intent", "fault_id": fault_id, "kind": "recoverable", "undo": undo}


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run that was killed while a member was frozen."""
    return begin_and_kill(tmp_path / "runs" / "killed", intent(**FROZEN))


def test_the_mark_is_on_disk_before_the_first_process_carries_it(
    tmp_path: Path, small: Path, groupquake: Command
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(JAVA)
    java.chmod(0o755)
    home = unpacked(tmp_path, *LIBS)
    done = groupquake("run", small, f"--kafka-home={home}", env={"JAVA_HOME": str(tmp_path)})
    assert re.search('cannot be formatted: .*"event": "started", "run_id"', done.err)


@contextmanager
def left_alone(**variables: str) -> Iterator[None]:
    """A process with these variables, which has to outlive the block."""
    with subprocess.Popen(["sleep", "600"], env={**os.environ, **variables}) as process:
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()


def healed(folder: Path) -> list[str]:
    """Recover every run of this user; return what it says."""
    said: list[str] = []
    recover_all(said.append)
    return said


def test_recovering_twice_is_recovering_once(killed: Path, groupquake: Command) -> None:
    first = recover(open_runs.find(killed))
    assert ([fault.healed for fault in first.faults], first.ok) == ([True], True)
    written = (killed / "journal.jsonl").read_bytes()
    assert json.loads(written.splitlines()[-1])["event"] == "recovered"
    assert open_runs.own_journals() == ()
    again = groupquake("heal", killed)
    assert (again.code, again.out) == (0, "nothing to heal\n")
    assert (killed / "journal.jsonl").read_bytes() == written


def test_the_next_run_recovers_those_that_were_killed(killed: Path) -> None:
    ended = killed.with_name("ended")
    ended.mkdir()
    with open_runs.begun(ended, "process"):
        pass
    going_on = killed.with_name("going-on")
    going_on.mkdir()
    said: list[str] = []
    with open_runs.begun(going_on, "process"):
        assert recover_all(said.append)
        with pytest.raises(RunGoesOnError):
            recover(open_runs.find(going_on))
    assert said == [
        f"{killed} was killed; healing it",
        "fault f1.1: healed: nothing to undo: the load process is gone, and its members with it",
    ]
    assert open_faults(read(killed / "journal.jsonl")) == ()
    assert open_runs.own_journals() == ()


def test_a_run_is_healed_whose_folder_was_deleted(killed: Path) -> None:
    shutil.rmtree(killed)
    assert healed(killed)[1].startswith("fault f1.1: healed")
    assert open_runs.own_journals() == ()


def test_a_run_is_found_whose_folder_lacks_its_journal(killed: Path) -> None:
    """It was killed before the first line of the copy was written, or somebody altered it."""
    (killed / "journal.jsonl").write_bytes(b"no JSON\n")
    assert recover(open_runs.find(killed)).faults


def test_the_copy_of_a_journal_holds_up_no_healing(killed: Path, tmp_path: Path) -> None:
    """Neither a lock of another user, nor a link to a file of this one."""
    precious, copy = tmp_path / "precious", killed / "journal.jsonl"
    precious.write_text("half a line")
    with copy.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_SH)
        copy.unlink()
        copy.symlink_to(precious)
        assert any("f1.1: healed" in line for line in healed(killed))
    assert precious.read_text() == "half a line"
    assert read(copy)[-1]["event"] == "recovered"


def test_a_folder_that_became_a_link_leads_to_no_other_run(killed: Path, tmp_path: Path) -> None:
    live = tmp_path / "runs" / "live"
    killed.rename(live)
    killed.symlink_to(live)
    with left_alone(**{RUN_FOLDER: str(live)}):
        assert any("leads over a link" in line for line in healed(killed))


def test_a_fault_that_was_never_healed_is_not_over(tmp_path: Path) -> None:
    """Its healing broke off with an error that nobody expected."""
    with suppress(Killed), open_runs.begun(tmp_path, "external") as (_, journal):
        journal.write(**intent(**FROZEN))
        raise Killed
    assert len(open_runs.own_journals()) == 1


def hook(command: str) -> dict[str, Any]:
    hooked = {"verb": "start", "command": command, "timeout_ms": 5000, "log": "planted-hooks.log"}
    return {"do": "start-broker", "broker": 1, "hook": hooked}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of another user, whose journal runs a command."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "planted"
    folder.mkdir(parents=True)
    with Journal(folder / "journal.jsonl") as journal:
        journal.phase("impact")
        journal.write(**intent(**hook(f"touch {tmp_path}/PLANTED")))
    return folder


def test_the_folder_of_another_user_undoes_nothing_before_it_is_trusted(
    planted: Path, tmp_path: Path, groupquake: Command
) -> None:
    assert healed(planted) == []
    written = (planted / "journal.jsonl").read_bytes()
    shown = groupquake("heal", planted)
    assert shown.code == 5
    assert f"touch {tmp_path}/PLANTED" in shown.out
    assert "give --trust" in shown.err
    assert (planted / "journal.jsonl").read_bytes() == written
    assert not (tmp_path / "PLANTED").exists()
    trusted = groupquake("heal", planted, "--trust")
    assert (trusted.code, (tmp_path / "PLANTED").exists()) == (0, True)
    assert groupquake("heal", planted).out == "nothing to heal\n"


def test_what_is_added_to_the_folder_of_a_killed_run_is_not_undone(
    killed: Path, planted: Path, tmp_path: Path
) -> None:
    with (killed / "journal.jsonl").open("ab") as file:
        file.write((planted / "journal.jsonl").read_bytes())
    assert [fault.fault_id for fault in recover(open_runs.find(killed)).faults] == ["f1.1"]
    assert not (tmp_path / "PLANTED").exists()


@pytest.mark.parametrize(
    "change",
    [{"run_id": "../../planted"}, {"run_id": ".."}, {"run_id": 7}, {"host": "elsewhere"}],
    ids=str,
)
def test_a_journal_of_somebody_else_gives_no_place_and_no_machine_to_heal(
    change: dict[str, Any], killed: Path, tmp_path: Path, groupquake: Command
) -> None:
    """`run_id` becomes part of a path, and a home may be shared by machines."""
    (own,) = open_runs.own_journals()
    first, *rest = own.read_text().splitlines(keepends=True)
    altered = json.dumps({**json.loads(first), **change}) + "\n" + "".join(rest)
    for file in (own, killed / "journal.jsonl"):
        file.write_text(altered)
    assert not open_runs.find(killed).trusted
    assert groupquake("heal", killed).code == 5


def test_the_copy_of_a_run_that_goes_on_is_not_healed(tmp_path: Path, groupquake: Command) -> None:
    folder, copied = tmp_path / "run", tmp_path / "copied"
    folder.mkdir()
    with open_runs.begun(folder, "process") as (_, journal):
        journal.write(**intent(**FROZEN))
        shutil.copytree(folder, copied)
        with left_alone(**{RUN_FOLDER: str(folder)}):
            for options in ((), ("--trust",)):
                done = groupquake("heal", copied, *options)
                assert (done.code, "its run still goes on" in done.err) == (64, True)
        journal.write("healed", fault_id="f1.1", healed=True, how="")


@pytest.mark.parametrize("mode", [0o755, 0o770], ids=oct)
def test_a_place_that_others_can_write_is_refused(
    mode: int, killed: Path, groupquake: Command
) -> None:
    open_runs.own_journals()[0].parent.chmod(mode)
    done = groupquake("heal")
    assert (done.code, "that only you can open" in done.err) == (64, True)


def test_what_must_be_undone_cannot_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(ChaosError, match=r"cannot be noted .*set XDG_STATE_HOME"):
        open_runs.own_journals()


def test_a_journal_is_a_regular_file(tmp_path: Path, groupquake: Command) -> None:
    """A FIFO would be waited for, and a device has no end."""
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda p: p.symlink_to(p)):
        journal = tmp_path / "journal.jsonl"
        make(journal)
        done = groupquake("heal", tmp_path)
        assert (done.code, f"{journal}: cannot be read" in done.err) == (64, True)
        with pytest.raises(ChaosError, match="cannot be opened"):
            Journal(journal)
        journal.unlink()


BORROWED = {
    "event": "borrowed", "bootstrap": "127.0.0.1:1", "topics": ["x-t"], "groups": ["x-g"],
    "offsets_leaders": [1], "client_properties": None, "prefix": "x-",
}  # fmt: skip


SECRET_GONE = "the environment has no variable NO_SUCH_NAME"
ALTERED = "the journal was altered"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"client_properties": "alice.properties"}, SECRET_GONE, id="secret"),
        pytest.param({"client_properties": "/no/such.properties"}, "/no/such.prop", id="no file"),
        *(
            pytest.param(change, ALTERED, id=str(change))
            for change in (
                {"client_properties": 7}, {"topics": None}, {"topics": [None]}, {"groups": "g"},
                {"bootstrap": ""}, {"topics": ["orders"]}, {"groups": ["payments"]},
                {"prefix": ""},
            )
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_given_back_holds_up_no_other_run(
    change: dict[str, Any], why: str, tmp_path: Path, killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heal says what is missing, in one line, and the next try begins anew."""
    end = {"event": "phase", "phase": "end"}
    (tmp_path / "alice.properties").write_text("sasl.password=${env:NO_SUCH_NAME}\n")
    monkeypatch.chdir(tmp_path)
    begin_and_kill(tmp_path / "borrower", {**BORROWED, **change}, end)
    for frozen in ("1 fault", "none"):
        said = healed(killed)
        (line,) = [line for line in said if " cannot be healed: NOT HEALED: " in line]
        assert why in line
        assert "\n" not in line
        assert any("f1.1: healed" in line for line in said) == (frozen == "1 fault")


def test_a_run_is_not_over_before_what_it_borrowed_is_given_back(tmp_path: Path) -> None:
    """Its end could not delete it, and went on to the journal's last entry."""
    with open_runs.begun(tmp_path, "external") as (_, journal):
        journal.write(**BORROWED)
    (own,) = open_runs.own_journals()
    assert read(own)[-1]["phase"] == "end"
    with open_runs.find(tmp_path).opened() as journal:
        journal.write("given_back")
        journal.phase("end")
    assert open_runs.own_journals() == ()


def test_a_run_whose_end_failed_is_kept(tmp_path: Path) -> None:
    with pytest.raises(NotHealedError), open_runs.begun(tmp_path, "process"):
        raise NotHealedError("the rest of the cluster")
    assert len(open_runs.own_journals()) == 1


def test_what_cannot_be_healed_is_tried_again(tmp_path: Path) -> None:
    folder = begin_and_kill(tmp_path / "killed", intent(do="magic"))
    for _ in range(2):
        said = healed(folder)
        assert any("f1.1: NOT healed: this version does not know" in line for line in said)


def test_programs_that_members_started_end_with_their_run(killed: Path) -> None:
    """A shell between the load and a client: the client outlives the load."""
    environment = {**os.environ, RUN_FOLDER: str(killed)}
    script = "import subprocess, sys; subprocess.Popen(['sleep', '600'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    with left_alone(**{RUN_FOLDER: f"{killed}-2"}):
        assert len(recover(open_runs.find(killed)).ended) == 1
        assert end_members(killed) == ()


def test_a_trusted_folder_ends_nothing_of_another_run(tmp_path: Path, groupquake: Command) -> None:
    """Neither by the folder that its journal names, nor by a link of its brokers."""
    folder, planted = tmp_path / "live", tmp_path / "planted"
    (folder / "brokers").mkdir(parents=True)
    planted.mkdir()
    started = {"run_id": "planted-1", "folder": str(folder), "cluster": "process", "host": ""}
    with Journal(planted / "journal.jsonl") as journal:
        journal.write("started", **started)
    with left_alone(**{RUN_FOLDER: str(folder), commands.MARK: f"{folder}/brokers:1"}):
        assert groupquake("heal", planted, "--trust").code == 0
        with Journal(planted / "journal.jsonl") as journal:
            journal.phase("impact")
        (planted / "brokers").symlink_to(folder / "brokers")
        assert "leads over a link" in groupquake("heal", planted, "--trust").err
