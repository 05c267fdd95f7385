"""A member that is a process, watched with gevent in a child; a program stands in for Java's.

It prints the lines of the VerifiableConsumer (Kafka 4.3.0), and then its arguments.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

STAND_IN = """
import json, signal, sys, time
from pathlib import Path

def say(**fields):
    print(json.dumps({"timestamp": 1, **fields}), flush=True)

class Closed(Exception): pass
def close(*_): raise Closed
signal.signal(signal.SIGTERM, close)
properties = Path(sys.argv[-1]).read_text()
both = [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
print("what the JVM itself has to say", flush=True)
say(name="startup_complete", arguments=sys.argv[1:], properties=properties)
try:
    say(name="partitions_assigned", partitions=both)
    if "ends" in properties:
        sys.exit(3)
    time.sleep(60)
except Closed:
    say(name="partitions_revoked", partitions=both[1:])
    say(name="shutdown_complete")
"""

START = """
import json, sys
from pathlib import Path
import gevent
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.java_member import JavaMember
from loadtest.locust_statistics import no_statistics
from loadtest.client_configs import MemberConfig

folder = Path(sys.argv[1])
history = History(folder / "history.jsonl")

def member(name, instance_id="app-1"):
    kind = "static" if instance_id else "dynamic"
    config = MemberConfig(
        name, "g", kind, instance_id, ("t",), "range", 6000, 500, 60000, 1000, 2000, "java"
    )
    return JavaMember(config, "127.0.0.1:1", history, lambda _: no_statistics)

def until(state, one):
    with gevent.Timeout(30):
        while one.state != state:
            one.poll_once()
            gevent.sleep(0.01)

"""
CLOSES = """
one = member("m")
one.open()
one.open()
until("joined", one)
print(json.dumps(one.describe()))
one.close()
one.close()
print(json.dumps(one.describe()))
"""
KILLED = """
one = member("m")
one.open()
until("joined", one)
try:
    one.change_identity(None)
except LoadtestError as error:
    print(error)
one.kill()
try:
    one.kill()
except LoadtestError as error:
    print(error)
one.change_identity(None)
one.open()
until("joined", one)
one.kill()
"""
ENDS_BY_ITSELF = """
one = member("ends")
one.open()
until("failed", one)
one.open()
one.kill()
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run a script; returns what it printed, and the history's (event, partitions)."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    command = [sys.executable, str(tmp_path / "stand_in.py")]
    (tmp_path / "java.json").write_text(json.dumps(command))

    def run(script):
        done = subprocess.run(
            [sys.executable, "-c", START + script, str(tmp_path)],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines())
        events_seen = [(line["event"], line.get("partitions"), line["kind"]) for line in lines]
        return done.stdout.splitlines(), events_seen

    return run


def test_a_java_member_takes_its_identity_and_closes_cleanly(run, tmp_path):
    (up, down), events_seen = run(CLOSES)
    row = {"name": "m", "group": "g", "kind": "static", "instance_id": "app-1", "member_id": None}
    assert json.loads(up) == {
        **row, "state": "joined", "partitions": ["t-0", "t-1"], "joins": 1
    }  # fmt: skip
    assert json.loads(down) == {**row, "state": "stopped", "partitions": [], "joins": 1}
    assert events_seen == [
        ("created", None, "static"),
        ("assigned", ["t-0", "t-1"], "static"),
        ("closing", None, "static"),
        ("revoked", ["t-1"], "static"),
        ("closed", ["t-0"], "static"),
    ]
    log = (tmp_path / "members" / "m.log").read_text().splitlines()
    assert log[0] == "what the JVM itself has to say"
    startup, *_, last = map(json.loads, log[1:])
    assert last["name"] == "shutdown_complete"
    assert startup["arguments"] == [
        "--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--group-id", "g",
        "--session-timeout", "6000",
        "--assignment-strategy", "org.apache.kafka.clients.consumer.RangeAssignor",
        "--enable-autocommit", "--consumer.config", str(tmp_path / "members" / "m.properties"),
    ]  # fmt: skip
    assert startup["properties"].splitlines() == [
        "client.id=m", "heartbeat.interval.ms=500", "max.poll.interval.ms=60000",
        "metadata.max.age.ms=2000", "auto.commit.interval.ms=1000", "group.instance.id=app-1",
    ]  # fmt: skip


def test_a_java_member_is_killed_and_restarts_with_another_identity(run, tmp_path):
    (is_up, is_down), events_seen = run(KILLED)
    assert is_up == "'m' is up as app-1; stop or kill it before you start it with another identity"
    assert is_down == "'m' is killed and has no process to kill; start it first"
    events = [
        ("created", None), ("assigned", ["t-0", "t-1"]), ("killed", ["t-0", "t-1"])
    ]  # fmt: skip
    assert events_seen == [(*event, kind) for kind in ("static", "dynamic") for event in events]
    assert "group.instance.id" not in (tmp_path / "members" / "m.properties").read_text()


def test_a_java_member_that_ends_by_itself_is_reported_and_reopened(run, tmp_path):
    _, events_seen = run(ENDS_BY_ITSELF)
    assert [event for event, *_ in events_seen][:5] == [
        "created", "assigned", "error", "killed", "created"
    ]  # fmt: skip
    error = (tmp_path / "history.jsonl").read_text().splitlines()[2]
    assert json.loads(error)["error"] == "its process has ended by itself, exit code 3"
