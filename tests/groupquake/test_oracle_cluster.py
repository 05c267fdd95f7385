"""Runs on the served oracle: clients of four kinds, and what it refuses before anything starts."""

import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from chaos.clusters.ports import free_ports
from kafka_protocol.coordinator_lines import JAVA
from kafka_protocol.errors import Error
from loadtest.wire import Connection, negotiate
from reports.judgement.findings import proven_roots
from reports.judgement.recording import Recording
from scenarios import named, names
from selftest.mutants.judging import found
from tests.groupquake.conftest import Command, arguments

NO_KAFKA = [name for name in names() if named(name).never_shipped]
KINDS = ("librdkafka", "kafka-python", "aiokafka", "java")
FENCED = {
    **{kind: {Error.FENCED_INSTANCE_ID} for kind in KINDS},
    # aiokafka 0.14 names no instance id when it beats and commits: it is unknown then
    "aiokafka": {Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID},
}
LEADERS_FAULT = {"kafka-python": {"partition_not_assigned"}}
"""What a client may do wrong as leader: kafka-python deals nothing out before it has metadata."""
TIMINGS = {
    "session_timeout": "30s", "heartbeat_interval": "500ms", "max_poll_interval": "60s",
    "commit_interval": "500ms",
}  # fmt: skip


def written(folder: Path) -> Path:
    """Write an experiment: of each kind a group of two static members and a dynamic one."""
    groups = [
        {
            "name": kind, "topics": ["orders"], **TIMINGS,
            "members": [
                {"kind": "static", "count": 2, "instance_id": f"{kind}-{{n}}", "client": kind},
                {"kind": "dynamic", "count": 1, "client": kind},
            ],
        }
        for kind in KINDS
    ]  # fmt: skip
    twice = [f"{kind}-0" for kind in KINDS]
    leaving = [f"{kind}-dynamic-0" for kind in KINDS]
    content = {
        "name": "four-kinds",
        "description": "A duplicate of a static member of each kind, and a dynamic one restarts.",
        "cluster": {"config": {"group.initial.rebalance.delay.ms": 1000}},
        "workload": {
            "topics": [{"name": "orders", "partitions": 6, "replication_factor": 3}],
            "producers": [{"topic": "orders", "rate": 50}],
            "groups": groups,
        },
        "steady_state": {"within": "240s"},
        "faults": [
            {"fault": "member.duplicate-instance", "target": {"names": twice}, "at": "1s",
             "lasts": "12s"},
            {"fault": "member.restart", "target": {"names": leaving}, "at": "16s",
             "down_for": "3s"},
        ],
        "phases": {"impact": "30s", "recovery": "3s"},
        "expect": [],
    }  # fmt: skip
    file = folder / "four-kinds.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


@pytest.mark.cluster
def test_clients_of_four_kinds_join_commit_are_fenced_and_leave(process: Command, tmp_path: Path):
    words = f"run {written(tmp_path)} --cluster=oracle --seed=1 --no-report --runs={tmp_path}"
    done = process(*words.split(), timeout_s=600)
    assert done.code == 0, done.err
    (run,) = tmp_path.glob("2*-four-kinds-*")
    recording = Recording(run)
    for kind in KINDS:
        wrong = {one.kind for one in proven_roots(found(recording, kind))}
        assert wrong <= LEADERS_FAULT.get(kind, set())
        of_group = [line.request for line in recording.lines if line.group == kind and line.request]
        seen = {
            (one["requestHeader"]["requestApiKeyName"], one["response"].get("errorCode", 0))
            for one in of_group
        }
        assert {("JOIN_GROUP", 0), ("SYNC_GROUP", 0), ("HEARTBEAT", 0), ("LEAVE_GROUP", 0)} <= seen
        commits = [one for one in of_group if one["request"].get("topics")]
        stored = [part["errorCode"] for one in commits for topic in one["response"]["topics"]
                  for part in topic["partitions"]]  # fmt: skip
        assert 0 in stored, f"{kind} commits nothing"
        answered = {error for _, error in seen} | set(stored)
        assert FENCED[kind] & answered, f"{kind} is not fenced"


LONG, EXHAUSTIVE = pytest.mark.long, pytest.mark.exhaustive
SAME = {
    "demo": LONG, "rolling-bounce": EXHAUSTIVE, "duplicate-in-every-state": EXHAUSTIVE,
    "batch-removal": LONG, "session-expiry": EXHAUSTIVE, "coordinator-failover": EXHAUSTIVE,
}  # fmt: skip
"""Experiments that pass on brokers of 4.3.0, with seeds 1 to 3."""


@pytest.mark.spark
@pytest.mark.parametrize("name", [pytest.param(one, marks=SAME[one]) for one in SAME])
def test_the_verdict_is_that_of_brokers(process: Command, tmp_path: Path, name: str):
    done = process("run", name, "--cluster=oracle", "--seed=1", f"--runs={tmp_path}", timeout_s=600)
    assert "\nverdict: pass\n" in done.out, done.out + done.err
    assert done.code == 0


def test_it_is_served_until_it_is_interrupted(tmp_path: Path):
    (port,) = free_ports(1)
    words = f"oracle serve --port={port} --brokers=1 --log={tmp_path}"
    command = arguments(*words.split())
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            assert f"4.3 is served at 127.0.0.1:{port}" in serving.stderr.readline()
            with closing(Connection("127.0.0.1", port, "c")) as client:
                assert "JOIN_GROUP" in negotiate(client)
            serving.send_signal(signal.SIGINT)
            assert serving.wait(60) == 0
        finally:
            serving.kill()
    *_, last = (tmp_path / "1" / "group.log").read_text().splitlines()
    assert last.endswith(JAVA.last_line_end)


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.parametrize("name", NO_KAFKA)
def test_what_never_shipped_is_served_and_judged_by_its_name(
    process: Command, tmp_path: Path, name: str
):
    """Its experiment needs no option: `judge` names the rules, which the oracle alone has."""
    done = process("run", name, "--seed=1", f"--runs={tmp_path}", timeout_s=900)
    assert done.code == 0, done.out
    assert f"judged by the rules of {named(name).judge}" in done.out


REFUSED = {
    "broker.partition needs": ("partitioned-coordinator",),
    "no profile '3.9.1-scala' is served": ("demo", "--kafka=3.9.1"),
    "no profile '9.9' is served": ("demo", "--profile=9.9"),
    "--kafka-home is for --cluster process": ("demo", "--kafka-home=."),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_it_lacks_is_refused_before_anything_starts(
    groupquake: Command, tmp_path: Path, why: str
):
    done = groupquake("run", *REFUSED[why], "--cluster=oracle", f"--runs={tmp_path / 'runs'}")
    assert done.code == 64
    *_, last = done.err.strip().splitlines()
    assert last.startswith(f"Error: {why}")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", NO_KAFKA)
@pytest.mark.parametrize("kind", ["process", "docker"])
def test_what_never_shipped_is_refused_on_brokers(
    groupquake: Command, tmp_path: Path, name: str, kind: str
):
    done = groupquake("run", name, f"--cluster={kind}", f"--runs={tmp_path / 'runs'}")
    assert done.code == 64
    rules = named(name).judge
    assert done.err.strip().splitlines()[-1].startswith(f"Error: no Kafka has the rules {rules}")
    assert not (tmp_path / "runs").exists()


def test_beside_other_rules_it_is_served_too(groupquake: Command, tmp_path: Path):
    words = ("gone-and-back", "--profile=4.3", "--kafka-home=.", f"--runs={tmp_path / 'runs'}")
    done = groupquake("run", *words)
    assert done.code == 64
    assert "Error: --kafka-home is for --cluster process" in done.err


def test_a_change_of_configs_is_refused_with_the_tap(groupquake: Command, tmp_path: Path):
    """The tap writes requests of members; who changes configs asks the brokers."""
    done = groupquake("run", "hot-standby", "--tap", f"--runs={tmp_path / 'runs'}")
    assert done.code == 64
    assert done.err.strip().splitlines()[-1].startswith("Error: group.configure")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("profile", ["9.9", "3.9-scala", "kip-345-2.4"])
def test_a_profile_that_is_not_served_is_refused(groupquake: Command, profile: str):
    done = groupquake("oracle", "serve", f"--profile={profile}")
    assert done.code == 64
    assert done.err.strip().splitlines()[-1].startswith("Error: --profile: no profile")
