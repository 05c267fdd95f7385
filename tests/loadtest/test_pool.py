"""All clients of a process, and the threads that close them."""

import threading
from types import SimpleNamespace

import gevent
import pytest

from loadtest.configs import NO_CLIENTS, ProducerConfig
from loadtest.history import History
from loadtest.pool import BlockingCalls, ClientPool


@pytest.fixture(autouse=True)
def nothing_is_printed(capsys):
    yield
    assert capsys.readouterr() == ("", "")


def test_a_user_that_is_killed_waits_for_the_thread_that_works_on_its_client():
    started, release, done = threading.Event(), threading.Event(), []

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
    assert not user.dead
    release.set()
    user.join(10)
    assert done == ["closed"]
    assert isinstance(user.value, gevent.GreenletExit)


def test_an_error_of_a_blocking_call_is_raised():
    def close():
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        BlockingCalls(1)(close)


def test_others_run_during_a_blocking_call():
    release = threading.Event()
    gevent.spawn_later(0.01, release.set)
    assert BlockingCalls(1)(lambda: release.wait(10)) is True


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
    leases.pool = ClientPool(leases, NO_CLIENTS, "127.0.0.1:1", History(None), SimpleNamespace())
    assert leases.pool.lease("producer") is None
    assert leases.released == ["p"]
