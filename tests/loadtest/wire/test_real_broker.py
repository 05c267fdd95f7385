"""The wire-level client against a real broker: what it writes down is what the broker logged."""

import base64
import io
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.errors import NOT_SERVED_YET, Error
from kafka_protocol.request_log import COMPLETED
from kafka_protocol.versions import FIRST_JOIN_WITH_JOIN_REASON
from loadtest.wire import Connection, EventLog, WireError, negotiate
from loadtest.wire.connection import known
from loadtest.wire.member import UnexpectedResponse, WireMember

pytestmark = pytest.mark.cluster

METADATA = base64.b64encode(b"\0\0\0\0\0\1\0\6orders\0\0\0\0").decode()


@pytest.fixture
def group(broker, request):
    on_broker = GroupOnBroker(broker.brokers[0].port, request.node.name)
    on_broker.until_served()
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

    def until_served(self):
        """Wait until the broker coordinates groups."""
        scout = Connection("127.0.0.1", self.port, "scout")
        while scout.ask("FIND_COORDINATOR", 1, {"key": "any", "keyType": 0})["errorCode"]:
            threading.Event().wait(0.1)
        body = {"groupId": "a", "generationId": 0, "memberId": ""}
        while scout.ask("HEARTBEAT", 0, body)["errorCode"] in NOT_SERVED_YET:
            threading.Event().wait(0.1)
        scout.close()

    def member(self, name, *, instance=None, group=None, **versions):
        newest = {api: highest for api, (_, highest) in self.versions.items()}
        return WireMember(
            connection=self.connect(name),
            group=group or self.name,
            name=name,
            versions=newest | versions,
            protocols=(("range", METADATA),),
            instance_id=instance,
            session_timeout_ms=5_000,
            rebalance_timeout_ms=5_000,
        )

    def two(self):
        """Let two static members join at once; return the leader and the follower."""
        members = [self.member(name, instance=name) for name in ("a", "b")]
        with ThreadPoolExecutor(2) as joining:
            assert list(joining.map(WireMember.join, members)) == [0, 0]
        return sorted(members, key=lambda member: not member.is_leader)

    @property
    def state(self):
        found = self.scout.ask(
            "DESCRIBE_GROUPS", 5, {"groups": [self.name], "includeAuthorizedOperations": False}
        )
        return found["groups"][0]["groupState"]


def test_the_newest_broker_and_the_client_share_every_version(group):
    joins = known("JOIN_GROUP")[0], FIRST_JOIN_WITH_JOIN_REASON - 1  # no broker has KIP-423's
    assert group.versions == {api: known(api) for api in COORDINATOR_APIS} | {"JOIN_GROUP": joins}
    assert known("OFFSET_COMMIT") == (2, 10), "v0 and v1 are not kio's"


KINDS = [*((version, None) for version in range(10)), *((version, "i") for version in range(5, 10))]


def test_an_event_file_says_what_the_broker_logged(broker, group):
    def live(version, instance):
        """A member of each version has a group to itself: all wait for others at the same time."""
        name = f"{version}-{instance}"
        member = group.member(
            name,
            instance=instance,
            group=f"{group.name}-{name}",
            JOIN_GROUP=version,
            SYNC_GROUP=min(version, 5),
            HEARTBEAT=min(version, 4),
            LEAVE_GROUP=min(version, 5),
            OFFSET_COMMIT=max(2, version),
        )
        assert (member.join(), member.sync(), member.heartbeat()) == (0, 0, 0), name
        assert member.is_leader
        member.commit({("orders", 0): 7})
        assert member.leave(reason="done") == 0
        member.disconnect()
        return name

    with ThreadPoolExecutor(len(KINDS)) as at_once:
        names = list(at_once.map(live, *zip(*KINDS, strict=True)))
    out = io.StringIO()
    group.log.write(out, {"group": group.name})
    header, *lines, end = [json.loads(line) for line in out.getvalue().splitlines()]
    assert header == {"format": "groupquake-events/1", "group": group.name}
    assert end["end"] is True
    assert end["at_ms"] >= max(line["answered_at_ms"] for line in lines)
    assert all(line["answered_at_ms"] > line["at_ms"] for line in lines)
    for name in names:
        written = [
            (line["api"], line["api_version"], line["client_id"], line["request"], line["response"])
            for line in lines
            if line["connection"] == name
        ]
        assert len(written) >= 5
        assert written == logged(broker, f"{group.name}-{name}", len(written))


def logged(broker, client_id, count):
    """Wait for what the broker logs of a client: the line of a request follows its answer."""
    while True:
        found = []
        for line in broker.brokers[0].group_log.read_text().splitlines():
            if COMPLETED in line and f'"{client_id}"' in line:
                entry, _ = json.JSONDecoder().raw_decode(line.partition(COMPLETED)[2])
                header = entry["requestHeader"]
                api, version = header["requestApiKeyName"], header["requestApiVersion"]
                found.append((api, version, client_id, entry["request"], entry["response"]))
        if len(found) >= count:
            return found
        threading.Event().wait(0.05)


def test_a_response_that_is_not_expected_is_an_error(group):
    first, twin = (group.member(name, instance="i") for name in ("first", "twin"))
    first.expects = (Error.NONE,)
    first.join()
    first.sync()
    assert first.heartbeat() == 0
    assert (twin.join(), twin.sync()) == (0, 0)
    assert first.heartbeat(Error.FENCED_INSTANCE_ID, Error.NONE) == Error.FENCED_INSTANCE_ID
    with pytest.raises(UnexpectedResponse, match="of first: FENCED_INSTANCE_ID, not NONE"):
        first.heartbeat()


def test_a_missing_request_field_is_named(group):
    with pytest.raises(WireError, match="HEARTBEAT v4 needs 'memberId'"):
        group.scout.send("HEARTBEAT", 4, {"groupId": "g", "generationId": 1})


def test_no_answer_in_time_is_an_error(group):
    member, second = group.member("m"), group.member("second", JOIN_GROUP=3)
    assert (member.join(), member.sync()) == (0, 0)
    fields = {"memberId": "", "groupId": group.name, "protocolType": "consumer"}
    fields |= {"sessionTimeoutMs": 5_000, "rebalanceTimeoutMs": 5_000}
    body = fields | {"protocols": [{"name": "range", "metadata": METADATA}]}
    with pytest.raises(WireError, match=r"no response to JOIN_GROUP within 0\.2 s"):
        second.connection.ask("JOIN_GROUP", 3, body, 0.2)
    assert second.connection.fileno() > 0, "it is still open"


def test_a_connection_that_is_gone_says_so(group):
    member = group.member("m")
    member.connection._open().shutdown(socket.SHUT_RDWR)
    with pytest.raises(WireError, match=r"m: 127\.0\.0\.1:\d+ (is gone|has closed)"):
        member.heartbeat()
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
