"""What the load does while brokers are gone: it goes on, and says so in few words."""

import json
import threading
import time
from collections import Counter

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.cluster_view import ClusterView
from tests.chaos.clusters.clients import eventually
from tests.loadtest.conftest import PARTITIONS

pytestmark = pytest.mark.cluster

WORST_LAG_MS = 1_500
"""Brokers that start take both cores of a small machine; a blocking call would take seconds."""
LOOK_S = 0.05
SESSION = "1500ms"
"""Half as long as it takes the brokers to replace one."""


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


def test_members_and_producers_outlive_their_coordinator(locust, brokers, held_up):
    """It is killed first; then the one that followed it is paused."""
    view, whole = ClusterView(brokers.bootstrap), {1, 2, 3}
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
    admin.create_topics([NewTopic("loaded", PARTITIONS, 3)])["loaded"].result()
    load = locust(
        *("--headless", "--bootstrap", brokers.bootstrap, "--group", "outlives"),
        *("--static-members", "3", "--dynamic-members", "3", "--session-timeout", SESSION),
        *("--topic", "loaded", "--produce-rate", "200"),
    )

    def since(began_ms, *events):
        return [
            line for line in load.history() if line["at_ms"] > began_ms and line["event"] in events
        ]

    def everybody_has(event, began_ms):
        return lambda: {line["member"] for line in since(began_ms, event)} >= before.keys()

    def produced(began_ms):
        return lambda: sum(line["records"] for line in since(began_ms, "produced")) > 200

    for breaks, heals in (("kill", "start"), ("pause", "resume")):
        before = load.wait_joined()
        load.wait_for(everybody_has("committed", 0))
        node = view.coordinator("outlives")
        broken_ms = time.time() * 1000
        brokers.act(breaks, node)
        try:
            # Nobody hears a coordinator for a session: it takes the brokers longer to replace it.
            load.wait_for(everybody_has("lost", broken_ms))
        finally:
            brokers.act(heals, node)
        healed_ms = time.time() * 1000
        after = load.wait_joined()
        load.wait_for(everybody_has("committed", healed_ms))
        load.wait_for(produced(healed_ms))

        assert all(after[name]["joins"] > before[name]["joins"] for name in before)
        lag_ms = max(line["max_ms"] for line in since(broken_ms, "hub_lag"))
        assert lag_ms < WORST_LAG_MS + held_up()
        seconds = (time.time() * 1000 - broken_ms) / 1000
        errors = Counter(line["member"] for line in since(broken_ms, "error"))
        assert max(errors.values(), default=0) < 3 * seconds, json.dumps(errors)
    load.ask("quit")
    assert load.process.wait(timeout=60) == 0, load.output
    assert "Traceback" not in load.output
    for broker in brokers.brokers:
        eventually(lambda at=broker.address: view.in_sync(at) == whole, "brokers in sync")
