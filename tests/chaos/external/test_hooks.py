import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.clusters.commands import end_under_way
from chaos.errors import ChaosError, ClusterError
from chaos.external.cluster import ExternalCluster, Target
from chaos.fault_runner import heal_from_journal
from scenarios.external import Hooks
from tests.chaos.fakes import until


def cluster(folder, **commands):
    hooks = Hooks(**commands)
    target = Target("id", "h:1", {1: ("h", 1), 2: ("h", 2)}, None, {"any": hooks})
    return ExternalCluster(target, folder)


def test_a_hook_gets_the_brokers_id_and_its_output_is_kept(tmp_path):
    theirs = cluster(tmp_path, kill="echo gone {broker}", start="true")
    theirs.act("kill", 2)
    assert (tmp_path / "2" / "hooks.log").read_text() == (
        "kill: echo gone 2\ngone 2\nkill: exit code 0\n"
    )


def test_a_hook_that_fails_or_is_not_there_says_so(tmp_path):
    theirs = cluster(tmp_path, kill="echo no such pod; exit 3", start="true")
    with pytest.raises(ClusterError, match="broker 1: the hook kill failed with code 3: no such"):
        theirs.act("kill", 1)
    with pytest.raises(ClusterError, match=r"broker 1 has no hook pause; add it to cluster\.hooks"):
        theirs.act("pause", 1)
    for what in (lambda: theirs.volume(1), theirs.network, lambda: theirs.clock(1)):
        with pytest.raises(ClusterError, match="is not groupquake's to"):
            what()


def test_a_fault_is_undone_from_the_journal_alone(tmp_path):
    for verb in ("start", "resume"):
        mark = tmp_path / verb
        undo = cluster(tmp_path, **{verb: f"echo {{broker}} | tee {mark}"}).undo(verb, 2)
        assert heal_from_journal(undo) == f"broker 2: the hook {verb} was run"
        assert mark.read_text() == "2\n"
        log = (tmp_path / "2" / "hooks.log").read_text()
        assert log.endswith(f"{verb}: echo 2 | tee {mark}\n2\n{verb}: exit code 0\n")


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
    until(lambda: file.exists() and file.read_text().strip())
    return int(file.read_text())


@pytest.mark.parametrize("how", ["", "setsid "])
def test_a_hook_is_done_when_its_shell_ends(tmp_path, how):
    """It may have started a broker in the background, which keeps its output open."""
    pid = tmp_path / "pid"
    theirs = cluster(tmp_path / "brokers", start=f"{how}sleep 60 & echo $! >{pid}", timeout="5s")
    theirs.act("start", 1)
    try:
        assert not ended(awaited(pid))
        assert end_under_way(tmp_path / "brokers") == (), "it is the user's"
        assert not ended(awaited(pid))
    finally:
        os.kill(awaited(pid), signal.SIGKILL)


def test_a_hook_that_hangs_is_ended_and_what_it_left_is_not_waited_for(tmp_path):
    """What is in a session of its own is left; what is not ends with it."""
    left, child = tmp_path / "left", tmp_path / "child"
    command = f"setsid sleep 60 & echo $! >{left}; sleep 60 & echo $! >{child}; sleep 60"
    theirs = cluster(tmp_path, kill=command, start="true", timeout="500ms")
    try:
        with pytest.raises(ClusterError, match=r"did not end within 0\.5 s"):
            theirs.act("kill", 1)
        assert not ended(awaited(left))
        until(lambda: ended(awaited(child)))
    finally:
        os.kill(awaited(left), signal.SIGKILL)


def test_a_hook_of_a_killed_runner_is_ended_with_all_that_it_started(tmp_path):
    brokers, shell, child = tmp_path / "brokers", tmp_path / "shell", tmp_path / "child"
    command = f"echo $$ >{shell}; setsid sleep 60 & echo $! >{child}; sleep 60; true"
    code = f"cluster(Path({str(brokers)!r}), kill={command!r}, start='true').act('kill', 1)"
    script = f"from tests.chaos.external.test_hooks import *; {code}"
    with subprocess.Popen([sys.executable, "-c", script]) as runner:
        pids = awaited(shell), awaited(child)
        runner.kill()
    assert not any(map(ended, pids))
    assert end_under_way(tmp_path / "others") == ()
    assert len(end_under_way(brokers)) >= 2
    assert all(map(ended, pids))
    assert end_under_way(brokers) == ()


def test_a_hook_is_run_on_a_full_disk(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "hooks.log").symlink_to("/dev/full")
    theirs = cluster(tmp_path, kill="true", start=f"echo up && touch {tmp_path}/{{broker}}/is-up")
    theirs.act("start", 1)
    assert (tmp_path / "1" / "is-up").exists()
