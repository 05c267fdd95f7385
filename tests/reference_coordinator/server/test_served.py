"""What clients see of served brokers: order, failover, what is lost, what a log holds."""

import re
import socket
import struct
import time
from contextlib import closing, suppress
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.errors import ErrorCode

from chaos.cluster_view import ClusterView
from chaos.errors import ChaosError
from chaos.kafka_client import kafka_python
from chaos.waiting import until
from kafka_protocol.coordinator_lines import JAVA, LineParser
from kafka_protocol.errors import Error
from kafka_protocol.frames import KEYS, written
from kafka_protocol.join_reason import JoinReason
from kafka_protocol.kio_bodies import to_entity
from kafka_protocol.log_line import NUMBERED
from kafka_protocol.offsets_topic import OFFSETS_TOPIC, partition_of
from kafka_protocol.schemas import schema_of
from loadtest.wire import Connection, negotiate
from reference_coordinator.driving.client import METADATA
from reference_coordinator.server.topic_apis import fetch, produce
from reference_coordinator.server.topics import Partition
from tests.reference_coordinator.server.serving import serving

GROUP = "g"
CONFIG = {
    "group.initial.rebalance.delay.ms": 100, "group.min.session.timeout.ms": 100,
    "offsets.topic.num.partitions": 6, "broker.session.timeout.ms": 300,
}  # fmt: skip
WITHIN_S = 20


@pytest.fixture
def at(tmp_path):
    with serving(tmp_path, config=CONFIG) as running:
        yield running


def connected(at, broker, name="c"):
    return closing(Connection("127.0.0.1", at.ports[broker - 1], name))


def join(instance="i", session_ms=30_000, **more):
    protocols = [{"name": "range", "metadata": METADATA}]
    return {"groupId": GROUP, "sessionTimeoutMs": session_ms, "rebalanceTimeoutMs": 60_000,
            "memberId": "", "groupInstanceId": instance, "protocolType": "consumer",
            "protocols": protocols, "reason": None, **more}  # fmt: skip


def sync(joined, *shares):
    return {"groupId": GROUP, "generationId": joined["generationId"],
            "memberId": joined["memberId"], "groupInstanceId": "i", "protocolType": "consumer",
            "protocolName": "range",
            "assignments": [{"memberId": m, "assignment": "AAEAAAAA"} for m in shares]}  # fmt: skip


def heartbeat(joined):
    return {"groupId": GROUP, "generationId": joined["generationId"],
            "memberId": joined["memberId"], "groupInstanceId": "i"}  # fmt: skip


def coordinator(at):
    with connected(at, 1, "scout") as scout:
        found = scout.ask("FIND_COORDINATOR", 3, {"key": GROUP, "keyType": 0})
    return found["nodeId"]


def formed(at):
    """Form a group of one static member; return it, and its coordinator."""
    broker = coordinator(at)
    with connected(at, broker) as member:
        joined = member.ask("JOIN_GROUP", 9, join())
        member.ask("SYNC_GROUP", 5, sync(joined, joined["memberId"]))
    return joined, broker


def another(at, broker, joined):
    """Wait until another broker serves the group; return it, and its answer to a heartbeat."""
    others = [one for one in (1, 2, 3) if one != broker]
    until_s = time.monotonic() + WITHIN_S
    while time.monotonic() < until_s:
        for one in others:
            with connected(at, one) as member:
                error = member.ask("HEARTBEAT", 4, heartbeat(joined))["errorCode"]
            if error != Error.NOT_COORDINATOR:
                return one, error
    raise AssertionError("nobody took the group over")


def test_the_coordinator_leads_the_group_s_partition_by_the_hash_of_its_name(at):
    broker = coordinator(at)
    view = ClusterView(at.bootstrap)
    assert view.leader(OFFSETS_TOPIC, partition_of(GROUP, 6)) == broker == view.coordinator(GROUP)
    assert len(set(view.offsets_leaders())) == 3


def test_a_request_waits_for_the_answer_to_the_one_before_it_on_its_connection(at):
    with connected(at, coordinator(at)) as member:
        first = member.send("JOIN_GROUP", 9, join())
        second = member.send("HEARTBEAT", 4, heartbeat({"generationId": 1, "memberId": "x"}))
        assert member.wait(second)["errorCode"] == Error.FENCED_INSTANCE_ID
        assert first.response["errorCode"] == Error.NONE
        assert first.response["generationId"] == 1


def test_what_was_stored_outlives_a_killed_coordinator(at):
    joined, broker = formed(at)
    at.act("kill", broker)
    with pytest.raises(Exception, match="no broker answers"):
        Connection("127.0.0.1", at.ports[broker - 1], "c")
    new, error = another(at, broker, joined)
    assert error == Error.NONE
    at.act("start", broker)
    assert ClusterView(at.bootstrap).coordinator(GROUP) == new, "it leads nothing of what it led"


def test_a_coordinator_that_is_back_before_it_is_missed_leads_nothing_either():
    with serving(config=CONFIG | {"broker.session.timeout.ms": 600_000}) as at:
        joined, broker = formed(at)
        at.act("kill", broker)
        at.act("start", broker)
        assert another(at, broker, joined)[1] == Error.NONE


def test_a_single_broker_loads_its_groups_again():
    with serving(config=CONFIG, brokers=1) as at:
        joined, broker = formed(at)
        at.act("stop", broker)
        at.act("start", broker)
        with connected(at, broker) as member:
            assert member.ask("HEARTBEAT", 4, heartbeat(joined))["errorCode"] == Error.NONE


def test_what_was_not_stored_is_lost_with_a_killed_coordinator(at):
    broker = coordinator(at)
    with connected(at, broker) as member:
        joined = member.ask("JOIN_GROUP", 9, join())
    at.act("kill", broker)
    _, error = another(at, broker, joined)
    assert error == Error.UNKNOWN_MEMBER_ID


def test_one_that_stops_tells_who_waits_and_says_goodbye(at, tmp_path):
    _, broker = formed(at)
    with connected(at, broker) as other:
        waits = other.send("JOIN_GROUP", 9, join("j"))
        members = lambda: len(at.cluster.brokers[broker].groups[GROUP].group.members)
        assert until(lambda: at.ask(members) == 2, WITHIN_S)
        at.act("stop", broker)
        assert other.wait(waits)["errorCode"] == Error.NOT_COORDINATOR
    *_, last = (tmp_path / str(broker) / "group.log").read_text().splitlines()
    assert last.endswith(JAVA.last_line_end)


def test_a_paused_coordinator_answers_nothing_and_learns_that_it_was_replaced(at):
    joined, broker = formed(at)
    with connected(at, broker) as member:
        at.act("pause", broker)
        waits = member.send("HEARTBEAT", 4, heartbeat(joined))
        _, error = another(at, broker, joined)
        assert error == Error.NONE
        assert waits.response is None
        at.act("resume", broker)
        assert member.wait(waits)["errorCode"] == Error.NOT_COORDINATOR


def test_a_coordinator_moves_to_its_preferred_broker(at):
    joined, broker = formed(at)
    to = broker % 3 + 1
    assert ClusterView(at.bootstrap).move_coordinator(GROUP, to) == to
    assert another(at, broker, joined) == (to, Error.NONE)


def test_a_coordinator_that_moves_may_lose_its_replica(at):
    _, broker = formed(at)
    view = ClusterView(at.bootstrap)
    to = view.move_coordinator(GROUP, None, keeps_replica=False)
    assert to != broker
    with pytest.raises(ChaosError, match="cannot move to"):
        view.move_coordinator(GROUP, broker)


def test_an_empty_fetch_waits_as_long_as_it_is_told(at):
    with kafka_python(at.bootstrap, {}, "t") as admin:
        admin.create_topics({"t": {"num_partitions": 1}})
    part = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1}
    asked = SimpleNamespace(request={
        "topics": [{"topic": "t", "partitions": [part]}], "maxWaitMs": 250,
    })  # fmt: skip
    broker = at.cluster.brokers[ClusterView(at.bootstrap).leader("t", 0)]
    begun_s = time.monotonic()
    found = at.do(fetch(broker, asked))
    assert time.monotonic() - begun_s >= 0.25
    assert found["responses"][0]["partitions"][0]["records"] == b""


def test_records_come_back_in_order_and_commits_are_remembered(at):
    admin, settings = AdminClient({"bootstrap.servers": at.bootstrap}), {
        "bootstrap.servers": at.bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }  # fmt: skip
    admin.create_topics([NewTopic("t", 1, 3)])["t"].result(WITHIN_S)
    producer = Producer(
        {"bootstrap.servers": at.bootstrap, "linger.ms": 0, "enable.idempotence": True}
    )
    for number in range(7):
        producer.produce("t", str(number))
        producer.flush(WITHIN_S)
    seen = []
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(["t"])
        while len(seen) < 7:
            seen += consumer.consume(1, WITHIN_S)
        consumer.commit(asynchronous=False)
    assert [(one.offset(), one.value()) for one in seen] == [(n, b"%d" % n) for n in range(7)]
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(["t"])
        while not consumer.assignment():
            consumer.poll(0.1)
        assert [one.offset for one in consumer.committed(consumer.assignment())] == [7]


def batch(count=1, form=2, length=49, producer=-1, epoch=-1, sequence=-1):
    """A batch of format 2 without records in it, of 61 bytes; its length counts from byte 12 on."""
    head = struct.pack(">qiibxxxxxxi", 0, length, -1, form, count - 1).ljust(43, b"\0")
    return head + struct.pack(">qhii", producer, epoch, sequence, 0)


def producing(acks, records):
    part = {"index": 0, "records": records}
    return {"transactionalId": None, "acks": acks, "timeoutMs": 1000,
            "topicData": [{"name": "t", "partitionData": [part]}]}  # fmt: skip


def test_what_is_no_batch_is_refused_and_without_acks_ends_the_connection_with_a_line(at, capfd):
    """CORRUPT_MESSAGE, by `DefaultRecordBatch`; `KafkaApis` closes where it answers nothing."""
    with kafka_python(at.bootstrap, {}, "t") as admin:
        admin.create_topics({"t": {"num_partitions": 1}})
    leader = at.cluster.brokers[ClusterView(at.bootstrap).leader("t", 0)]
    garbage = (None, b"", b"x", bytes(range(200)), batch(form=1), batch(length=48), batch(0))
    corrupt = ErrorCode.corrupt_message.value
    for records, expected in (
        *((no, (corrupt, -1)) for no in garbage), (batch(2), (0, 0)), (batch(), (0, 2))
    ):  # fmt: skip
        asked = SimpleNamespace(request=producing(1, records))
        [topic] = at.do(produce(leader, asked))["responses"]
        [answer] = topic["partitionResponses"]
        assert (answer["errorCode"], answer["baseOffset"]) == expected, records
    schema = schema_of(KEYS["PRODUCE"], 9)
    header = schema.__header_schema__(
        request_api_key=KEYS["PRODUCE"], request_api_version=9, correlation_id=1, client_id="c"
    )
    with socket.create_connection(("127.0.0.1", leader.address["port"]), WITHIN_S) as wire:
        wire.sendall(written(header, to_entity(schema, producing(0, b"x"))))
        with suppress(ConnectionResetError):
            assert wire.recv(1) == b""
    [line] = capfd.readouterr().err.splitlines()
    assert line.endswith("Produce with acks=0 of c failed (corrupt_message)")


def test_a_batch_that_an_idempotent_producer_sends_again_is_stored_once():
    """KIP-98: a broker knows a batch by its producer's id and epoch, and its first sequence."""
    partition = Partition((1,))
    sent = [batch(2, producer=7, epoch=0, sequence=n) for n in (0, 2)]
    again = [batch(2, producer=8, epoch=0, sequence=0), batch(2, producer=7, epoch=1, sequence=0)]
    assert [partition.append(one) for one in (*sent, *sent, *again)] == [0, 2, 0, 2, 4, 6]
    assert [partition.append(batch()) for _ in range(2)] == [8, 9], "it has no sequence"


def test_names_with_line_ends_begin_no_line(at, tmp_path):
    group = "a\nb"
    with connected(at, coordinator(at), "c\r\nd") as member:
        broker = member.ask("FIND_COORDINATOR", 3, {"key": group, "keyType": 0})["nodeId"]
    with connected(at, broker, "c\r\nd") as member:
        joined = member.ask("JOIN_GROUP", 3, join(groupId=group))
    assert joined["errorCode"] == Error.NONE
    lines = (tmp_path / str(broker) / "group.log").read_text().splitlines()
    assert sum(r"group a\nb" in line for line in lines) >= 2
    assert all(re.match(NUMBERED, line) for line in lines)


def test_every_line_of_a_log_is_one_that_brokers_write(at, tmp_path):
    joined, broker = formed(at)
    at.act("kill", broker)
    another(at, broker, joined)
    at.act("start", broker)
    for one in (1, 2, 3):
        at.act("stop", one)
    known = LineParser(JAVA)
    for one in (1, 2, 3):
        expected = 0
        for line in (tmp_path / str(one) / "group.log").read_text().splitlines():
            number, _, _, _, body, logger = re.match(NUMBERED, line).groups()
            expected = 1 if number == "1" else expected + 1
            assert int(number) == expected
            if not body.startswith("Completed request:"):
                assert known.parsed(str(one), logger, body).template is not None, line


def test_a_join_reason_has_a_version_of_its_own(tmp_path):
    """KIP-423: v10 is offered by its profile alone; v9 is answered as ever, and gives no reason."""
    for profile, newest in (("4.3", 9), ("kip-423", 10)):
        with serving(tmp_path / profile, brokers=1, profile=profile, config=CONFIG) as at:
            with connected(at, 1) as scout:
                assert negotiate(scout, ["JOIN_GROUP"]) == {"JOIN_GROUP": (0, newest)}
                joined = formed(at)[0]
            back = join(memberId=joined["memberId"], reason="I was out of touch")
            again = []
            for reason in JoinReason.RESTART, JoinReason.UPGRADE:
                with connected(at, 1) as leader:
                    body = {**back, "joinReason": reason}
                    again.append(leader.ask("JOIN_GROUP", newest, body))
                    if again[-1]["generationId"] > joined["generationId"]:
                        leader.ask("SYNC_GROUP", 5, sync(again[-1], joined["memberId"]))
        since = [one["generationId"] - joined["generationId"] for one in again]
        skips = [one["skipAssignment"] for one in again]
        log = (tmp_path / profile / "1" / "group.log").read_text()
        assert ("client reason: UPGRADE" in log) == (newest == 10)
        if newest == 10:
            assert (since, skips) == ([0, 1], [True, False])
        else:
            assert (since, skips) == ([1, 2], [False, False])
