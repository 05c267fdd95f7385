import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from chaos.clusters import guard


def sleeping(name: str, run_id: str) -> subprocess.Popen[bytes]:
    """A process of this name that carries the mark, and does nothing."""
    arguments = [name, "-c", "import time; time.sleep(60)", guard.mark(run_id)]
    return subprocess.Popen(arguments, executable=sys.executable)


@pytest.fixture
def sleeper(run_id: str) -> Iterator[subprocess.Popen[bytes]]:
    with sleeping("/somewhere/java", run_id) as process:
        yield process
        process.kill()


def test_only_java_that_carries_the_very_mark_is_killed(
    sleeper: subprocess.Popen[bytes], run_id: str
) -> None:
    with sleeping("grep", run_id) as mentions_it_only:
        try:
            assert guard.kill_marked(run_id + "0") == ()
            assert guard.kill_marked(run_id[:-1]) == ()
            assert guard.kill_marked(run_id) == (sleeper.pid,)
            assert sleeper.wait() == -signal.SIGKILL
            assert mentions_it_only.poll() is None
        finally:
            mentions_it_only.kill()


def test_the_guard_acts_once_its_input_ends(sleeper: subprocess.Popen[bytes], run_id: str) -> None:
    watching = guard.stand_by(run_id)
    assert os.getsid(watching.pid) == watching.pid  # Ctrl-C of the runner does not reach it
    assert sleeper.poll() is None
    started = time.monotonic()
    watching.communicate()
    assert sleeper.wait() == -signal.SIGKILL
    assert time.monotonic() - started < 20
