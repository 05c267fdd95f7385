"""What a producer writes: to which partitions, with which numbers, and under which name."""

import ctypes
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import confluent_kafka
import gevent
import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from gevent.event import Event

import loadtest.producer as module
from loadtest.configs import ProducerConfig
from loadtest.history import History
from loadtest.pool import BlockingCalls
from loadtest.processed import Processed
from loadtest.producer import PacedProducer
from tests.reference_coordinator.server.serving import serving

WITHIN_S = 60


def until(producer, condition):
    with gevent.Timeout(WITHIN_S):
        while not condition():
            producer.poll_once()
            gevent.sleep(0.01)


def made(bootstrap, run_blocking=lambda call: call()):
    config = ProducerConfig("producer-0", "orders", 200.0)
    producer = PacedProducer(config, bootstrap, History(None), lambda *_, **__: None, run_blocking)
    producer.open()
    return producer


def test_records_are_spread_evenly_and_numbered_in_each_partition(monkeypatch):
    """A reader sees all numbers of a producer that restarts, whose topic grows meanwhile."""
    monkeypatch.setattr(module, "PARTITIONS_EVERY_S", 0.1)
    noted = []
    processed = Processed(lambda event, **fields: noted.append((event, fields)))
    with serving() as at:
        admin, topics = AdminClient({"bootstrap.servers": at.bootstrap}), at.cluster.topics
        admin.create_topics([NewTopic("orders", 3, 1)])["orders"].result(WITHIN_S)
        producer = made(at.bootstrap, BlockingCalls(1))
        counts = lambda: [len(one.offsets) for one in topics["orders"]]
        until(producer, lambda: sum(counts()) > 50)
        producer.close()
        assert max(counts()) - min(counts()) <= 1
        admin.create_partitions([NewPartitions("orders", 4)])["orders"].result(WITHIN_S)
        producer.open()
        until(producer, lambda: counts()[3] > 5)
        producer.close()
        reader = Consumer({"bootstrap.servers": at.bootstrap, "group.id": "g"})
        reader.assign([TopicPartition("orders", number, 0) for number in range(4)])
        values = defaultdict(list)
        while sum(map(len, values.values())) < sum(counts()):
            for one in reader.consume(100, 1.0):
                values[one.partition()].append(one.value())
                where = one.topic(), one.partition()
                processed.record(where, one.offset(), one.value(), 1.0)
        reader.close()
    processed.write()
    ranges = {f"orders-{n}": [[0, len(found) - 1]] for n, found in values.items()}
    assert noted == [("processed", {"at_ms": 1.0, "ranges": ranges})]
    names = {value.split()[0] for found in values.values() for value in found}
    assert len(names) == 2
    assert {name.partition(b"@")[0] for name in names} == {b"producer-0"}


class Stub:
    """In the place of librdkafka's producer: it stores what it gets, unless that is to fail."""

    stores = True

    def __init__(self, _settings):
        self.sent = []

    def list_topics(self, topic, _timeout):
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions={0: None})})

    def produce(self, _topic, value, _key, _partition, *, on_delivery):
        self.sent.append(value.split())
        message = SimpleNamespace(latency=lambda: 0.001)
        on_delivery(None if self.stores else KafkaError(KafkaError._MSG_TIMED_OUT), message)

    def poll(self, _timeout=0):
        pass

    def flush(self, _timeout):
        return 0

    close = poll


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setattr(module, "KafkaProducer", Stub)


@pytest.mark.usefixtures("stub")
def test_after_a_record_that_was_not_stored_it_counts_anew():
    producer = made("127.0.0.1:1")
    client = producer._producer
    until(producer, lambda: len(client.sent) > 2)
    client.stores = False
    before = len(client.sent)
    until(producer, lambda: len(client.sent) > before)
    client.stores = True
    failed = len(client.sent)
    until(producer, lambda: len(client.sent) > failed)
    producer.close()
    first, then = client.sent[0], client.sent[failed]
    assert (first[1], then[1]) == ("1", "1")
    assert first[0] != then[0]


@pytest.fixture
def fail_fatally():
    """Have librdkafka raise a fatal error in a producer, by its function for tests of that."""
    [path] = Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka*")
    library = ctypes.CDLL(str(path))

    def fail(client):
        handle = ctypes.c_void_p.from_address(id(client) + object.__basicsize__)
        code = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert library.rd_kafka_test_fatal_error(handle, code, b"lost") == 0

    return fail


def test_after_a_fatal_error_it_is_made_anew(fail_fatally, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_S", 0.1)
    producer = made("127.0.0.1:1")
    until(producer, lambda: producer._numbers[0] > 2)
    first, name = producer._producer, producer._calls_itself
    fail_fatally(first)
    until(producer, lambda: producer._producer is not first)
    assert producer._calls_itself != name
    fail_fatally(producer._producer)
    producer.close()
    assert producer._producer is None


@pytest.mark.usefixtures("stub")
def test_closed_while_it_is_made_anew_it_stays_closed():
    flushing, flushed = Event(), Event()

    def run_blocking(call):
        if flushing.is_set():
            flushed.wait()
        return call()

    producer = made("127.0.0.1:1", run_blocking)
    flushing.set()
    anew = gevent.spawn(producer._open_anew)
    gevent.sleep(0)
    closing = gevent.spawn(producer.close)
    gevent.sleep(0)
    flushed.set()
    gevent.joinall([anew, closing], timeout=WITHIN_S, raise_error=True)
    assert producer._producer is None
