"""All clients of a process, and the threads that close them."""

import threading
from types import SimpleNamespace

import gevent
import pytest

from loadtest.configs import NO_CLIENTS, ProducerConfig
from loadtest.history import History
from loadtest.pool import BlockingCalls, ClientPool, locust_report
from loadtest.timing import QUIET_MS


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


def test_errors_of_many_clients_are_counted_once_a_second_and_polls_apart(monkeypatch):
    fired, polls, now = [], [], [0.0]
    monkeypatch.setattr("loadtest.pool.now_ms", lambda: now[0])
    environment = SimpleNamespace(
        events=SimpleNamespace(request=SimpleNamespace(fire=lambda **event: fired.append(event))),
        runner=SimpleNamespace(
            stats=SimpleNamespace(
                get=lambda *entry: SimpleNamespace(log=lambda *took: polls.append((entry, took)))
            )
        ),
    )
    reported = {}
    members = [locust_report(environment, reported, "STATIC") for _ in range(2)]
    for now[0] in (0.0, QUIET_MS - 1, QUIET_MS):
        for member in members:
            member("error", None, error="_TRANSPORT")
            member("commit", 2.0, error="_TRANSPORT")
    counted = [event["name"] for event in fired]
    assert (counted.count("error"), counted.count("commit")) == (2, 6)
    members[0]("poll", 0.5, 90)
    assert polls == [(("poll", "STATIC"), (0.5, 90))]


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
