"""The processes are watched with gevent, so all of it happens in a child. No broker is needed."""

import json
import re

import pytest

from tests.loadtest.scripts import run_script

NOBODY_LISTENS = re.compile("127.0.0.1:1/|brokers are down")

START = """
import os, signal, sys
from pathlib import Path
from loadtest.duplicate_process import DuplicateProcess
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.client_configs import MemberConfig

def config(assignor="range"):
    return MemberConfig("m", "g", "static", "app-1", ("t",), assignor, 6000, 500, 60000, 1000)

duplicate = DuplicateProcess("127.0.0.1:1", History(Path(sys.argv[1])))
"""

REFUSED = """
try:
    duplicate.start(config(assignor="nonsense"))
except LoadtestError as error:
    print(error)
print(duplicate.start(config())["client_id"])
duplicate.end()
"""

ENDED_BY_ITSELF = """
pid = duplicate.start(config())["pid"]
os.kill(pid, signal.SIGUSR1)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
duplicate.end()
"""

INTERRUPTED = """
import gevent
duplicate.start(config())
user = gevent.spawn(duplicate.end)
gevent.sleep(0)
user.kill()
duplicate.end()
duplicate.end()
"""


@pytest.fixture
def run(tmp_path):
    def run(script):
        history = tmp_path / "history.jsonl"
        said = run_script(START + script, str(history), within_s=60)
        lines = [json.loads(line) for line in history.read_text().splitlines()]
        history = [line for line in lines if not NOBODY_LISTENS.search(line.get("error", ""))]
        assert {(line["member"], line["group"], line["kind"]) for line in history} == {
            ("m.duplicate", "g", "static")
        }
        return said, [(line["event"], line.get("error")) for line in history]

    return run


def test_a_duplicate_that_does_not_start_is_refused_and_may_be_retried(run):
    run_script, history = run(REFUSED)
    error_line, client_id = run_script
    assert error_line.startswith(
        "'m.duplicate' did not come up; see the history and the load's own log"
    )
    assert client_id == "m.duplicate"
    assert [event for event, _ in history] == ["created", "ended", "killed", "created", "killed"]


def test_a_process_that_ended_by_itself_is_reported(run):
    _, history = run(ENDED_BY_ITSELF)
    error_line = "its process had already ended, exit code -10"
    assert history == [("created", None), ("error", error_line), ("killed", None)]


def test_an_interrupted_end_is_repeated_once(run):
    _, history = run(INTERRUPTED)
    assert [event for event, _ in history] == ["created", "killed"]
