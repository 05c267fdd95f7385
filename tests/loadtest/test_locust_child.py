"""The whole load against a real broker, started and spoken to as the runner does it."""

import itertools
import json
import signal
import socket
import urllib.parse
import urllib.request

import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

pytestmark = pytest.mark.cluster

NUMBERS = itertools.count()
FOUR = ("--static-members", "2", "--dynamic-members", "2", "--session-timeout", "6s")


@pytest.fixture
def group():
    """A name of its own for every test: static members stay in their group for a session."""
    return f"g{next(NUMBERS)}"


@pytest.fixture
def arguments(kafka, group):
    return ("--bootstrap", kafka, "--group", group, *FOUR)


def events_of(history, member):
    return [line["event"] for line in history if line["member"] == member]


def members_left(kafka, group):
    """Return the client ids that the broker still has in the group."""
    admin = AdminClient({"bootstrap.servers": kafka})
    described = admin.describe_consumer_groups([group])[group].result()
    return sorted(member.client_id for member in described.members)


def test_a_load_writes_its_history_and_its_statistics(locust, arguments, group):
    static, dynamic = f"{group}-static-1", f"{group}-dynamic-1"
    child = locust("--headless", *arguments, "--produce-rate", "40")
    before = child.wait_joined()
    for name in (static, dynamic):  # a rebalance for each kind, and a restart of one
        child.ask("stop", member=name)
        child.ask("start", member=name)
        child.wait_joined()
    child.wait_for(lambda: {"committed"} <= {line["event"] for line in child.history()})

    child.ask("quit")
    assert child.process.wait(timeout=60) == 0, child.output
    assert "Traceback" not in child.output
    check_history(child.history(), before, static)
    entries = {(row["method"], row["name"]) for row in json.loads(child.stats_file.read_text())}
    assert entries >= {
        *itertools.product(("STATIC", "DYNAMIC"), ("join", "rebalance", "poll", "commit")),
        ("PRODUCER", "produce"),
    }


def check_history(history, rows, bounced):
    life = ["created", "assigned", "closing", "revoked", "closed"]
    for name, row in rows.items():
        lines = [line for line in history if line["member"] == name]
        assert {(line["group"], line["kind"]) for line in lines} == {(row["group"], row["kind"])}
        steps = [line["event"] for line in lines if line["event"] in life]
        assert steps[:2] == life[:2]
        assert steps[-3:] == life[-3:]
        assigned = [line for line in lines if line["event"] == "assigned"]
        assert row["partitions"] in [line["partitions"] for line in assigned]
        assert row["member_id"] in [line["member_id"] for line in assigned]
    assert events_of(history, bounced).count("created") == 2
    produced = [line for line in history if line["event"] == "produced"]
    assert sum(line["records"] for line in produced) > 40
    assert not any(line["errors"] for line in produced)
    assert [line["max_ms"] for line in history if line["event"] == "hub_lag"]
    assert any(line["offsets"] for line in history if line["event"] == "committed")
    # A commit may meet a rebalance, which is an error to the client and none to anybody else.
    errors = [line["error"] for line in history if line["event"] == "error"]
    assert not [error for error in errors if not error.startswith("commit: ")]
    assert not [line for line in history if line["event"] in ("fenced", "lost")]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_dynamic_members_leave(locust, arguments, group, kafka, how):
    child = locust("--headless", *arguments, "--users", "9")
    child.wait_joined()
    assert "(4 total users)" in child.output
    assert child.end(how) == 0, child.output
    assert members_left(kafka, group) == [f"{group}-static-0", f"{group}-static-1"]
    closed = [line["member"] for line in child.history() if line["event"] == "closed"]
    assert len(closed) == len(set(closed)) == 4


def test_the_end_waits_for_a_close_that_is_under_way(locust, arguments, group, kafka):
    child = locust("--headless", *arguments)
    admin = AdminClient({"bootstrap.servers": kafka})
    child.wait_for(
        lambda: (
            admin.describe_consumer_groups([group])[group].result().state
            is ConsumerGroupState.PREPARING_REBALANCING
        )
    )
    # A JoinGroup is pending, and a LeaveGroup has to queue behind it: closing takes a while.
    child.send("stop", member=f"{group}-dynamic-0")
    child.send("quit")
    # A SIGTERM before all four begin to close would kill users in the middle of it.
    child.wait_for(lambda: sum(line["event"] == "closing" for line in child.history()) == 4)
    assert child.end(signal.SIGTERM) == 0, child.output
    assert not [name for name in members_left(kafka, group) if "dynamic" in name]
    events = [line["event"] for line in child.history()]
    assert events.count("created") == events.count("closed") == 4
    assert "Traceback" not in child.output


def test_orders_that_make_no_sense_are_refused(locust, arguments, group):
    child = locust("--headless", *arguments, "--users", "2")
    child.wait_for(lambda: sum(row["state"] == "joined" for row in child.ask("members")) == 2)
    idle = next(row["name"] for row in child.ask("members") if row["state"] == "stopped")
    refused = child.reply_to("start", member=idle)
    assert refused["error"] == f"no user runs {idle!r} now; start more users"
    assert "no member is called 'nobody'" in child.reply_to("stop", member="nobody")["error"]


def test_the_web_interface_brings_identities_back(locust, arguments, group):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    child = locust(*arguments, "--web-host", "127.0.0.1", "--web-port", str(port))
    assert {row["state"] for row in child.ask("members")} == {"stopped"}

    def swarm(users):
        form = urllib.parse.urlencode({"user_count": users, "spawn_rate": 20}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/swarm", form) as reply:
            assert json.load(reply)["success"]

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
        assert '"num_users": 4' in page.read().decode()
    swarm(4)
    before = child.wait_joined()
    swarm(1)
    child.wait_for(lambda: sum(row["state"] == "stopped" for row in child.ask("members")) == 3)
    swarm(4)
    after = child.wait_joined()
    assert after.keys() == before.keys()
    child.ask("quit")
    assert child.process.wait(timeout=60) == 0, child.output
    created = [line["instance_id"] for line in child.history() if line["event"] == "created"]
    assert {name for name in created if name} == {f"{group}-static-0", f"{group}-static-1"}


def test_an_experiment_spawns_its_members_and_producers_and_no_more(locust, kafka, experiment_file):
    child = locust("--headless", "--bootstrap", kafka, "--experiment", str(experiment_file))
    rows = child.wait_joined()
    assert {name: row["group"] for name, row in rows.items()} == {
        "static-0": "calm",
        "static-1": "calm",
        "lively-dynamic-0": "lively",
    }
    child.wait_for(lambda: "produced" in {line["event"] for line in child.history()})
    child.ask("quit")
    assert child.process.wait(timeout=60) == 0, child.output
    created = [line["member"] for line in child.history() if line["event"] == "created"]
    assert sorted(created) == ["lively-dynamic-0", "producer-0", "static-0", "static-1"]
