"""The wire-level client against a real broker: what it writes down is what the broker logged."""

import base64
import io
import json
import socket
import threading
from collections import Counter
from contextlib import suppress

import pytest

from chaos.clusters.process import ProcessCluster
from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.errors import Error
from kafka_protocol.request_log import COMPLETED
from loadtest.wire import (
    Connection,
    EventLog,
    FencedError,
    RebalanceHolder,
    WireError,
    WireMember,
    negotiate,
)
from loadtest.wire.schemas import known

pytestmark = pytest.mark.cluster

CONFIG = {"group.initial.rebalance.delay.ms": 50, "group.min.session.timeout.ms": 300}
METADATA = base64.b64encode(b"\0\0\0\0\0\1\0\6orders\0\0\0\0").decode()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wire") / "brokers"
    with ProcessCluster("wire-test", folder, brokers=1, config=CONFIG) as running:
        scout = Connection("127.0.0.1", running.brokers[0].port, "scout")
        ready(scout)
        scout.close()
        yield running


def ready(scout):
    """Wait until the broker coordinates groups."""
    while scout.ask("FIND_COORDINATOR", 1, {"key": "any", "keyType": 0})["errorCode"]:
        threading.Event().wait(0.1)
    while scout.ask("HEARTBEAT", 0, {"groupId": "a", "generationId": 0, "memberId": ""})[
        "errorCode"
    ] in (
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
    ):
        threading.Event().wait(0.1)


@pytest.fixture
def group(cluster, request):
    on_broker = GroupOnBroker(cluster.brokers[0].port, request.node.name)
    yield on_broker
    for connection in on_broker.connections:
        connection.close()


class GroupOnBroker:
    """Members of one group."""

    def __init__(self, port, name):
        self.port = port
        self.name = name
        self.log = EventLog()
        self.connections = []
        self.scout = self.connect("scout")
        self.versions = negotiate(self.scout)

    def connect(self, name):
        client_id = f"{self.name}-{name}"
        opened = Connection("127.0.0.1", self.port, client_id, name=name, log=self.log)
        self.connections.append(opened)
        return opened

    def member(self, name, *, instance=None, **versions):
        return WireMember(
            connection=self.connect(name),
            group=self.name,
            versions=WireMember.newest(self.versions) | versions,
            protocols=(("range", METADATA),),
            instance_id=instance,
            session_timeout_ms=5_000,
            rebalance_timeout_ms=5_000,
            heartbeat_interval_ms=100,
        )

    def two(self, join=WireMember.join):
        """Let two static members join at once; return the leader and the follower."""
        members = [self.member(name, instance=name) for name in ("a", "b")]
        joining = [threading.Thread(target=join, args=(member,)) for member in members]
        for thread in joining:
            thread.start()
        for thread in joining:
            thread.join()
        return sorted(members, key=lambda member: not member.leads)

    @property
    def state(self):
        found = self.scout.ask(
            "DESCRIBE_GROUPS", 5, {"groups": [self.name], "includeAuthorizedOperations": False}
        )
        return found["groups"][0]["groupState"]

    def until(self, state):
        while self.state != state:
            threading.Event().wait(0.02)


def test_the_newest_broker_and_the_client_share_every_version(group):
    assert group.versions == {api: known(api) for api in COORDINATOR_APIS}
    assert known("OFFSET_COMMIT") == (2, 10), "v0 and v1 are not kio's"


VERSIONS = [
    pytest.param(
        {
            "JOIN_GROUP": version,
            "SYNC_GROUP": min(version, 5),
            "HEARTBEAT": min(version, 4),
            "LEAVE_GROUP": min(version, 5),
            "OFFSET_COMMIT": max(2, version),
        },
        id=f"join v{version}",
    )
    for version in range(10)
]


@pytest.mark.parametrize("versions", VERSIONS)
@pytest.mark.parametrize("instance", [None, "i"], ids=["dynamic", "static"])
def test_an_event_file_says_what_the_broker_logged(cluster, group, versions, instance):
    if versions["JOIN_GROUP"] < 5:
        instance = None
    member = group.member("m", instance=instance, **versions)
    assert (member.join(), member.sync(), member.heartbeat()) == (0, 0, 0)
    assert member.leads
    member.commit({("orders", 0): 7})
    assert member.leave("done") == 0
    member.connection.close()
    out = io.StringIO()
    group.log.write(out, {"group": group.name})
    header, *lines, end = [json.loads(line) for line in out.getvalue().splitlines()]
    assert header == {"format": "groupquake-events/1", "group": group.name}
    assert end["end"] is True
    assert end["at_ms"] >= lines[-1]["answered_at_ms"] > lines[-1]["at_ms"]
    written = [
        (line["api"], line["api_version"], line["client_id"], line["request"], line["response"])
        for line in lines
        if line["connection"] == "m"
    ]
    assert written == logged(cluster, f"{group.name}-m", len(written))


def logged(cluster, client_id, count):
    """Wait for what the broker logs of a client: the line of a request follows its answer."""
    while True:
        found = []
        for line in cluster.brokers[0].group_log.read_text().splitlines():
            if COMPLETED in line and f'"{client_id}"' in line:
                entry, _ = json.JSONDecoder().raw_decode(line.partition(COMPLETED)[2])
                header = entry["requestHeader"]
                api, version = header["requestApiKeyName"], header["requestApiVersion"]
                found.append((api, version, client_id, entry["request"], entry["response"]))
        if len(found) >= count:
            return found
        threading.Event().wait(0.05)


def test_members_live_through_rebalances_and_end_fenced(group):
    stop = threading.Event()
    members = [group.member(f"m{n}", instance=f"i{n}") for n in range(3)]
    threads = [threading.Thread(target=live, args=(member, stop)) for member in members]
    for thread in threads:
        thread.start()
    group.until("Stable")
    while len({member.generation for member in members}) > 1 or members[0].generation < 0:
        threading.Event().wait(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    assert Counter(member.leads for member in members) == {True: 1, False: 2}
    duplicate = group.member("twin", instance="i0")
    duplicate.rejoin_group()
    assert duplicate.member_id != members[0].member_id
    with pytest.raises(FencedError, match="i0 is used by another process"):
        members[0].live(lambda: False)
    assert duplicate.commit({("orders", 0): 1}) == 100, "no topic has that id"


def live(member, stop):
    member.rejoin_group()
    member.live(stop.is_set)


@pytest.mark.parametrize("name", ["hold_join_phase", "hold_assignment"])
def test_a_holder_keeps_its_group_inside_a_rebalance(group, name):
    holder = RebalanceHolder(group.member("holder"), lambda: group.connect("guard"))
    other = group.member("other", instance="other")
    holder.member.rejoin_group()
    joining = threading.Thread(target=other.rejoin_group)
    joining.start()
    while holder.member.heartbeat() != 27:
        threading.Event().wait(0.02)
    holder.member.rejoin_group()
    joining.join()
    assert holder.member.leads
    assert group.state == "Stable"
    stop = threading.Event()
    living = threading.Thread(target=other.live, args=(stop.is_set,))
    living.start()
    generation = holder.member.generation
    if name == "hold_join_phase":
        holder.hold_join_phase()
        group.until("PreparingRebalance")
        assert not [group.state for _ in range(30) if group.state != "PreparingRebalance"]
    else:
        holder.hold_assignment()
        assert not [group.state for _ in range(30) if group.state != "CompletingRebalance"]
    holder.release()
    group.until("Stable")
    assert holder.member.heartbeat() == 0
    assert holder.member.generation == generation + 1, "one rebalance and no other"
    stop.set()
    living.join()
    assert other.generation == generation + 1


def test_a_sync_group_that_waits_is_never_answered_if_its_member_is_removed(group):
    """A finding of ours: docs/findings.md#removed-while-syncing."""
    leader, follower = group.two()
    answers = []

    def sync():
        with suppress(WireError):  # the connection is closed in the end
            answers.append(follower.sync())

    syncing = threading.Thread(target=sync)
    syncing.start()
    while not (follower.connection.awaited or answers):
        threading.Event().wait(0.02)
    threading.Event().wait(0.5)  # it is sent; nothing tells that the broker has taken it up
    removed = {"memberId": "", "groupInstanceId": follower.instance_id, "reason": None}
    left = group.scout.ask("LEAVE_GROUP", 5, {"groupId": group.name, "members": [removed]})
    assert (left["errorCode"], left["members"][0]["errorCode"]) == (0, 0)
    leader.rejoin_group()
    assert leader.heartbeat() == 0, "the next generation is complete"
    syncing.join(timeout=2)
    assert syncing.is_alive()
    assert answers == []
    follower.connection.close()
    syncing.join()


def test_a_follower_cannot_withhold_the_assignment(group):
    leader = group.member("leader")
    leader.rejoin_group()
    holder = RebalanceHolder(group.member("holder"), lambda: group.connect("guard"))
    stop = threading.Event()
    living = threading.Thread(target=leader.live, args=(stop.is_set,))
    living.start()
    holder.member.rejoin_group()
    with pytest.raises(WireError, match="is not its leader"):
        holder.hold_assignment()
    stop.set()
    living.join()


def test_a_missing_request_field_is_named(group):
    with pytest.raises(WireError, match="HEARTBEAT v4 needs 'memberId'"):
        group.scout.send("HEARTBEAT", 4, {"groupId": "g", "generationId": 1})


def test_no_answer_in_time_is_an_error(group):
    group.member("m").rejoin_group()
    second = group.member("second", JOIN_GROUP=3)
    with pytest.raises(WireError, match=r"no response to JOIN_GROUP within 0\.2 s"):
        second.connection.wait(second.send_join(), 0.2)
    assert second.connection.is_open


def test_a_connection_that_is_gone_says_so(group):
    member = group.member("m")
    member.connection._open().shutdown(socket.SHUT_RDWR)
    with pytest.raises(WireError, match=r"m: 127\.0\.0\.1:\d+ (is gone|has closed)"):
        member.heartbeat()
    assert not member.connection.is_open
    with pytest.raises(WireError, match="m: the connection to 127"):
        member.heartbeat()
    group.log.end()
    unanswered = [said for said in group.log.exchanges if said.response is None]
    assert [said.api for said in unanswered] == ["HEARTBEAT"]


def test_a_refused_connection_is_an_error(group):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(WireError, match=f"no broker answers at 127.0.0.1:{port}"):
        Connection("127.0.0.1", port, "lonely")
