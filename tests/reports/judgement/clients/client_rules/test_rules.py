"""Each rule on a client that keeps it and on one that breaks it."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Outage
from reports.judgement.clients.client_rules.findings import RULES
from reports.judgement.run.deliveries import COPY
from reports.judgement.run.disturbance import Absence
from reports.judgement.run.machine_log import busy
from tests.reports.judgement.clients.client_rules.conversation import Conversation

NOT_COORDINATOR, ILLEGAL = Error.NOT_COORDINATOR, Error.ILLEGAL_GENERATION
UNKNOWN, REBALANCE = Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS
ID_REQUIRED, FENCED = Error.MEMBER_ID_REQUIRED, Error.FENCED_INSTANCE_ID


def member(instance=None, **rules):
    return Conversation(instance, **rules).member_of_it()


def test_every_rule_says_what_it_demands_and_why():
    assert all(rule.demands and rule.source for rule in RULES.values())


@pytest.mark.parametrize("instance", [None, "i"])
def test_a_client_that_keeps_the_protocol_breaks_no_rule(instance):
    client = Conversation(instance, heartbeat_ms={"c": 700.0})
    client.join(ID_REQUIRED)
    client.member = "m1"
    client.join().sync().beat(REBALANCE, times=8)
    client.send("OFFSET_COMMIT")
    client.join().sync().beat(NOT_COORDINATOR, times=8)
    client.broker = "2"
    client.beat(times=3)
    client.send("OFFSET_COMMIT", UNKNOWN)
    client.member = ""
    client.join().sync().beat(times=3)
    client.event("closing")
    if instance is None:
        client.send("LEAVE_GROUP")
    client.event("closed")
    client.start().join().sync().beat(times=3)
    assert client.broken == {}


class TestJoining:
    @pytest.mark.parametrize("error", [REBALANCE, UNKNOWN, ILLEGAL])
    def test_rejoins(self, error):
        late = member().beat(error).wait(12_000)
        late.send("HEARTBEAT", error)
        assert "rejoins" in late.broken
        ended = member().beat(error).wait(100).event("killed")
        assert "rejoins" not in ended.broken
        silent = member().beat(error)
        assert "rejoins" not in silent.broken, "nothing shows that it is still up"

    def test_it_may_be_excused(self):
        frozen = Absence("g", "c", 5_000.0, 12_000.0, "frozen")
        for excuse in ({"absences": [frozen]}, {"outages": [Outage(5_000.0, 12_000.0)]}):
            late = member(**excuse).beat(REBALANCE).wait(12_000).join()
            assert "rejoins" not in late.broken

    def test_rejoins_afresh(self):
        client = member().beat(UNKNOWN).wait(500).join(UNKNOWN)
        assert client.broken == {"rejoins-afresh": ["1:11", "1:12"]}

    def test_what_was_on_its_way_breaks_nothing(self):
        client = member("i").beat(UNKNOWN)
        for _ in range(100):  # sent before the answer, and read one after the other
            client.wait(10).send("HEARTBEAT", UNKNOWN)
        assert client.join(UNKNOWN).broken == {}
        lost = member().beat(UNKNOWN).wait(500)
        lost.connection = "another"  # the answer may have been lost with the one before
        assert lost.join(UNKNOWN).broken == {}

    def test_keeps_its_id(self):
        client = member().beat(REBALANCE)
        client.member = ""
        assert list(client.join().broken) == ["keeps-its-id"]
        static = member("i").beat(REBALANCE)
        static.member = ""
        assert static.join().broken == {}

    def test_takes_its_id(self):
        client = Conversation().join(ID_REQUIRED).wait(100).join(ID_REQUIRED)
        assert client.broken == {"takes-its-id": ["1:1", "1:2"]}

    def test_it_takes_its_id_though_it_seems_to_be_early(self):
        client = Conversation().join(ID_REQUIRED).wait(-3)
        client.member = "m1"
        client.join(UNKNOWN).wait(10)
        client.member = ""
        assert client.join(ID_REQUIRED).broken == {}

    def test_syncs(self):
        client = Conversation().join().wait(12_000)
        client.send("HEARTBEAT")
        assert client.broken == {"syncs": ["1:1", "1:2"]}

    @pytest.mark.parametrize(("every_ms", "rules"), [(20, ["does-not-loop"]), (100, [])])
    def test_does_not_loop(self, every_ms, rules):
        client = Conversation()
        for _ in range(30):
            client.wait(every_ms).join(NOT_COORDINATOR)
        assert list(client.broken) == rules

    def test_joins_when_asked(self):
        client = member()
        for _ in range(3):
            client.wait(500).join().sync()
        assert list(client.broken) == ["joins-when-asked"]
        asked = member()
        for _ in range(3):
            asked.beat(REBALANCE).join().sync()
        assert asked.broken == {}

    @pytest.mark.parametrize("member_id", ["", "m1"])
    def test_stays_when_its_coordinator_moves(self, member_id):
        client = member().beat(NOT_COORDINATOR)
        client.broker, client.member = "2", member_id
        assert list(client.join(NOT_COORDINATOR).join().broken) == [
            "stays-when-its-coordinator-moves"
        ]
        lost = member().beat(NOT_COORDINATOR).wait(6_000)
        lost.broker = "2"
        assert lost.join().broken == {}, "its session is over, as far as it knows"
        asked = member().beat(REBALANCE)
        asked.broker = "2"
        assert asked.join().broken == {}


class TestMembership:
    @pytest.mark.parametrize("error", [UNKNOWN, FENCED])
    def test_gives_up_what_it_lost(self, error):
        client = member("i").beat(error).wait(1_100)
        client.send("OFFSET_COMMIT", error)
        assert client.broken == {}, "one may have been on its way"
        client.beat(error, every_ms=1_100)
        assert client.broken == {"gives-up-what-it-lost": ["1:11", "1:12", "1:13"]}

    def test_stops_when_fenced(self):
        client = member("i").beat(FENCED).wait(500).join(FENCED)
        assert client.broken == {"stops-when-fenced": ["1:11", "1:12"]}
        gave_up = member("i")
        gave_up.member = ""
        assert gave_up.beat(FENCED).wait(500).join().broken == {}, "no other process fenced it"
        restarted = member("i").beat(FENCED).wait(500).event("killed").start()
        assert restarted.join().broken == {}

    def test_stays_when_static(self):
        client = member("i").event("closing")
        client.send("LEAVE_GROUP")
        assert client.event("closed").broken == {"stays-when-static": ["1:11"]}

    def test_leaves_when_dynamic(self):
        closes = lambda **rules: member(**rules).event("closing").event("closed")
        assert list(closes().broken) == ["leaves-when-dynamic"]
        assert closes(outages=[Outage(0.0, 1e9)]).broken == {}
        assert member().event("killed").broken == {}
        removed = member().beat(UNKNOWN).event("closing").event("closed")
        assert removed.broken == {}

    @pytest.mark.parametrize(
        ("every_ms", "rules"),
        [(700, []), (1_300, []), (1_500, ["heartbeats-at-its-interval"]),
         (300, ["heartbeats-at-its-interval"])],
    )  # fmt: skip
    def test_heartbeats_at_its_interval(self, every_ms, rules):
        client = Conversation(heartbeat_ms={"c": 700.0}).join().sync()
        for _ in range(8):
            client.beat(every_ms=every_ms)
            client.send("OFFSET_COMMIT")
        assert list(client.broken) == rules

    def test_keeps_its_session(self):
        client = member().wait(6_000).beat(UNKNOWN)
        assert client.broken == {"keeps-its-session": ["1:10", "1:11"]}
        frozen = Absence("g", "c", 6_000.0, 12_000.0, "frozen")
        assert member(absences=[frozen]).wait(6_000).beat(UNKNOWN).broken == {}
        assert member().beat(UNKNOWN).broken == {}, "it was removed by someone else"

    def test_carries_its_instance_id(self):
        client = Conversation("i").join()
        client.instance = None
        assert client.sync().beat(times=3).broken == {"carries-its-instance-id": ["1:2", "1:3"]}


class TestABusyMachine:
    BUSY = (busy(6_000.0, 9_000.0, "all waited"),)

    @pytest.mark.parametrize(
        ("busy", "unsure"),
        [(BUSY, True), ((), False), ((busy(0.0, 4_000.0, "all waited"),), False)],
    )
    def test_what_rests_on_time_proves_nothing(self, busy, unsure):
        asked = member().beat(REBALANCE)  # may be why it joins
        (found,) = asked.beat(UNKNOWN).wait(500).join(UNKNOWN).found(busy)
        assert found["rule"] == "rejoins-afresh"
        assert ("unsure" in found) == unsure
        assert "all waited" in found.get("unsure", "all waited")

    @pytest.mark.parametrize(
        "client",
        [
            member("i").beat(FENCED).wait(500).join(FENCED).wait(500).join(FENCED),
            member().beat(UNKNOWN).wait(500).join(UNKNOWN),
            member().beat(REBALANCE).join(UNKNOWN).wait(500).join(UNKNOWN),
            member("i").event("closing"),
        ],
        ids=["fenced twice", "nothing else asks it to join", "joins twice", "leaves"],
    )
    def test_what_the_order_shows_is_certain(self, client):
        if not client.broken:
            client.send("LEAVE_GROUP")
        (found,) = client.found((busy(0.0, 1e9, "all waited"),))
        assert "unsure" not in found


def test_processes_without_a_history_are_told_by_their_connections():
    client = member("i").beat(FENCED)
    client.rules._clients["c"].events.clear()
    client.connection, client.member = "another", ""
    assert client.join().broken == {}


def test_a_wire_script_may_break_rules():
    assert member("i", scripted=frozenset({"g"})).beat(FENCED).wait(500).join(FENCED).broken == {}


def test_what_the_tap_sent_again_is_nothing_that_the_client_sent():
    client = Conversation(heartbeat_ms={"c": 700.0}).join().sync()
    for _ in range(12):
        client.wait(690).send("HEARTBEAT")
        own, client.connection = client.connection, f"{client.connection}{COPY}"
        client.send("HEARTBEAT")
        client.connection = own
    assert client.broken == {}
