"""What each rule does to requests and answers on their way, with a real broker behind the tap."""

import base64
import contextlib
import json
import threading
import time
from types import SimpleNamespace

import pytest

from chaos.errors import ChaosError
from chaos.fault_context import FaultContext
from chaos.tap import process as tap
from chaos.tap.rules import ActiveRule, Rule
from kafka_protocol.errors import Error
from loadtest.wire import Connection, WireError
from scenarios import MemberSpec
from scenarios.durations import now_ms
from scenarios.faults import FAULTS, Fault
from scenarios.faults.base import Hit
from tests.chaos.fakes import until

pytestmark = pytest.mark.cluster

METADATA = base64.b64encode(b"\0\0\0\0\0\1\0\6orders\0\0\0\0").decode()
SOON_S = 0.3
"""An answer that nothing holds comes in milliseconds."""
WITHIN_S = 10
NOBODY = {"groupId": "nobody", "generationId": 1, "memberId": "x", "groupInstanceId": None}
"""The heartbeat of a member that no broker knows: its answer is an error."""


class Tapped:
    """A broker behind a tap, and what both wrote."""

    def __init__(self, cluster, running):
        self.cluster, self.tap = cluster, running
        self.open = []

    def connect(self, client_id, *, asks=True):
        host, _, port = self.tap.bootstrap.rpartition(":")
        self.open.append(Connection(host, int(port), client_id))
        if asks:
            find(self.open[-1])
        return self.open[-1]

    def close(self):
        while self.open:
            self.open.pop().close()

    @contextlib.contextmanager
    def rule(self, action, client_ids, **more):
        name = self.tap.new_id()
        self.tap.add(name, Rule(action, client_ids, **more))
        try:
            yield name
        finally:
            with contextlib.suppress(ChaosError):
                self.tap.remove(name)

    def lines(self, client_id, count):
        """The tap's lines about a client, once there are so many: kind and content."""
        file, named = self.tap.folder / "1" / "group.log", f'"clientId":"{client_id}"'
        lines = lambda: [line for line in file.read_text().splitlines() if named in line]
        until(lambda: len(lines()) >= count)
        found = []
        for line in lines():
            kind, _, rest = line.partition(" request:")
            found.append((kind.rpartition(" ")[2], json.loads(rest[: rest.rindex(" (")])))
        return found

    def logged(self, client_id):
        """How many requests of a client the broker's own log has; it answers before it logs."""
        return self.cluster.brokers[0].group_log.read_text().count(f'"clientId":"{client_id}"')


@pytest.fixture
def tapped(behind):
    yield behind
    behind.close()


@pytest.fixture(scope="module")
def behind(secured, tmp_path_factory):
    settings = tap.TapSettings({1: secured.bootstrap}, tmp_path_factory.mktemp("rules") / "tap")
    with tap.running(settings) as running:
        here = Tapped(secured, running)
        scout = here.connect("scout")
        until(lambda: heartbeat(scout) in (Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND))
        here.close()
        yield here


FIND = ("FIND_COORDINATOR", 1, {"key": "any", "keyType": 0})


def find(connection):
    return connection.ask(*FIND)


def heartbeat(connection):
    return connection.ask("HEARTBEAT", 3, NOBODY)["errorCode"]


def beat(connection):
    return connection.send("HEARTBEAT", 3, NOBODY)


def await_hits(tapped, rule_id, count):
    """Wait until a rule holds so many requests: what it holds is not answered, however long."""
    until(lambda: tapped.tap.hits()[rule_id] == count)


def is_answered(connection, exchange, within_s=WITHIN_S):
    try:
        connection.wait(exchange, within_s)
    except WireError:
        return False
    return True


def test_partition_holds_both_ways_and_lets_pass_afterwards(tapped):
    inside, outside = tapped.connect("parted"), tapped.connect("free")
    assert heartbeat(inside) == Error.UNKNOWN_MEMBER_ID
    with tapped.rule("partition", ("parted",)) as name:
        sent = beat(inside)
        fresh = tapped.connect("parted", asks=False)
        asked = beat(fresh)
        await_hits(tapped, name, 2)
        assert heartbeat(outside) == Error.UNKNOWN_MEMBER_ID
        until(lambda: tapped.logged("free") == 1)
        assert tapped.logged("parted") == 1
    assert is_answered(inside, sent)
    assert is_answered(fresh, asked)
    _, *held = tapped.lines("parted", 3)
    assert [(kind, content["tap"]["rules"]) for kind, content in held] == 2 * [
        ("Completed", [name])
    ]


def test_partition_one_way_lets_the_other_pass(tapped):
    member = tapped.connect("one-way")
    with tapped.rule("partition", ("one-way",), way="to-client"):
        sent = beat(member)
        until(lambda: tapped.logged("one-way") == 1)  # the broker has answered
        assert not is_answered(member, sent, SOON_S)
    assert is_answered(member, sent)


def test_what_a_client_that_gave_up_had_sent_is_lost(tapped):
    member = tapped.connect("gave-up")
    with tapped.rule("partition", ("gave-up",)) as name:
        beat(member)
        await_hits(tapped, name, 1)
        member.close()
        [(kind, content)] = tapped.lines("gave-up", 1)
    assert kind == "Unanswered"
    assert content["tap"]["forwarded"] is False
    assert content["tap"]["why"] == "the client closed the connection"
    assert heartbeat(tapped.connect("gave-up-after")) == Error.UNKNOWN_MEMBER_ID
    assert tapped.logged("gave-up") == 0


@pytest.mark.parametrize(("way", "least_ms"), [("both", 600), ("to-broker", 300)])
def test_delay_takes_its_time_and_keeps_the_order(tapped, way, least_ms):
    member = tapped.connect(f"late-{way}")
    with tapped.rule("delay", (f"late-{way}",), latency_ms=300, way=way):
        began = time.monotonic()
        for exchange in [beat(member) for _ in range(5)]:
            member.wait(exchange)
        took_ms = (time.monotonic() - began) * 1000
    assert took_ms >= least_ms
    assert took_ms < least_ms * 4  # they wait together, not one after the other
    _, content = tapped.lines(f"late-{way}", 5)[0]
    assert content["tap"]["requestHeldMs"] >= 300
    assert content["totalTimeMs"] >= content["remoteTimeMs"] + (300 if way == "both" else 0)


def test_a_dropped_answer_ends_the_connection(tapped):
    member = tapped.connect("loser")
    with tapped.rule("drop-answers", ("loser",), apis=("HEARTBEAT",), count=1) as name:
        with pytest.raises(WireError, match="closed"):
            member.wait(beat(member))
        assert heartbeat(tapped.connect("loser")) == Error.UNKNOWN_MEMBER_ID  # the count is used up
    (kind, content), _ = tapped.lines("loser", 2)
    assert kind == "Completed"
    assert content["tap"] == {"delivered": False, "why": "dropped", "rules": [name],
                              "requestHeldMs": content["tap"]["requestHeldMs"]}  # fmt: skip
    assert content["response"]["errorCode"] == Error.UNKNOWN_MEMBER_ID
    until(lambda: tapped.logged("loser") == 2)


def test_a_dropped_answer_may_leave_the_connection_silent(tapped):
    member = tapped.connect("unheard")
    with tapped.rule("drop-answers", ("unheard",), apis=("HEARTBEAT",), count=1, then="silence"):
        first, second = beat(member), beat(member)
        whys = [content["tap"]["why"] for _, content in tapped.lines("unheard", 2)]
        assert not is_answered(member, second, SOON_S)
        assert not is_answered(member, first, 0)
    assert whys == ["dropped", "an earlier answer was dropped"]


def test_hold_waits_for_one_api_and_what_follows(tapped):
    member = tapped.connect("holder")
    with tapped.rule("hold", ("holder",), apis=("HEARTBEAT",)) as name:
        find(member)  # another API passes
        sent, after = beat(member), member.send(*FIND)
        await_hits(tapped, name, 1)
        assert not is_answered(member, sent, SOON_S)
        assert not is_answered(member, after, 0)
        assert tapped.logged("holder") == 0
    assert is_answered(member, sent)
    assert is_answered(member, after)


def test_duplicates_arrive_twice_and_are_answered_once(tapped):
    member = tapped.connect("twice")
    with tapped.rule("duplicate", ("twice",), apis=("HEARTBEAT",), count=1):
        assert is_answered(member, beat(member))
        assert is_answered(member, beat(member))
    lines = tapped.lines("twice", 3)
    assert [content["tap"].get("copy") for _, content in lines if "tap" in content] == [None, True]
    until(lambda: tapped.logged("twice") == 3)


def test_the_client_gets_an_error_and_the_line_has_both(tapped):
    member = tapped.connect("answered")
    lie = {"after": 1, "count": 1, "error": "FENCED_INSTANCE_ID"}
    with tapped.rule("answer-error", ("answered",), apis=("HEARTBEAT",), **lie):
        true = Error.UNKNOWN_MEMBER_ID
        assert [heartbeat(member) for _ in range(3)] == [true, Error.FENCED_INSTANCE_ID, true]
    lines = [content for _, content in tapped.lines("answered", 3)]
    given = [content.get("tap", {}).get("errorCode") for content in lines]
    assert given == [None, Error.FENCED_INSTANCE_ID, None]
    assert {content["response"]["errorCode"] for content in lines} == {true}


def test_of_other_apis_the_tap_writes_that_a_rule_hit_them(tapped):
    member = tapped.connect("lost", asks=False)
    lie = {"apis": ("FIND_COORDINATOR",), "error": "COORDINATOR_NOT_AVAILABLE"}
    with tapped.rule("answer-error", ("lost",), **lie) as name:
        assert find(member)["errorCode"] == Error.COORDINATOR_NOT_AVAILABLE
    [(kind, content)] = tapped.lines("lost", 1)
    assert (kind, content["tap"]["rules"]) == ("Hit", [name])


def test_members_are_known_by_the_instance_id_of_their_join(tapped):
    """Its client.id says nothing; the connection's JoinGroup does."""
    member = tapped.connect("any-client")
    join = {"groupId": "by-instance", "sessionTimeoutMs": 6_000, "rebalanceTimeoutMs": 6_000,
            "memberId": "", "groupInstanceId": "shop-1", "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": METADATA}]}  # fmt: skip
    member.ask("JOIN_GROUP", 5, join)
    with tapped.rule("partition", ("another-name",), instance_ids=("shop-1",)) as name:
        sent = beat(member)
        await_hits(tapped, name, 1)
        assert not is_answered(member, sent, SOON_S)


def test_brokers_and_shares_are_chosen(tapped):
    member = tapped.connect("share")
    with tapped.rule("partition", ("share",), brokers=(2,)):
        assert is_answered(member, beat(member))
    with tapped.rule("duplicate", ("share",), apis=("HEARTBEAT",), probability=0.5, seed=3) as name:
        for _ in range(40):
            member.wait(beat(member))
        hits = tapped.tap.hits()[name]
    assert 5 < hits < 35
    again = ActiveRule("r", Rule("duplicate", probability=0.5, seed=3))
    drawn = sum(again._random.random() < 0.5 for _ in range(40))
    assert hits == drawn  # the seed decides


class AnyMember(dict):
    """What an experiment knows of members: each is a dynamic one."""

    def __missing__(self, name):
        return MemberSpec(name, "any", "dynamic", None)


SEEN = {
    "net.isolate": ({}, "partition", {}),
    "net.delay": ({"latency": "300ms"}, "delay", {"latency_ms": 300}),
    "net.hold": ({"apis": ["HEARTBEAT"]}, "hold", {"apis": ("HEARTBEAT",)}),
}
"""The keys of a fault, and its rule."""


def seen(tapped, member, fault, rule_id) -> Fault:
    """A fault of a member, as if its rule, by id, had just been put in force."""
    keys, *_ = SEEN[fault]
    experiment = SimpleNamespace(member_called=AnyMember())
    context = FaultContext(experiment, tapped.cluster, None, None, threading.Event(), tapped.tap)
    given = {"fault": fault, "target": {"names": [member]}, "at": "0s", "for": "9s", **keys}
    made = FAULTS[fault].model_validate(given)
    made = made.aim(context, Hit(member, "any", {"brokers": [], "members": []}))
    made._rule.id, made._rule.began_ms = rule_id, now_ms()
    if fault == "net.isolate":
        made._ask()
    return made


@pytest.mark.parametrize(
    ("fault", "hits", "evidence"),
    [
        ("net.isolate", 2, "; 1 of its own requests were hit"),  # the probe of the runner, too
        ("net.delay", 1, "; 1 of its own requests were hit"),
        ("net.hold", 1, "1 HEARTBEAT of net.hold-hit held, none arrived"),
    ],
    ids=SEEN,
)
def test_a_rule_is_seen_if_it_hits_the_member(tapped, fault, hits, evidence):
    member = f"{fault}-hit"
    connection = tapped.connect(member)
    _, action, more = SEEN[fault]
    with tapped.rule(action, (member,), **more) as rule_id:
        shown = seen(tapped, member, fault, rule_id)
        sent = beat(connection)
        await_hits(tapped, rule_id, hits)
        if fault != "net.delay":
            assert not is_answered(connection, sent, SOON_S)
        found = shown.verify()
    assert found.holds, found.evidence
    assert found.evidence.endswith(evidence)
    healed = shown.verify_healed()
    assert healed.holds, healed.evidence


@pytest.mark.parametrize(
    ("named", "sends"),
    [("member", "another"), ("nobody", "member")],
    ids=["it sends under another name", "the rule is for nobody"],
)
@pytest.mark.parametrize("fault", SEEN)
def test_a_rule_is_not_seen_if_it_does_not_hit_the_member(tapped, fault, named, sends):
    """The runner's probes are named as the member: they alone show nothing of it."""
    connection = tapped.connect(sends)
    _, action, more = SEEN[fault]
    with tapped.rule(action, (named,), **more) as rule_id:
        shown = seen(tapped, "member", fault, rule_id)
        assert is_answered(connection, beat(connection))
        found = shown.verify()
    assert not found.holds, found.evidence
    if named == "member":
        hit_none = "member sent no" if fault == "net.hold" else "no request of member itself"
        assert found.evidence.startswith(hit_none)
    if fault == "net.isolate":
        healed = shown.verify_healed()
        assert healed.holds, healed.evidence


def test_a_machine_on_which_everything_is_slow_shows_no_delay(tapped):
    with tapped.rule("delay", None, latency_ms=300) as rule:  # of any client
        found = seen(tapped, "all-slow", "net.delay", rule).verify()
    assert not found.holds
    assert found.evidence.endswith("but so did that of another client")
