import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.clusters.commands import end_under_way
from chaos.clusters.external import ExternalCluster, Target
from chaos.clusters.interface import ClusterError
from chaos.errors import ChaosError
from chaos.healing import heal_from_journal
from scenarios.external import Hooks


def cluster(folder, **commands):
    hooks = Hooks(**commands)
    target = Target("id", "h:1", {1: ("h", 1), 2: ("h", 2)}, None, {"any": hooks})
    return ExternalCluster(target, folder)


def test_a_hook_gets_the_brokers_id_and_its_output_is_kept(tmp_path):
    theirs = cluster(tmp_path, kill="echo gone {broker}", start="true")
    theirs.kill(2)
    assert (tmp_path / "2" / "hooks.log").read_text() == (
        "kill: echo gone 2\ngone 2\nkill: exit code 0\n"
    )


def test_a_hook_that_fails_says_why(tmp_path):
    theirs = cluster(tmp_path, kill="echo no such pod; exit 3", start="true")
    with pytest.raises(ClusterError, match="broker 1: the hook kill failed with code 3: no such"):
        theirs.kill(1)


def test_a_hook_that_hangs_is_ended_with_all_that_it_started(tmp_path):
    theirs = cluster(tmp_path, kill="sleep 60 & sleep 60", start="true", timeout="300ms")
    began = time.monotonic()
    with pytest.raises(ClusterError, match=r"did not end within 0\.3 s"):
        theirs.kill(1)
    assert time.monotonic() - began < 20


def test_a_missing_hook_is_an_error(tmp_path):
    with pytest.raises(ClusterError, match=r"broker 1 has no hook pause; add it to cluster\.hooks"):
        cluster(tmp_path, kill="true", start="true").pause(1)


@pytest.mark.parametrize("verb", ["start", "resume"])
def test_a_fault_is_undone_from_the_journal_alone(verb, tmp_path):
    mark = tmp_path / "mark"
    commands = {"start": f"echo {{broker}} >{mark}", "resume": f"echo {{broker}} >{mark}"}
    undo = cluster(tmp_path, **commands).undo(verb, 2)
    assert heal_from_journal(undo) == f"broker 2: the hook {verb} was run"
    assert mark.read_text() == "2\n"


def test_an_undo_that_fails_is_not_healed(tmp_path):
    undo = cluster(tmp_path, start="exit 1").undo("start", 1)
    with pytest.raises(ChaosError, match="hook start failed"):
        heal_from_journal(undo)
    with pytest.raises(ChaosError, match="the journal was altered"):
        heal_from_journal({**undo, "hook": {"verb": "start"}})


def ended(pid: int) -> bool:
    """Whether a process is gone, but for what its parent may still ask."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def awaited(file: Path) -> int:
    """The process id that a hook writes."""
    deadline = time.monotonic() + 30
    while not (file.exists() and file.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(file.read_text())


@pytest.mark.parametrize("how", ["", "setsid "])
def test_a_hook_is_done_when_its_shell_ends(tmp_path, how):
    """It may have started a broker in the background, which keeps its output open."""
    pid = tmp_path / "pid"
    theirs = cluster(tmp_path / "brokers", start=f"{how}sleep 60 & echo $! >{pid}", timeout="5s")
    theirs.start_broker(1)
    try:
        assert not ended(awaited(pid))
        assert end_under_way(tmp_path / "brokers") == (), "it is the user's"
        assert not ended(awaited(pid))
    finally:
        os.kill(awaited(pid), signal.SIGKILL)


def test_what_a_hook_leaves_in_a_session_of_its_own_is_not_waited_for(tmp_path):
    pid = tmp_path / "pid"
    theirs = cluster(
        tmp_path, kill=f"setsid sleep 60 & echo $! >{pid}; sleep 60", start="true", timeout="500ms"
    )
    began = time.monotonic()
    try:
        with pytest.raises(ClusterError, match=r"did not end within 0\.5 s"):
            theirs.kill(1)
        assert time.monotonic() - began < 20
    finally:
        os.kill(awaited(pid), signal.SIGKILL)


def test_a_hook_of_a_killed_runner_is_ended_with_all_that_it_started(tmp_path):
    brokers, pid, late = tmp_path / "brokers", tmp_path / "pid", tmp_path / "late"
    command = f"setsid sleep 60 & echo $! >{pid}; sleep 2; touch {late}"
    code = f"cluster(Path({str(brokers)!r}), kill={command!r}, start='true').kill(1)"
    script = f"from tests.chaos.clusters.test_hooks import *; {code}"
    with subprocess.Popen([sys.executable, "-c", script]) as runner:
        child = awaited(pid)
        runner.kill()
    assert not ended(child)
    assert end_under_way(tmp_path / "others") == ()
    assert len(end_under_way(brokers)) >= 2
    assert ended(child)
    time.sleep(2.5)  # as long as it would have taken, and more
    assert not late.exists()
    assert end_under_way(brokers) == ()


def test_an_undo_of_the_journal_is_logged_and_can_be_ended_too(tmp_path):
    undo = cluster(tmp_path, start="echo up").undo("start", 1)
    heal_from_journal(undo)
    assert (tmp_path / "1" / "hooks.log").read_text() == "start: echo up\nup\nstart: exit code 0\n"


def test_a_hook_is_run_on_a_full_disk(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "hooks.log").symlink_to("/dev/full")
    theirs = cluster(tmp_path, kill="true", start=f"echo up && touch {tmp_path}/{{broker}}/is-up")
    theirs.start_broker(1)
    assert (tmp_path / "1" / "is-up").exists()
