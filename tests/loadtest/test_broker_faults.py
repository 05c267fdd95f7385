"""What the load does while brokers are gone: it goes on, and says so in few words."""

import json
import os
import threading
import time
from collections import Counter

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clusters.process import ProcessCluster

pytestmark = pytest.mark.cluster

PARTITIONS = 8
WORST_LAG_MS = 1_500
"""Brokers that start take both cores of a small machine; a blocking call would take seconds."""
LOOK_S = 0.05


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three brokers; it takes them 9 s to replace one, which is longer than a session."""
    folder = tmp_path_factory.mktemp("three")
    settings = {"group.initial.rebalance.delay.ms": "500"}
    with ProcessCluster(f"loadtest3-{os.getpid()}", folder, brokers=3, config=settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for created in admin.create_topics([NewTopic("orders", PARTITIONS, 3)]).values():
            created.result()
        yield cluster


@pytest.fixture
def held_up():
    """Tell for how long, in ms and at most, the machine held this process up, too."""
    over, worst_s = threading.Event(), [0.0]

    def look():
        while not over.is_set():
            began_s = time.monotonic()
            over.wait(LOOK_S)
            worst_s[0] = max(worst_s[0], time.monotonic() - began_s - LOOK_S)

    thread = threading.Thread(target=look)
    thread.start()
    yield lambda: worst_s[0] * 1_000
    over.set()
    thread.join()


def coordinator_of(cluster, group):
    """The broker whose log mentions the group; it has not moved yet."""
    mention = f"group {group} "
    return next(each.id for each in cluster.brokers if mention in each.group_log.read_text())


@pytest.mark.parametrize(("breaks", "heals"), [("kill", "start"), ("pause", "resume")])
def test_members_and_producers_outlive_their_coordinator(locust, cluster, held_up, breaks, heals):
    group = breaks
    load = locust(
        *("--headless", "--bootstrap", cluster.bootstrap, "--group", group),
        *("--static-members", "3", "--dynamic-members", "3", "--session-timeout", "6s"),
        *("--produce-rate", "200"),
    )
    before = load.wait_joined()

    def since(began_ms, *events):
        return [
            line for line in load.history() if line["at_ms"] > began_ms and line["event"] in events
        ]

    def everybody_has(event, began_ms):
        return lambda: {line["member"] for line in since(began_ms, event)} >= before.keys()

    load.wait_for(everybody_has("committed", 0))
    node = coordinator_of(cluster, group)
    broken_ms = time.time() * 1000
    cluster.act(breaks, node)
    try:
        # Nobody hears a coordinator for a session, since it takes the brokers longer to replace it.
        load.wait_for(everybody_has("lost", broken_ms))
    finally:
        cluster.act(heals, node)
    healed_ms = time.time() * 1000
    after = load.wait_joined()
    load.wait_for(everybody_has("committed", healed_ms))
    load.wait_for(lambda: sum(line["records"] for line in since(healed_ms, "produced")) > 200)

    assert all(after[name]["joins"] > before[name]["joins"] for name in before)
    lag_ms = max(line["max_ms"] for line in since(broken_ms, "hub_lag"))
    assert lag_ms < WORST_LAG_MS + held_up()
    seconds = (time.time() * 1000 - broken_ms) / 1000
    errors = Counter(line["member"] for line in since(broken_ms, "error"))
    assert max(errors.values(), default=0) < 3 * seconds, json.dumps(errors)
    load.ask("quit")
    assert load.process.wait(timeout=60) == 0, load.output
    assert "Traceback" not in load.output
