"""The whole load against a real broker, started and spoken to as the runner does it."""

import itertools
import json
import signal
import urllib.parse
import urllib.request
from collections import Counter, defaultdict

import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

from tests.loadtest.conftest import PARTITIONS

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


def described(kafka, group):
    admin = AdminClient({"bootstrap.servers": kafka})
    return admin.describe_consumer_groups([group])[group].result()


def members_left(kafka, group):
    """Return the client ids that the broker still has in the group."""
    return sorted(member.client_id for member in described(kafka, group).members)


def test_a_load_writes_its_history_and_its_statistics_until_ctrl_c(locust, arguments, group, kafka):
    static, dynamic = f"{group}-static-1", f"{group}-dynamic-1"
    child = locust("--headless", *arguments, "--produce-rate", "40", "--users", "9")
    before = child.wait_joined()
    assert "(5 total users)" in child.output, "four members and a producer"
    for name in (static, dynamic):  # a rebalance for each kind, and a restart of one
        child.ask("stop", member=name)
        child.ask("start", member=name)
        child.wait_joined()
    child.wait_for(lambda: {"committed"} <= {line["event"] for line in child.history()})
    child.wait_for(lambda: len(processed(child.history())) == PARTITIONS)

    assert child.end(signal.SIGINT) == 0, child.output
    assert members_left(kafka, group) == [f"{group}-static-0", f"{group}-static-1"]
    check_history(child.history(), before, static)
    entries = {(row["method"], row["name"]) for row in json.loads(child.stats_file.read_text())}
    assert entries >= {
        *itertools.product(("STATIC", "DYNAMIC"), ("join", "rebalance", "poll", "commit")),
        ("PRODUCER", "produce"),
    }


def processed(history):
    """Return the offsets that each group's members processed of each partition."""
    offsets = defaultdict(set)
    for line in history:
        for partition, ranges in line.get("ranges", {}).items():
            each = (range(first, last + 1) for first, last in ranges)
            offsets[line["group"], partition].update(*each)
    return offsets


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
    created = Counter(line["member"] for line in history if line["event"] == "created")
    assert created[bounced] == 2
    assert created.keys() == {*rows, "producer-0"}
    produced = [line for line in history if line["event"] == "produced"]
    assert sum(line["records"] for line in produced) > 40
    assert not any(line["errors"] for line in produced)
    assert [line["max_ms"] for line in history if line["event"] == "hub_lag"]
    assert any(line["offsets"] for line in history if line["event"] == "committed")
    assert all(found == set(range(max(found) + 1)) for found in processed(history).values()), (
        "none is lost"
    )
    assert not [line for line in history if line["event"] == "misnumbered"]
    # A commit may meet a rebalance, which is an error to the client and none to anybody else.
    errors = [line["error"] for line in history if line["event"] == "error"]
    assert not [error for error in errors if not error.startswith("commit: ")]
    assert not [line for line in history if line["event"] in ("fenced", "lost")]


def test_the_end_waits_for_a_close_that_is_under_way(locust, arguments, group, kafka):
    child = locust("--headless", *arguments)
    preparing = ConsumerGroupState.PREPARING_REBALANCING
    child.wait_for(lambda: described(kafka, group).state is preparing)
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


def test_the_web_interface_brings_identities_back(locust, arguments, group, kafka, port):
    child = locust(*arguments, "--web-port", str(port))
    assert {row["state"] for row in child.ask("members")} == {"stopped"}

    def swarm(users):
        form = urllib.parse.urlencode({"user_count": users, "spawn_rate": 20}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/swarm", form) as reply:
            return json.load(reply)

    def stopped():
        return [row["name"] for row in child.ask("members") if row["state"] == "stopped"]

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
        assert '"num_users": 4' in page.read().decode()
    assert swarm(4)["success"]
    before = child.wait_joined()
    assert swarm(1)["success"]
    child.wait_for(lambda: len(stopped()) == 3)
    idle = stopped()[0]
    refused = child.reply_to("start", member=idle)
    assert refused["error"] == f"no user runs {idle!r} now; start more users"
    assert "no member is called 'nobody'" in child.reply_to("stop", member="nobody")["error"]
    refused = swarm(5)
    assert not refused["success"]
    assert "the load has 4 members and producers, so at most 4 users" in refused["message"]
    assert swarm(4)["success"]
    after = child.wait_joined()
    assert after.keys() == before.keys()
    assert child.end(signal.SIGTERM) == 0, child.output
    assert members_left(kafka, group) == [f"{group}-static-0", f"{group}-static-1"]
    created = [line["instance_id"] for line in child.history() if line["event"] == "created"]
    assert {name for name in created if name} == {f"{group}-static-0", f"{group}-static-1"}
