"""Members in processes of their own on a real broker: frozen, slow, closed and killed."""

import itertools
import os
import signal

import psutil
import pytest

from tests.loadtest.experiments import of_one_group
from tests.process_family import below

pytestmark = pytest.mark.cluster

NUMBERS = itertools.count()


@pytest.fixture
def group():
    return f"own{next(NUMBERS)}"


@pytest.fixture
def load(locust, kafka, group, tmp_path):
    """A static member and a dynamic one with processes of their own, who have joined."""
    file = tmp_path / "experiment.yaml"
    own = {"count": 1, "client": "librdkafka-process"}
    members = [
        {**own, "kind": "static", "instance_id": f"{group}-static-{{n}}"},
        {**own, "kind": "dynamic"},
    ]
    file.write_text(of_one_group(group, members, max_poll_interval="6s"))
    child = locust(
        *("--headless", "--users", "2", "--spawn-rate", "20"),
        *("--bootstrap", kafka, "--experiment", str(file)),
    )
    child.wait_joined()
    return child


def processes(load):
    """The processes of members and duplicates, but for those that end right now."""
    return below(load.process.pid, "loadtest.member_program")


def stopped(load):
    return [p.status() for p in processes(load)].count(psutil.STATUS_STOPPED)


def events(load, name):
    return [line["event"] for line in load.history() if line["member"] == name]


def test_members_slow_down_freeze_and_close(load, group):
    static, dynamic = f"{group}-static-0", f"{group}-dynamic-0"
    before = load.members()
    assert {len(row["partitions"]) for row in before.values()} == {4}
    load.ask("stop-polling", member=dynamic)
    load.wait_for(lambda: len(load.members()[static]["partitions"]) == 8)  # the other has left
    load.ask("resume", member=dynamic)
    after = load.wait_joined()
    assert after[dynamic]["joins"] > before[dynamic]["joins"]
    assert "error" in events(load, dynamic), "librdkafka tells that it left"
    load.ask("pause", member=static)
    load.wait_for(lambda: stopped(load) == 1)
    load.ask("resume", member=static)
    load.wait_for(lambda: stopped(load) == 0)
    load.ask("pause", member=static)
    assert load.ask("stop", member=static)["state"] == "stopped"
    assert events(load, static)[-3:] == ["closing", "revoked", "closed"]
    assert load.ask("start", member=static)["state"] == "starting"
    load.wait_joined()
    load.ask("kill", member=dynamic)
    assert events(load, dynamic)[-1] == "killed"
    refused = load.reply_to("pause", member=dynamic)
    assert refused["error"] == f"'{dynamic}' is killed and has no process to stop"
    load.ask("quit")
    assert load.process.wait(timeout=60) == 0, load.output
    assert "Traceback" not in load.output


def test_a_member_that_is_fenced_stays_down(load, group):
    static = f"{group}-static-0"
    load.ask("duplicate", member=static)
    load.wait_for(lambda: load.members()[static]["state"] == "fenced")
    load.wait_for(lambda: len(processes(load)) == 2)  # the duplicate, and the other member
    load.ask("end-duplicate", member=static)
    assert load.ask("start", member=static)["state"] == "starting"
    load.wait_joined()
    frozen = processes(load)[0]
    os.kill(frozen.pid, signal.SIGSTOP)
    load.process.kill()
    psutil.wait_procs([frozen], timeout=10)
    assert not frozen.is_running(), "it ends with the load, frozen or not"
