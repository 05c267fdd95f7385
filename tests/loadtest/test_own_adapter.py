"""The adapter of librdkafka as a program, against the brokers that librdkafka itself simulates."""

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from contextlib import contextmanager

import pytest

from loadtest.members.program import PACKAGES

ADAPTERS = PACKAGES / "clients"
MEMBER = ADAPTERS / "confluent-kafka/member.py"
RECORDS = 1_000
BROKER = f"""
from confluent_kafka import Producer
producer = Producer({{"test.mock.num.brokers": 1}})
(broker,) = producer.list_topics("orders", timeout=60).brokers.values()
for number in range({RECORDS}):
    producer.produce("orders", str(number))
producer.flush()
print(f"{{broker.host}}:{{broker.port}}", flush=True)
input()
"""
GIVEN = {
    "BOOTSTRAP": "127.0.0.1:1",
    "GROUP": "g",
    "CLIENT_ID": "m",
    "INSTANCE_ID": "",
    "TOPICS": "orders",
    "ASSIGNOR": "range",
    "SESSION_TIMEOUT_MS": "600000",
    "HEARTBEAT_INTERVAL_MS": "500",
    "MAX_POLL_INTERVAL_MS": "600000",
    "COMMIT_INTERVAL_MS": "100",
    "METADATA_MAX_AGE_MS": "300000",
}
UNANSWERED = """
import importlib.util, sys
from confluent_kafka import TopicPartition
specification = importlib.util.spec_from_file_location("member", sys.argv[1])
member = importlib.util.module_from_spec(specification)
specification.loader.exec_module(member)
commits = member.Commits()
consumer = member.subscribed(commits)
consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=True)
commits.waits = True
member.close(consumer, commits)
"""


@contextmanager
def started(*words, **given):
    """A process, which is gone afterwards."""
    environment = {f"GROUPQUAKE_{name}": value for name, value in {**GIVEN, **given}.items()}
    process = subprocess.Popen(
        [sys.executable, *words],
        env={**os.environ, **environment, "PYTHONPATH": str(ADAPTERS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def broker():
    """The address of a broker with records."""
    with started("-c", BROKER) as process:
        yield process.stdout.readline().decode().strip()


def test_records_are_printed_as_ranges_of_offsets_before_their_commit(broker):
    lines, consumed, committed = [], [], {}
    with started(MEMBER, BOOTSTRAP=broker) as process:
        for text in process.stdout:
            lines.append(line := json.loads(text))
            if line["name"] == "records_consumed":
                consumed.append(line)
                assert line["count"] == sum(one["count"] for one in line["partitions"])
            elif line["name"] == "offsets_committed":
                committed |= {one["partition"]: one["offset"] for one in line["offsets"]}
                assert sum(committed.values()) <= sum(line["count"] for line in consumed)
                if sum(committed.values()) == RECORDS:
                    process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert sum(line["count"] for line in consumed) == RECORDS
    offsets = defaultdict(list)
    for one in (one for line in consumed for one in line["partitions"]):
        offsets[one["topic"], one["partition"]] += range(one["minOffset"], one["maxOffset"] + 1)
    assert all(found == list(range(len(found))) for found in offsets.values()), "each once"
    assert {partition: len(found) for (_, partition), found in offsets.items()} == committed
    names = [line["name"] for line in lines if line["name"] not in ("records_consumed", "error")]
    assert names[:2] == ["startup_complete", "partitions_assigned"]
    assert names[-2:] == ["partitions_revoked", "shutdown_complete"]


def test_a_close_without_an_answer_to_a_commit_ends_as_a_crash():
    with started("-c", UNANSWERED, MEMBER) as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
        printed = process.stdout.read()
    assert json.loads(printed)["error"] == "no response to a commit within 5 s"
