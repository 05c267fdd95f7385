"""What each rule does to requests and answers on their way, with a real broker behind the tap."""

import base64
import contextlib
import json
import threading
import time
from types import SimpleNamespace

import pytest

from chaos import tap
from chaos.errors import ChaosError
from chaos.fault_context import FaultContext
from chaos.tap import Rule
from kafka_protocol.errors import Error
from loadtest.wire import Connection, WireError
from scenarios import MemberSpec
from scenarios.durations import now_ms
from scenarios.faults import FAULTS, Fault
from scenarios.faults.base import Hit

pytestmark = pytest.mark.cluster

METADATA = base64.b64encode(b"\0\0\0\0\0\1\0\6orders\0\0\0\0").decode()
SOON_S = 0.7
WITHIN_S = 10


class Tapped:
    """A broker behind a tap, and what both wrote."""

    def __init__(self, cluster, running):
        self.cluster, self.tap = cluster, running
        self.open = []

    def connect(self, client_id):
        host, _, port = self.tap.bootstrap.rpartition(":")
        self.open.append(Connection(host, int(port), client_id))
        return self.open[-1]

    def close(self):
        while self.open:
            self.open.pop().close()

    @contextlib.contextmanager
    def rule(self, *given, **more):
        name = self.tap.new_id()
        self.tap.add(name, Rule(*given, **more))
        try:
            yield name
        finally:
            with contextlib.suppress(ChaosError):
                self.tap.remove(name)

    def lines(self, client_id):
        """The tap's lines about a client: kind and content."""
        found = []
        for line in (self.tap.folder / "1" / "group.log").read_text().splitlines():
            if f'"clientId":"{client_id}"' in line:
                kind, _, rest = line.partition(" request:")
                content = json.loads(rest[: rest.rindex(" (")])
                found.append((kind.rpartition(" ")[2], content))
        return found

    def awaited_lines(self, client_id, count):
        deadline = time.monotonic() + 20
        while len(found := self.lines(client_id)) < count:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found

    def logged(self, client_id):
        """How many requests of a client the broker's own log has."""
        log = self.cluster.brokers[0].group_log.read_text()
        return sum(f'"clientId":"{client_id}"' in line for line in log.splitlines())

    def awaited(self, client_id, count):
        """The same, once there are so many: a broker answers before it logs."""
        deadline = time.monotonic() + 20
        while (found := self.logged(client_id)) < count:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found


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
        while heartbeat(scout) not in (Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND):
            time.sleep(0.1)
        here.close()
        yield here


def find(connection):
    return connection.ask("FIND_COORDINATOR", 1, {"key": "any", "keyType": 0})


def heartbeat(connection, timeout_s=30.0):
    """Send the heartbeat of a member that nobody knows; its answer is an error."""
    find(connection)
    body = {"groupId": "nobody", "generationId": 1, "memberId": "x", "groupInstanceId": None}
    return connection.ask("HEARTBEAT", 3, body, timeout_s)["errorCode"]


def beat(connection):
    body = {"groupId": "nobody", "generationId": 1, "memberId": "x", "groupInstanceId": None}
    return connection.send("HEARTBEAT", 3, body)


def join(connection, group, instance_id):
    return connection.send(
        "JOIN_GROUP", 5,
        {"groupId": group, "sessionTimeoutMs": 6_000, "rebalanceTimeoutMs": 6_000, "memberId": "",
         "groupInstanceId": instance_id, "protocolType": "consumer",
         "protocols": [{"name": "range", "metadata": METADATA}]},
    )  # fmt: skip


def answered_within(connection, exchange, timeout_s):
    try:
        connection.wait(exchange, timeout_s)
    except WireError:
        return False
    return True


def test_partition_holds_both_ways_and_lets_pass_afterwards(tapped):
    inside, outside = tapped.connect("parted"), tapped.connect("free")
    assert heartbeat(inside) == Error.UNKNOWN_MEMBER_ID
    with tapped.rule("partition", ("parted",)) as name:
        sent = beat(inside)
        assert not answered_within(inside, sent, SOON_S)
        fresh = tapped.connect("parted")
        asked = beat(fresh)
        assert not answered_within(fresh, asked, SOON_S)
        assert heartbeat(outside) == Error.UNKNOWN_MEMBER_ID
        assert tapped.tap.hits()[name] == 2
        before = tapped.logged("parted")
    assert answered_within(inside, sent, WITHIN_S)
    assert answered_within(fresh, asked, WITHIN_S)
    assert before == 1
    kinds = [(kind, content["tap"]["rules"]) for kind, content in tapped.awaited_lines("parted", 3)
             if "tap" in content]  # fmt: skip
    assert kinds == [("Completed", [name])] * 2


def test_partition_one_way_lets_the_other_pass(tapped):
    member = tapped.connect("one-way")
    find(member)
    with tapped.rule("partition", ("one-way",), way="to-client"):
        sent = beat(member)
        assert not answered_within(member, sent, SOON_S)
        deadline = time.monotonic() + 10
        while tapped.logged("one-way") < 1:  # the broker has answered
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert answered_within(member, sent, WITHIN_S)


def test_what_a_client_that_gave_up_had_sent_is_lost(tapped):
    member = tapped.connect("gave-up")
    find(member)
    with tapped.rule("partition", ("gave-up",)):
        beat(member)
        time.sleep(0.2)
        member.close()
        [(kind, content)] = tapped.awaited_lines("gave-up", 1)
    assert kind == "Unanswered"
    assert content["tap"]["forwarded"] is False
    assert content["tap"]["why"] == "the client closed the connection"
    assert heartbeat(tapped.connect("gave-up-after")) == Error.UNKNOWN_MEMBER_ID
    assert tapped.logged("gave-up") == 0


@pytest.mark.parametrize(("way", "least_ms"), [("both", 600), ("to-broker", 300)])
def test_delay_takes_its_time_and_keeps_the_order(tapped, way, least_ms):
    member = tapped.connect(f"late-{way}")
    find(member)
    with tapped.rule("delay", (f"late-{way}",), latency_ms=300, way=way):
        began = time.monotonic()
        sent = [beat(member) for _ in range(5)]
        for exchange in sent:
            member.wait(exchange)
        took_ms = (time.monotonic() - began) * 1000
    assert took_ms >= least_ms
    assert took_ms < least_ms * 4  # they wait together, not one after the other
    _, content = tapped.awaited_lines(f"late-{way}", 5)[0]
    assert content["tap"]["requestHeldMs"] >= 300
    assert content["totalTimeMs"] >= content["remoteTimeMs"] + (300 if way == "both" else 0)


def test_a_dropped_answer_ends_the_connection(tapped):
    member = tapped.connect("loser")
    find(member)
    with tapped.rule("drop-answers", ("loser",), apis=("HEARTBEAT",), count=1) as name:
        with pytest.raises(WireError, match="closed"):
            member.wait(beat(member))
        assert heartbeat(tapped.connect("loser")) == Error.UNKNOWN_MEMBER_ID  # the count is used up
    (kind, content), _ = tapped.awaited_lines("loser", 2)
    assert kind == "Completed"
    assert content["tap"] == {"delivered": False, "why": "dropped", "rules": [name],
                              "requestHeldMs": content["tap"]["requestHeldMs"]}  # fmt: skip
    assert content["response"]["errorCode"] == Error.UNKNOWN_MEMBER_ID
    assert tapped.awaited("loser", 2) == 2


def test_a_dropped_answer_may_leave_the_connection_silent(tapped):
    member = tapped.connect("unheard")
    find(member)
    with tapped.rule("drop-answers", ("unheard",), apis=("HEARTBEAT",), count=1, then="silence"):
        first, second = beat(member), beat(member)
        assert not answered_within(member, second, SOON_S)
        assert not answered_within(member, first, 0)
    whys = [content["tap"]["why"] for _, content in tapped.awaited_lines("unheard", 2)]
    assert whys == ["dropped", "an earlier answer was dropped"]


def test_hold_waits_for_one_api_and_what_follows(tapped):
    member = tapped.connect("holder")
    find(member)
    with tapped.rule("hold", ("holder",), apis=("HEARTBEAT",)):
        find(member)  # another API passes
        sent = beat(member)
        after = member.send("FIND_COORDINATOR", 1, {"key": "any", "keyType": 0})
        assert not answered_within(member, sent, SOON_S)
        assert tapped.logged("holder") == 0
    assert answered_within(member, sent, WITHIN_S)
    assert answered_within(member, after, WITHIN_S)


def test_duplicates_arrive_twice_and_are_answered_once(tapped):
    member = tapped.connect("twice")
    find(member)
    with tapped.rule("duplicate", ("twice",), apis=("HEARTBEAT",), count=1):
        assert answered_within(member, beat(member), WITHIN_S)
        assert answered_within(member, beat(member), WITHIN_S)
    lines = tapped.awaited_lines("twice", 3)
    assert [content["tap"].get("copy") for _, content in lines if "tap" in content] == [None, True]
    assert tapped.awaited("twice", 3) == 3


def test_members_are_known_by_the_instance_id_of_their_join(tapped):
    """Its client.id says nothing; the connection's JoinGroup does."""
    member = tapped.connect("any-client")
    find(member)
    member.wait(join(member, "by-instance", "shop-1"))
    with tapped.rule("partition", ("another-name",), instance_ids=("shop-1",)):
        assert not answered_within(member, beat(member), SOON_S)


def test_brokers_and_shares_are_chosen(tapped):
    member = tapped.connect("share")
    find(member)
    with tapped.rule("partition", ("share",), brokers=(2,)):
        assert answered_within(member, beat(member), WITHIN_S)
    with tapped.rule("duplicate", ("share",), apis=("HEARTBEAT",), probability=0.5, seed=3) as name:
        for _ in range(40):
            member.wait(beat(member))
        hits = tapped.tap.hits()[name]
    assert 5 < hits < 35
    again = tap.rules.ActiveRule("r", Rule("duplicate", probability=0.5, seed=3))
    drawn = sum(again._random.random() < 0.5 for _ in range(40))
    assert hits == drawn  # the seed decides


class AnyMember(dict):
    """What an experiment knows of members: each is a dynamic one."""

    def __missing__(self, name):
        return MemberSpec(name, "any", "dynamic", None)


def seen(tapped, member: str, fault: str, **keys) -> Fault:
    """A fault of a member, whose rule is not in force yet."""
    experiment = SimpleNamespace(member_called=AnyMember())
    context = FaultContext(experiment, tapped.cluster, None, None, threading.Event(), tapped.tap)
    given = {"fault": fault, "target": {"names": [member]}, "at": "0s", "for": "9s", **keys}
    made = FAULTS[fault].model_validate(given)
    return made.aim(context, Hit(member, "any", {"brokers": [], "members": []}))


def begin(shown, rule_id):
    """Take note that a rule is in force, which may be for another member."""
    shown._rule.id, shown._rule.began_ms = rule_id, now_ms()


@pytest.mark.parametrize(("in_force", "hit"), [(True, True), (True, False), (False, False)])
def test_a_partition_is_seen_if_it_parts_the_member(tapped, in_force, hit):
    """The runner's probes are named as the member: they alone show nothing of it."""
    name = f"shown-{in_force}-{hit}"
    shown = seen(tapped, name, "net.isolate")
    member = tapped.connect(name if hit else f"another-{name}")
    find(member)
    with tapped.rule("partition", (name if in_force else "nobody",)) as rule:
        begin(shown, rule)
        shown._ask()
        sent = beat(member)
        assert answered_within(member, sent, SOON_S if hit else WITHIN_S) is not hit
        found = shown.verify()
    assert found.holds is hit, found.evidence
    if in_force:
        assert ("no request of" in found.evidence) == (not hit)
    assert ("1 of its own requests were hit" in found.evidence) == hit
    healed = shown.verify_healed()
    assert healed.holds, healed.evidence


@pytest.mark.parametrize(("in_force", "hit"), [(True, True), (True, False), (False, False)])
def test_a_delay_is_seen_if_it_delays_the_member(tapped, in_force, hit):
    name = f"slow-{in_force}-{hit}"
    shown = seen(tapped, name, "net.delay", latency="500ms")
    member = tapped.connect(name if hit else f"another-{name}")
    with tapped.rule("delay", (name if in_force else "nobody",), latency_ms=500) as rule:
        begin(shown, rule)
        find(member)
        found = shown.verify()
    assert found.holds is hit, found.evidence
    if in_force:
        assert ("no request of" in found.evidence) == (not hit)


def test_a_machine_on_which_everything_is_slow_shows_no_delay(tapped):
    shown = seen(tapped, "all-slow", "net.delay", latency="300ms")
    with tapped.rule("delay", None, latency_ms=300) as rule:  # of any client
        begin(shown, rule)
        found = shown.verify()
    assert not found.holds
    assert found.evidence.endswith("but so did that of another client")


@pytest.mark.parametrize("in_force", [True, False])
def test_a_hold_is_seen_in_what_the_tap_has(tapped, in_force):
    name = f"held-{in_force}"
    shown = seen(tapped, name, "net.hold", apis=["HEARTBEAT"])
    member = tapped.connect(name)
    find(member)
    with tapped.rule("hold", (name if in_force else "nobody",), apis=("HEARTBEAT",)) as active:
        begin(shown, active)
        sent = beat(member)
        assert answered_within(member, sent, SOON_S if in_force else WITHIN_S) is not in_force
        found = shown.verify()
    assert found.holds is in_force, found.evidence
    if in_force:
        assert shown.verify_healed().holds
