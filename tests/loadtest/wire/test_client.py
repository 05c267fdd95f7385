"""The client of `client: wire`, given answers by a coordinator that the test plays."""

import threading
import time
from base64 import b64decode, b64encode
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from kafka_protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from kafka_protocol.errors import BrokerError, Error
from kafka_protocol.join_reason import JoinReason
from loadtest.configs import MemberConfig
from loadtest.wire import WireError
from loadtest.wire.client import GroupClient
from loadtest.wire.member import FencedError

TIMES = {
    "session_timeout_ms": 10_000, "heartbeat_interval_ms": 20,
    "max_poll_interval_ms": 60_000, "commit_interval_ms": 30,
}  # fmt: skip
CONFIG = MemberConfig("m", "g", "dynamic", None, ("orders",), "range", **TIMES)
STATIC = replace(CONFIG, kind="static", instance_id="i")
COOPERATIVE = replace(CONFIG, assignor="cooperative-sticky")
VERSIONS = dict.fromkeys(
    ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT", "OFFSET_FETCH"), 5
) | {"METADATA": 5}


def parts(*numbers):
    return {TopicPartition("orders", number) for number in numbers}


def blob(*numbers):
    return b64encode(Assignment(tuple(sorted(parts(*numbers)))).encode()).decode()


def joined(leader="other", **more):
    answer = {"errorCode": 0, "memberId": "id", "generationId": 1, "protocolName": "range"}
    return {**answer, "leader": leader, "members": [], **more}


def leading(**more):
    """The answer to the only member of a group."""
    metadata = b64encode(Subscription(("orders",)).encode()).decode()
    one = {"memberId": "id", "groupInstanceId": None, "metadata": metadata}
    return joined(leader="id", members=[one], **more)


def partitions(count, error=Error.NONE):
    return {"topics": [{"name": "orders", "errorCode": error, "partitions": [{}] * count}]}


def committed(error=Error.NONE):
    return {"topics": [{"name": "orders", "partitions": [{"errorCode": error}]}]}


def fetched(offset, error=Error.NONE):
    part = {"partitionIndex": 0, "committedOffset": offset, "errorCode": 0}
    topics = [] if error else [{"name": "orders", "partitions": [part]}]
    return {"errorCode": error, "topics": topics}


ANSWERS = {
    "JOIN_GROUP": joined(),
    "SYNC_GROUP": {"errorCode": 0, "assignment": blob(0)},
    "HEARTBEAT": {"errorCode": 0},
    "LEAVE_GROUP": {"errorCode": 0, "members": [{"errorCode": 0}]},
    "OFFSET_COMMIT": committed(),
    "OFFSET_FETCH": fetched(7),
    "METADATA": partitions(1),
}


@dataclass
class Broker:
    """Answers each request by the next of its script, or as always; an exception is raised."""

    scripts: dict = field(default_factory=dict)
    requests: list = field(default_factory=list)
    closed: int = 0

    def ask(self, api, _, body, __):
        self.requests.append((api, body))
        script = self.scripts.get(api)
        answer = script.pop(0) if script else ANSWERS[api]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.closed += 1

    def of(self, api):
        return [body for name, body in self.requests if name == api]


class OverError(Exception):
    """The test ends."""


class Seen:
    """What the client says, in order."""

    def __init__(self):
        self.events = []

    def __getattr__(self, name):
        return lambda *_, **__: None  # report, error, committed, not_committed

    def assigned(self, partitions, member_id):
        assert member_id == "id"
        self.events.append(("assigned", set(partitions)))

    def gave_up(self, event, partitions):
        self.events.append((event, set(partitions)))


@contextmanager
def running(config, broker, polls=lambda: True, **heard):
    """Run a client in a thread; it ends at its next wait. `heard` are what its listener does."""
    seen, over = Seen(), threading.Event()
    vars(seen).update(heard)

    def gate():
        if over.is_set():
            raise OverError

    client = GroupClient(config, "127.0.0.1:1", {}, seen, gate, polls)
    client._coordinator = SimpleNamespace(connect=lambda: (broker, VERSIONS))
    seen.raised = None

    def run():
        try:
            client.run()
        except (FencedError, OverError) as error:
            seen.raised = error

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join(30)
        assert not thread.is_alive()


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.005)


@pytest.mark.parametrize("error", [Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR])
def test_offsets_that_could_not_be_fetched_are_not_committed_as_0(error):
    broker = Broker({"OFFSET_FETCH": [fetched(-1, error), WireError("gone"), fetched(42)]})
    with running(CONFIG, broker):
        wait_for(lambda: len(broker.of("OFFSET_COMMIT")) > 1)
    (topic,) = broker.of("OFFSET_COMMIT")[0]["topics"]
    assert topic["partitions"][0]["committedOffset"] == 42
    assert len(broker.of("JOIN_GROUP")) == 1


def test_heartbeats_go_on_while_offsets_may_not_be_fetched(monkeypatch):
    monkeypatch.setattr("loadtest.wire.client.REFUSED_S", 0.2)
    refused = fetched(-1, Error.UNKNOWN_SERVER_ERROR)
    errors = []
    broker = Broker({"OFFSET_FETCH": [refused, refused, fetched(42)]})
    with running(CONFIG, broker, error=errors.append):
        wait_for(lambda: broker.of("OFFSET_COMMIT"))
    sent = [api for api, _ in broker.requests]
    first, second, third = (i for i, api in enumerate(sent) if api == "OFFSET_FETCH")
    between = sent[first + 1 : second] + sent[second + 1 : third]
    assert len(between) > 2
    assert set(between) == {"HEARTBEAT"}
    assert errors == ["UNKNOWN_SERVER_ERROR"] * 2


@pytest.mark.parametrize("error", [Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION])
@pytest.mark.parametrize("api", ["HEARTBEAT", "OFFSET_COMMIT"])
def test_a_member_that_is_out_gives_all_up_and_joins_again(api, error):
    answer = committed(error) if api == "OFFSET_COMMIT" else {"errorCode": error}
    broker = Broker({api: [answer]})
    with running(CONFIG, broker) as seen:
        wait_for(lambda: len(broker.of("JOIN_GROUP")) == 2)
        wait_for(lambda: len(seen.events) == 3)
    assert seen.events == [("assigned", parts(0)), ("lost", parts(0)), ("assigned", parts(0))]
    again = broker.of("JOIN_GROUP")[1]
    assert again["memberId"] == ("" if error == Error.UNKNOWN_MEMBER_ID else "id")
    assert again["reason"]
    assert again["joinReason"] == JoinReason.RESTART


@pytest.mark.parametrize("assignor", ["range", COOPERATIVE.assignor])
def test_a_member_gives_no_join_reason_in_a_rebalance_or_after_a_revocation(assignor):
    """What it owned before is gone with the second assignment, which makes it join once more."""
    shares = [{"errorCode": 0, "assignment": blob(*of)} for of in ((0, 1), (0,))]
    rebalancing = {"errorCode": Error.REBALANCE_IN_PROGRESS}
    broker = Broker({"HEARTBEAT": [rebalancing], "SYNC_GROUP": shares})
    joins = 3 if assignor == COOPERATIVE.assignor else 2
    with running(replace(CONFIG, assignor=assignor), broker):
        wait_for(lambda: len(broker.of("JOIN_GROUP")) == joins)
    assert {one["joinReason"] for one in broker.of("JOIN_GROUP")[1:]} == {JoinReason.UNKNOWN}


def test_a_fenced_member_ends():
    broker = Broker({"OFFSET_COMMIT": [committed(Error.FENCED_INSTANCE_ID)]})
    with running(STATIC, broker) as seen:
        wait_for(lambda: seen.raised)
        assert isinstance(seen.raised, FencedError)


def test_one_partition_that_fails_is_no_success():
    answer = {"topics": [{"name": "orders", "partitions": [
        {"errorCode": 0}, {"errorCode": Error.UNKNOWN_SERVER_ERROR}]}]}  # fmt: skip
    errors = []
    broker = Broker({"OFFSET_COMMIT": [answer]})
    with running(CONFIG, broker, not_committed=lambda error, _: errors.append(error)):
        wait_for(lambda: errors)
    assert errors[0] == "UNKNOWN_SERVER_ERROR"


@pytest.mark.parametrize("skip", [False, True])
def test_a_leader_sees_new_partitions_even_if_its_assignment_was_skipped(skip):
    leads, more = leading(skipAssignment=skip), partitions(2)
    broker = Broker({"JOIN_GROUP": [leads, leads], "METADATA": [partitions(1), more, more]})
    with running(replace(STATIC, metadata_max_age_ms=50), broker):
        wait_for(lambda: len(broker.of("JOIN_GROUP")) == 2)
    first, second = broker.of("JOIN_GROUP")
    assert second["reason"] == "the number of partitions has changed"
    reasons = (first["joinReason"], second["joinReason"])  # KIP-423's
    assert reasons == (JoinReason.RESTART, JoinReason.TOPIC_METADATA_CHANGE)
    assert bool(broker.of("SYNC_GROUP")[0]["assignments"]) is not skip


def test_a_topic_that_cannot_be_seen_for_a_while_is_not_gone():
    hidden = partitions(0, BrokerError.TOPIC_AUTHORIZATION_FAILED)
    broker = Broker({"JOIN_GROUP": [leading()], "METADATA": [partitions(1), hidden]})
    with running(replace(CONFIG, metadata_max_age_ms=50), broker):
        wait_for(lambda: len(broker.of("METADATA")) == 3)
    assert len(broker.of("JOIN_GROUP")) == 1


@pytest.mark.parametrize(
    "why", ["the group is rebalancing", "the number of partitions has changed"]
)
def test_a_member_whose_application_does_not_poll_stays_and_joins_no_rebalance(why):
    polls = threading.Event()
    polls.set()
    broker = Broker({"JOIN_GROUP": [leading()]})
    with running(replace(CONFIG, metadata_max_age_ms=50), broker, polls.is_set) as seen:
        wait_for(lambda: len(broker.of("HEARTBEAT")) > 1)
        polls.clear()
        if why == "the group is rebalancing":
            broker.scripts["HEARTBEAT"] = [{"errorCode": Error.REBALANCE_IN_PROGRESS}] * 1_000
        else:
            broker.scripts["METADATA"] = [partitions(2)] * 1_000
            asked = len(broker.of("METADATA"))
            wait_for(lambda: len(broker.of("METADATA")) > asked)
        sent = len(broker.of("HEARTBEAT"))
        wait_for(lambda: len(broker.of("HEARTBEAT")) > sent + 5)
        assert len(broker.of("JOIN_GROUP")) == 1
        assert seen.events == [("assigned", parts(0))]
        polls.set()
        wait_for(lambda: len(broker.of("JOIN_GROUP")) >= 2)
        assert seen.events[:2] == [("assigned", parts(0)), ("revoked", parts(0))]
    assert broker.of("JOIN_GROUP")[1]["reason"] == why


@pytest.mark.parametrize("config", [CONFIG, STATIC])
def test_a_member_that_is_not_polled_for_too_long_is_out(config):
    polls = threading.Event()
    polls.set()
    broker = Broker()
    with running(replace(config, max_poll_interval_ms=100), broker, polls.is_set) as seen:
        wait_for(lambda: seen.events)
        polls.clear()
        wait_for(lambda: len(seen.events) == 2)
        assert seen.events[1] == ("lost", parts(0))
        assert len(broker.of("LEAVE_GROUP")) == (config is CONFIG)
        sent = len(broker.requests)
        polls.set()
        wait_for(lambda: len(seen.events) == 3)
    api, again = broker.requests[sent]
    assert (api, again["memberId"], again["groupInstanceId"]) == (
        "JOIN_GROUP", "", config.instance_id,
    )  # fmt: skip


def test_a_cooperative_member_keeps_what_stays_and_rejoins_after_it_gave_up():
    given = [{"errorCode": 0, "assignment": blob(*numbers)} for numbers in ((0, 1), (0,), (0,))]
    rebalance = {"errorCode": Error.REBALANCE_IN_PROGRESS}
    broker = Broker({"SYNC_GROUP": given, "HEARTBEAT": [rebalance]})
    with running(COOPERATIVE, broker) as seen:
        wait_for(lambda: len(seen.events) == 4)
    assert seen.events == [
        *(("assigned", parts(0, 1)), ("revoked", parts(1)), ("assigned", set())),
        ("assigned", set()),
    ]
    owned = [
        set(Subscription.decode(b64decode(body["protocols"][0]["metadata"])).owned)
        for body in broker.of("JOIN_GROUP")
    ]
    assert owned == [set(), parts(0, 1), parts(0)]


def test_a_heartbeat_follows_at_once_when_the_connection_was_lost():
    slow = replace(CONFIG, heartbeat_interval_ms=3_600_000, commit_interval_ms=50)
    broker = Broker({"OFFSET_COMMIT": [WireError("gone")]})
    with running(slow, broker):
        wait_for(lambda: broker.of("HEARTBEAT"))
    assert broker.closed == 1
    assert len(broker.of("JOIN_GROUP")) == 1
