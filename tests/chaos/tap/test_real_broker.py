"""What the tap writes of requests is what the broker's own log has of them."""

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clusters.process import ProcessCluster
from chaos.tap import process as tap
from kafka_protocol import request_log
from kafka_protocol.errors import Error
from tests.chaos.fakes import until
from tests.chaos.tap.conftest import CORNERS

pytestmark = pytest.mark.cluster

MAY_DIFFER = {
    "totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs",
    "sendTimeMs", "connection",
}  # fmt: skip
"""Times, and the number at the end of the connection's name."""
SCRIPTS = ("fencing", "returning", "removal", "full", "mixed")
"""The quick ones of `protocol-corners`."""


@pytest.fixture(scope="module", params=["4.3.0", "3.9.1"])
def both_logs(request, tmp_path_factory) -> tuple[list[str], list[str]]:
    """The bodies of the request lines of one broker: the tap's, and the broker's own."""
    folder, release = tmp_path_factory.mktemp("tap"), request.param
    with ExitStack() as stack:
        if release == "4.3.0":
            brokers = request.getfixturevalue("secured")
        else:
            brokers = ProcessCluster(
                f"tap-{release}", folder / "brokers", version=release, coordinator="scala",
                brokers=1, config=CORNERS,
            )  # fmt: skip
            stack.enter_context(brokers)
        [broker] = brokers.brokers
        before = bodies(broker.group_log)
        settings = tap.TapSettings({1: broker.address}, folder / "tap")
        with tap.running(settings) as running:
            admin = AdminClient({"bootstrap.servers": running.bootstrap})
            admin.create_topics([NewTopic("orders", 4, 1)])["orders"].result()
            consume(running.bootstrap)
            script = [sys.executable, "-m", "loadtest.wire_scripts", "--bootstrap"]
            subprocess.run([*script, running.bootstrap, *SCRIPTS], timeout=300, check=False)
        tapped = bodies(folder / "tap" / "1" / "group.log")

        def own() -> list[str]:
            """What came since, without the connections of others, whose ends may be logged late."""
            others = {request_log.parsed(line)["connection"] for line in before}
            since = bodies(broker.group_log)[len(before) :]
            return [line for line in since if request_log.parsed(line)["connection"] not in others]

        until(lambda: len(own()) >= len(tapped))  # it answers before it logs
        return tapped, own()


def consume(bootstrap: str) -> None:
    """Produce, consume and commit through the tap, as static and dynamic members."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(100):
        producer.produce("orders", b"order")
    assert producer.flush(30) == 0
    common = {
        "bootstrap.servers": bootstrap, "group.id": "café ☕", "auto.offset.reset": "earliest",
        "session.timeout.ms": 6_000, "heartbeat.interval.ms": 300,
    }  # fmt: skip
    consumers = [
        Consumer({**common, "client.id": "static", "group.instance.id": "static-1"}),
        Consumer({**common, "client.id": "dynamic"}),
    ]
    for consumer in consumers:
        consumer.subscribe(["orders"])
    got = []

    def all_have_consumed() -> bool:
        for consumer in consumers:
            got.extend(consumer.consume(50, 0.1))
        return len(got) >= 100 and all(consumer.assignment() for consumer in consumers)

    until(all_have_consumed, 240)
    for consumer in consumers:
        owned = [TopicPartition(one.topic, one.partition, 1) for one in consumer.assignment()]
        consumer.commit(offsets=owned, asynchronous=False)
        consumer.close()


def bodies(log: Path) -> list[str]:
    found = []
    for line in log.read_text().splitlines():
        _, mark, rest = line.partition(request_log.COMPLETED)
        if mark:
            found.append(mark + rest.rpartition(" (")[0])
    return found


def by_request(lines: list[str]) -> dict[tuple[str, int, int], dict]:
    """Return requests by their connection, number and how often both came before.

    A port of the client may be used again.
    """
    found: dict[tuple[str, int, int], dict] = {}
    before: Counter[tuple[str, int]] = Counter()
    for line in lines:
        content = request_log.parsed(line)
        ends = "-".join(content["connection"].split("-")[:2])
        request = ends, content["requestHeader"]["correlationId"]
        found[*request, before[request]] = content
        before[request] += 1
    return found


def test_every_request_is_there_once(both_logs):
    tapped, own = map(by_request, both_logs)
    assert tapped.keys() == own.keys()
    apis = {content["requestHeader"]["requestApiKeyName"] for content in tapped.values()}
    assert apis >= {"JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT",
                    "OFFSET_FETCH"}  # fmt: skip
    errors = Counter(content["response"].get("errorCode") for content in tapped.values())
    assert errors.keys() >= {Error.NONE, Error.MEMBER_ID_REQUIRED, Error.UNKNOWN_MEMBER_ID,
                             Error.FENCED_INSTANCE_ID, Error.REBALANCE_IN_PROGRESS,
                             Error.GROUP_MAX_SIZE_REACHED}  # fmt: skip
    assert len(tapped) > 100


def test_requests_and_answers_are_the_same_field_by_field(both_logs):
    tapped, own = map(by_request, both_logs)
    for key, content in tapped.items():
        logged = own[key]
        assert list(content) == list(logged)
        same = content.keys() - MAY_DIFFER
        assert json.dumps({name: content[name] for name in content if name in same}) == json.dumps(
            {name: logged[name] for name in logged if name in same}
        )


def test_lines_are_as_kafka_prints_them(both_logs):
    tapped, own = both_logs
    for lines in tapped, own:
        assert [line for line in lines if request_log.typed_of(line) is None] == []


def test_the_tap_was_busy_no_shorter_than_the_broker(both_logs):
    """The broker's time is part of the tap's, as far as clocks are read to the microsecond."""
    tapped, own = map(by_request, both_logs)
    for key, content in tapped.items():
        at_broker = own[key]["totalTimeMs"] - own[key]["sendTimeMs"]
        assert content["totalTimeMs"] > at_broker - 1.0
