"""All clients of a process, and the threads that close them, which run in a child."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadtest.configs import NO_CLIENTS, ProducerConfig
from loadtest.history import History
from loadtest.pool import ClientPool

KILLED_MEANWHILE = """
started, release = threading.Event(), threading.Event()
done = []

def close():
    started.set()
    release.wait(10)
    done.append("closed")

user = gevent.spawn(BlockingCalls(1), close)
while not started.is_set():
    gevent.sleep(0.01)
for _ in range(2):
    user.kill(block=False)
    gevent.sleep(0)
assert not user.dead, "it left the client to a thread that still works on it"
release.set()
user.join(10)
assert done == ["closed"]
assert isinstance(user.value, gevent.GreenletExit), user.value
"""

RAISES = """
def close():
    raise ValueError("refused")

try:
    BlockingCalls(1)(close)
except ValueError as error:
    assert str(error) == "refused"
else:
    raise AssertionError("the error got lost")
"""

OTHERS_RUN = """
release = threading.Event()
gevent.spawn_later(0.01, release.set)
assert BlockingCalls(1)(lambda: release.wait(10)) is True
"""


@pytest.mark.parametrize("script", [KILLED_MEANWHILE, RAISES, OTHERS_RUN])
def test_a_blocking_call_is_waited_for_and_nothing_is_printed(script):
    imports = "import threading, gevent\nfrom loadtest.pool import BlockingCalls\n"
    ran = subprocess.run(
        [sys.executable, "-c", imports + script],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


class Slow:
    """The leases of a master whose answer comes when the load has ended."""

    def __init__(self):
        self.released = []

    def lease(self, kind):
        self.pool.close()
        return ProducerConfig("p", "orders", 5.0)

    def release(self, name):
        self.released.append(name)


def test_a_client_that_comes_after_the_end_is_returned():
    leases = Slow()
    events = SimpleNamespace(request=None)
    leases.pool = ClientPool(leases, NO_CLIENTS, "127.0.0.1:1", History(None), events)
    assert leases.pool.lease("producer") is None
    assert leases.released == ["p"]
