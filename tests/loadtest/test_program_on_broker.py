"""A small program of a user's as a group member, on a real broker."""

import itertools
import json
import sys

import psutil
import pytest

from tests.loadtest.experiments import of_one_group
from tests.process_family import below

pytestmark = pytest.mark.cluster

NUMBERS = itertools.count()

PROGRAM = """
import json, os, signal, sys, time
from confluent_kafka import Consumer, KafkaError

def say(name, found):
    partitions = [{"topic": one.topic, "partition": one.partition} for one in found]
    line = {"timestamp": int(time.time() * 1000), "name": name, "partitions": partitions}
    print(json.dumps(line), flush=True)

bootstrap, group = sys.argv[1:]
settings = {
    "bootstrap.servers": bootstrap, "group.id": group,
    "client.id": os.environ["GROUPQUAKE_CLIENT_ID"],
    "session.timeout.ms": int(os.environ["GROUPQUAKE_SESSION_TIMEOUT_MS"]),
    "heartbeat.interval.ms": int(os.environ["GROUPQUAKE_HEARTBEAT_INTERVAL_MS"]),
    "partition.assignment.strategy": os.environ["GROUPQUAKE_ASSIGNOR"],
}
if os.environ["GROUPQUAKE_INSTANCE_ID"]:
    settings["group.instance.id"] = os.environ["GROUPQUAKE_INSTANCE_ID"]
consumer = Consumer(settings)
consumer.subscribe(
    os.environ["GROUPQUAKE_TOPICS"].split(","),
    on_assign=lambda _, found: say("partitions_assigned", found),
    on_revoke=lambda _, found: say("partitions_revoked", found),
)
going = True
def stop(*_):
    global going
    going = False
signal.signal(signal.SIGTERM, stop)
while going:
    message = consumer.poll(0.1)
    error = message and message.error()
    if error and error.code() == KafkaError._FATAL:  # librdkafka's; its fatal() is False here
        sys.exit(f"fatal: {error}")
consumer.close()
"""


@pytest.fixture
def load(locust, kafka, tmp_path):
    """Two static members, both of the program, who have joined."""
    group = f"program{next(NUMBERS)}"
    program, file = tmp_path / "member.py", tmp_path / "experiment.yaml"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), "{bootstrap}", "{group}"]
    own = {"kind": "static", "count": 1, "client": {"command": command}}
    names = [f"{group}-{name}-{{n}}" for name in ("static", "other")]
    members = [{**own, "instance_id": name} for name in names]
    file.write_text(of_one_group(group, members))
    child = locust(
        *("--headless", "--users", "2", "--spawn-rate", "20"),
        *("--bootstrap", kafka, "--experiment", str(file)),
    )
    programs = {"folder": str(tmp_path), "commands": {}}
    (child.history_file.parent / "programs.json").write_text(json.dumps(programs))
    child.wait_joined()
    return child, f"{group}-static-0", f"{group}-other-0"


def events(load, name):
    return [line["event"] for line in load.history() if line["member"] == name]


def test_a_program_joins_freezes_is_fenced_and_closes(load):
    load, first, second = load
    before, formation = load.members(), events(load, second)
    assert formation[:2] == ["created", "assigned"]  # more if the other joins later
    assert {len(row["partitions"]) for row in before.values()} == {4}
    mine = below(load.process.pid, "member.py")
    assert len(mine) == 2
    assert all("GROUPQUAKE_CONTROL_TOKEN" not in one.environ() for one in mine)
    load.ask("pause", member=first)
    load.wait_for(lambda: psutil.STATUS_STOPPED in [one.status() for one in mine])
    load.ask("resume", member=first)
    load.wait_for(lambda: psutil.STATUS_STOPPED not in [one.status() for one in mine])
    duplicate = load.ask("duplicate", member=first)
    assert duplicate["client_id"] == f"{first}.duplicate"
    load.wait_for(lambda: load.members()[first]["state"] == "failed")  # its program ends: fenced
    load.ask("end-duplicate", member=first)
    load.ask("start", member=first)
    load.wait_joined()
    load.ask("stop", member=first)
    assert load.members()[second] == before[second], "static members come and go: no rebalance"
    load.ask("kill", member=second)
    assert events(load, second)[len(formation) :] == ["killed"]
    log = load.history_file.parent / "members" / f"{first}.log"
    assert "fatal: " in log.read_text(), "what it prints is kept"
