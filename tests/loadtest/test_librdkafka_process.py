"""How processes with librdkafka end, watched with gevent in a child. No broker is needed."""

import json

import pytest

from tests.loadtest.scripts import run_script

START = """
import os, signal, sys
from pathlib import Path
import gevent
from loadtest.client_configs import MemberConfig
from loadtest.history import History
from loadtest.librdkafka_process import LibrdkafkaProcess
from loadtest.locust_statistics import no_statistics

file = Path(sys.argv[1])
config = MemberConfig("m", "g", "static", "app-1", ("t",), "range", 6000, 500, 60000, 1000)

def killed(member):
    os.kill(member.pid, signal.SIGKILL)
    os.waitid(os.P_PID, member.pid, os.WEXITED | os.WNOWAIT)

class Crashing(LibrdkafkaProcess):
    def resume(self):
        killed(self)
        super().resume()

def opened(kind=LibrdkafkaProcess):
    member = kind(config, "127.0.0.1:1", History(file), lambda _: no_statistics)
    member.open()
    return member

def with_consumer(member):
    with gevent.Timeout(30):
        while "created" not in file.read_text():
            gevent.sleep(0.01)
    return member

"""
CLOSED = "one = with_consumer(opened())"
DEAD = """
one = with_consumer(opened())
killed(one)
"""
DIES = "one = with_consumer(opened(Crashing))"
AT_ONCE = "one = opened()"
CLOSE = """
one.close()
one.close()
print(one.state)
"""
CRASHES = ("its process has ended by itself, exit code -9", "its process crashed as it closed")


@pytest.fixture
def closed(tmp_path):
    """Run a script, and close its member; returns its events without errors of librdkafka."""

    def run(script):
        history = tmp_path / "history.jsonl"
        assert run_script(START + script + CLOSE, str(history)) == ["stopped"]
        lines = [json.loads(line) for line in history.read_text().splitlines()]
        return [
            line["event"] for line in lines if line.get("error", CRASHES[0]).startswith(CRASHES)
        ]

    return run


def test_it_writes_its_own_end(closed):
    assert closed(CLOSED) == ["created", "closing", "closed"]


@pytest.mark.parametrize(
    ("script", "last"),
    [(DEAD, ["killed", "ended"]), (DIES, ["error", "killed"])],
    ids=["before", "meanwhile"],
)
def test_one_that_crashed_was_killed(closed, script, last):
    assert closed(script) == ["created", *last]


def test_one_without_a_consumer_yet_has_no_end(closed):
    assert closed(AT_ONCE) in ([], ["created", "closing", "closed"])
