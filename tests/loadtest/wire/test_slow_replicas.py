"""Static rejoins whose write times out because replicas stand still: findings on three brokers."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import pytest

from chaos.clusters.process import ProcessCluster
from kafka_protocol.errors import NOT_SERVED_YET, Error
from loadtest.wire import Connection, WireError
from loadtest.wire.member import WireMember
from tests.loadtest.wire.test_real_broker import GroupOnBroker

pytestmark = pytest.mark.cluster

CONFIG = {
    "offsets.topic.num.partitions": 1,  # one partition has one coordinator
    "offsets.commit.timeout.ms": 2_500,
    "broker.session.timeout.ms": 30_000,  # brokers that stood still are not fenced for that
    "group.initial.rebalance.delay.ms": 50,
}


class Group(GroupOnBroker):
    """Members of one group; a session outlasts the test."""

    def member(self, name, *, instance=None, **versions):
        made = super().member(name, instance=instance, **versions)
        made.session_timeout_ms = made.rebalance_timeout_ms = 60_000
        return made

    def formed(self):
        """Return the leader and the follower of a Stable group."""
        leader, follower = self.two()
        while leader.generation != follower.generation or leader.sync():  # one was first
            with ThreadPoolExecutor(2) as joining:
                assert list(joining.map(WireMember.join, (leader, follower))) == [0, 0]
        assert follower.sync() == 0
        return leader, follower

    def member_ids(self):
        """Return the member ids that the coordinator knows, by instance id."""
        body = {"groups": [self.name], "includeAuthorizedOperations": False}
        (found,) = self.connect("scout").ask("DESCRIBE_GROUPS", 5, body)["groups"]
        return {member["groupInstanceId"]: member["memberId"] for member in found["members"]}

    def until_replaced(self, member):
        """Wait until the coordinator has given a member's place to another process."""
        replaced = f"Replacing previously mapped member {member.member_id}"
        while replaced not in self.group_log.read_text():
            threading.Event().wait(0.02)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow") / "brokers"
    with ProcessCluster("slow-replicas", folder, brokers=3, config=CONFIG) as running:
        yield running


def asked(port, api, version, body):
    """Ask a broker over a connection of its own."""
    with closing(Connection("127.0.0.1", port, "scout")) as scout:
        return scout.ask(api, version, body)


def coordinator(cluster, but=0):
    """Wait until a broker serves the groups; return its number."""
    ports = {info.id: info.port for info in cluster.brokers if info.id != but}
    while True:
        with suppress(WireError):
            body = {"key": "any", "keyType": 0}
            found = asked(min(ports.values()), "FIND_COORDINATOR", 1, body)["nodeId"]
            if found in ports:
                (group,) = asked(ports[found], "DESCRIBE_GROUPS", 0, {"groups": ["any"]})["groups"]
                if group["errorCode"] not in NOT_SERVED_YET:
                    return found
        threading.Event().wait(0.1)


@pytest.fixture
def group(cluster, request):
    number = coordinator(cluster)
    info = next(info for info in cluster.brokers if info.id == number)
    on_broker = Group(info.port, request.node.name)
    on_broker.group_log = info.group_log
    on_broker.number = number
    yield on_broker
    for connection in on_broker.connections:
        connection.close()


@contextmanager
def paused(cluster, number) -> Iterator[None]:
    """Let all brokers but one stand still."""
    others = [info.id for info in cluster.brokers if info.id != number]
    for other in others:
        cluster.act("pause", other)
    try:
        yield
    finally:
        for other in others:
            cluster.act("resume", other)


def test_an_id_that_a_member_was_told_is_taken_back(cluster, group):
    """docs/findings.md#given-and-taken-back."""
    leader, follower = group.formed()
    new = group.member("new", instance=leader.instance_id)
    with paused(cluster, group.number):
        with ThreadPoolExecutor(2) as waiting:
            joining = waiting.submit(new.join)
            group.until_replaced(leader)
            waiting.submit(follower.leave)
            assert joining.result() == 0
            assert (new.generation, new.is_leader) == (2, True)
        deadline = time.monotonic() + 60
        while new.heartbeat() == Error.NONE:  # until the write times out
            assert time.monotonic() < deadline
            threading.Event().wait(0.1)
    assert new.heartbeat() == Error.FENCED_INSTANCE_ID
    leader.generation = new.generation
    assert leader.heartbeat() == 0, "the process that was replaced"
    assert group.member_ids() == {leader.instance_id: leader.member_id}


def test_an_id_that_nobody_was_given_is_stored(cluster, group):
    """docs/findings.md#stored-and-taken-back."""
    _, follower = group.formed()
    new = group.member("new", instance=follower.instance_id)
    with paused(cluster, group.number):
        assert new.join() == Error.COORDINATOR_NOT_AVAILABLE
    assert new.member_id == ""
    assert follower.heartbeat() == 0
    assert group.member_ids()[follower.instance_id] == follower.member_id
    threading.Event().wait(1.0)  # the replicas fetch the record
    cluster.act("stop", group.number)
    number = coordinator(cluster, but=group.number)
    group.port = next(info.port for info in cluster.brokers if info.id == number)
    follower.connection = group.connect("again")
    assert follower.heartbeat() == Error.FENCED_INSTANCE_ID
    assert group.member_ids()[follower.instance_id] != follower.member_id
