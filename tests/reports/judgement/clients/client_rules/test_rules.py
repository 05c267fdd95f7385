"""Each rule on clients that keep it and on clients that break it."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Outage
from reports.judgement.clients.client_rules.findings import CLIENT_RULES
from reports.judgement.run.deliveries import COPY
from reports.judgement.run.disturbance import Absence
from reports.judgement.run.machine_log import busy
from tests.reports.judgement.clients.client_rules.conversation import Conversation
from tests.reports.judgement.clients.test_assignments import blob

NOT_COORDINATOR, ILLEGAL = Error.NOT_COORDINATOR, Error.ILLEGAL_GENERATION
UNKNOWN, REBALANCE = Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS
ID_REQUIRED, FENCED = Error.MEMBER_ID_REQUIRED, Error.FENCED_INSTANCE_ID


def member(instance=None, **rules):
    return Conversation(instance, **rules).member_of_it()


def frozen(from_ms):
    return [Absence("g", "c", from_ms, 12_000.0, "frozen")]


def every(ms, **known):
    """Send heartbeats with commits between them, at an interval."""
    client = Conversation(heartbeat_ms={"c": 700.0}, **known).join().sync()
    return client.again(8, lambda c: c.beat(every_ms=ms).commit())


def moved(member_id):
    return member().beat(NOT_COORDINATOR).now(broker="2", member=member_id)


def cooperative(*shares, assignor="cooperative-sticky"):
    """Join by itself, and be given these partitions, again and again."""
    client = Conversation()
    for share in shares:
        assignment = blob(*((topic, 0) for topic in share))
        answer = {"memberId": "m1", "generationId": 1, "protocolName": assignor}
        client.join(response=answer).wait(300)
        client.send("SYNC_GROUP", response={"assignment": assignment})
    return client


SCENARIOS = {
    # joining
    "it joins with the id that was refused":
        (lambda: member().beat(UNKNOWN).wait(500).join(UNKNOWN),
         {"rejoins-afresh": ["1:11", "1:12"]}),
    "it joins again at once with the id that was refused": (
        lambda: member().beat(UNKNOWN).join(UNKNOWN).join(UNKNOWN),
        {"rejoins-afresh": ["1:12", "1:13"]}),
    # sent before the answer, and read one after the other
    "what was on its way": (
        lambda: member("i").beat(UNKNOWN).again(100, lambda c: c.beat(UNKNOWN, every_ms=10))
        .join(UNKNOWN), {}),
    # the answer may have been lost with the connection before
    "an answer that was lost": (
        lambda: member().beat(UNKNOWN).wait(500).now(connection="another").join(UNKNOWN), {}),
    "it forgets its id": (
        lambda: member().beat(REBALANCE).now(member="").join(), {"keeps-its-id": ["1:11", "1:12"]}),
    "a static one forgets its id": (
        lambda: member("i").beat(REBALANCE).now(member="").join(), {}),
    "it does not take the id": (
        lambda: Conversation().join(ID_REQUIRED).wait(100).join(ID_REQUIRED),
        {"takes-its-id": ["1:1", "1:2"]}),
    "it takes its id, though it seems to be early": (
        lambda: Conversation().join(ID_REQUIRED).wait(-3).now(member="m1").join(UNKNOWN).wait(10)
        .now(member="").join(ID_REQUIRED), {}),
    "it does not sync": (
        lambda: Conversation().join().wait(12_000).beat(every_ms=0), {"syncs": ["1:1", "1:2"]}),
    "it joins every 20 ms": (
        lambda: Conversation().again(30, lambda c: c.wait(20).join(NOT_COORDINATOR)),
        {"does-not-loop": ["1:1", "1:2", "1:3"]}),
    "it joins every 100 ms": (
        lambda: Conversation().again(30, lambda c: c.wait(100).join(NOT_COORDINATOR)), {}),
    "it joins unasked": (
        lambda: member().again(3, lambda c: c.wait(500).join().sync()),
        {"joins-when-asked": ["1:11", "1:13", "1:15"]}),
    "it gives a partition up each time": (
        lambda: cooperative("abcd", "abc", "ab", "a"), {}),
    "it gives a partition up each time, by Streams' assignor": (
        lambda: cooperative("abcd", "abc", "ab", "a", assignor="stream"), {}),
    "it is given less each time, by an eager assignor": (
        lambda: cooperative("abcd", "abc", "ab", "a", assignor="range"),
        {"joins-when-asked": ["1:3", "1:5", "1:7"]}),
    "it gives none up": (
        lambda: cooperative("a", "ab", "abc", "abcd"),
        {"joins-when-asked": ["1:3", "1:5", "1:7"]}),
    "it joins when it is asked": (
        lambda: member().again(3, lambda c: c.beat(REBALANCE).join().sync()), {}),
    "it joins afresh at its next coordinator": (
        lambda: moved("").join(NOT_COORDINATOR).join(),
        {"stays-when-its-coordinator-moves": ["1:10", "2:13"]}),
    "it joins at its next coordinator": (
        lambda: moved("m1").join(NOT_COORDINATOR).join(),
        {"stays-when-its-coordinator-moves": ["1:10", "2:13"]}),
    "its session is over, as far as it knows": (
        lambda: member().beat(NOT_COORDINATOR).wait(6_000).now(broker="2").join(), {}),
    "its next coordinator asks it to join": (
        lambda: member().beat(REBALANCE).now(broker="2").join(), {}),
    # membership
    "it goes on once, as it may have been on its way": (
        lambda: member("i").beat(UNKNOWN).wait(1_100).commit(UNKNOWN), {}),
    "it is fenced, and joins": (
        lambda: member("i").beat(FENCED).wait(500).join(FENCED),
        {"stops-when-fenced": ["1:11", "1:12"]}),
    "it is fenced, and joins at once without the fenced id": (
        lambda: member("i").beat(FENCED).now(member="").join(),
        {"stops-when-fenced": ["1:11", "1:12"]}),
    "its commits go on under an older member id": (
        lambda: member("i").beat(UNKNOWN).now(member="").join(response={"memberId": "m2"})
        .now(member="m1").commit(FENCED).now(member="m2").wait(500).join(), {}),
    "no other process fenced it": (
        lambda: member("i").now(member="").beat(FENCED).wait(500).join(), {}),
    "another process joins": (
        lambda: member("i").beat(FENCED).wait(500).event("killed").start().join(), {}),
    "a static one leaves": (
        lambda: member("i").closes(leaves=True), {"stays-when-static": ["1:11"]}),
    "a dynamic one does not leave": (lambda: member().closes(), {"leaves-when-dynamic": ["1:10"]}),
    "it cannot leave in an outage": (lambda: member(outages=[Outage(0.0, 1e9)]).closes(), {}),
    "one that is killed does not leave": (lambda: member().event("killed"), {}),
    "one that is removed does not leave": (lambda: member().beat(UNKNOWN).closes(), {}),
    "it beats at its interval": (lambda: every(700), {}),
    "it beats somewhat seldom": (lambda: every(1_300), {}),
    "it beats too seldom": (lambda: every(1_500), {"heartbeats-at-its-interval": ["1:3", "1:5"]}),
    "it beats too often": (lambda: every(300), {"heartbeats-at-its-interval": ["1:3", "1:5"]}),
    "it lets its session end": (
        lambda: member().wait(6_000).beat(UNKNOWN), {"keeps-its-session": ["1:10", "1:11"]}),
    "it was frozen when its session ended": (
        lambda: member(absences=frozen(6_000.0)).wait(6_000).beat(UNKNOWN), {}),
    "it was removed by someone else": (lambda: member().beat(UNKNOWN), {}),
    "it leaves its instance id out": (
        lambda: Conversation("i").join().now(instance=None).sync().beat(times=3),
        {"carries-its-instance-id": ["1:2", "1:3"]}),
    "a wire script is fenced, and joins": (
        lambda: member("i", scripted=frozenset({"g"})).beat(FENCED).wait(500).join(FENCED), {}),
}  # fmt: skip


@pytest.mark.parametrize(("scenario", "broken"), SCENARIOS.values(), ids=SCENARIOS)
def test_which_rules_a_client_breaks(scenario, broken):
    client = scenario()
    assert client.broken == broken
    assert all(row["what"].startswith("c ") for row in client.rules.rows())


def test_every_rule_says_what_it_demands_and_why_and_what_to_mend():
    for rule in CLIENT_RULES.values():
        assert all(text.endswith(".") for text in (rule.demands, rule.mend)), rule.name
        assert rule.source


@pytest.mark.parametrize("instance", [None, "i"])
def test_a_client_that_keeps_the_protocol_breaks_no_rule(instance):
    client = Conversation(instance, heartbeat_ms={"c": 700.0})
    client.join(ID_REQUIRED).now(member="m1").join().sync().beat(REBALANCE, times=8).commit()
    client.join().sync().beat(NOT_COORDINATOR, times=8).now(broker="2").beat(times=3)
    client.commit(UNKNOWN).now(member="").join().sync().beat(times=3)
    client.closes(leaves=instance is None).start().join().sync().beat(times=3)
    assert client.broken == {}


@pytest.mark.parametrize("error", [REBALANCE, UNKNOWN, ILLEGAL])
def test_a_client_that_is_told_to_rejoins_in_time(error):
    late = member().beat(error).wait(12_000).beat(error, every_ms=0)
    assert "rejoins" in late.broken
    for excuse in ({"absences": frozen(5_000.0)}, {"outages": [Outage(5_000.0, 12_000.0)]}):
        excused = member(**excuse).beat(error).wait(12_000).join()
        assert "rejoins" not in excused.broken
    killed = member().beat(error).wait(100).event("killed")
    assert killed.broken == {}
    assert member().beat(error).broken == {}, "nothing shows that it is still up"


@pytest.mark.parametrize(
    ("member_id", "error", "what"), [("m1", FENCED, "none lets it in"), ("", 0, "it fences")]
)
def test_a_fenced_member_fences_another_if_it_is_let_in(member_id, error, what):
    client = member("i").beat(FENCED).wait(500).now(member=member_id).join(error)
    [row] = client.rules.rows()
    assert what in row["what"]


@pytest.mark.parametrize("error", [UNKNOWN, FENCED])
def test_a_client_gives_up_what_it_lost(error):
    client = member("i").beat(error).wait(1_100).commit(error).beat(error, every_ms=1_100)
    assert client.broken == {"gives-up-what-it-lost": ["1:11", "1:12", "1:13"]}


BUSY = (busy(6_000.0, 9_000.0, "all waited"),)


@pytest.mark.parametrize(
    ("busy", "unsure"),
    [(BUSY, True), ((), False), ((busy(0.0, 4_000.0, "all waited"),), False)],
)
def test_what_rests_on_time_proves_nothing_on_a_busy_machine(busy, unsure):
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
        member("i").event("closing").leave(),
    ],
    ids=["fenced twice", "nothing else asks it to join", "joins twice", "leaves"],
)
def test_what_the_order_shows_is_certain_on_a_busy_machine(client):
    (found,) = client.found((busy(0.0, 1e9, "all waited"),))
    assert "unsure" not in found


def leaves(client):
    return client.commit().beat(times=14).leave().wait(100).now(member="").join()


@pytest.mark.parametrize(
    ("client", "rule"),
    [
        (leaves(member()), "stays-while-it-runs"),
        (member().wait(2_000).closes(), "leaves-when-dynamic"),
    ],
    ids=["it leaves", "it closes"],
)
def test_a_machine_that_was_busy_before_a_member_was_gone_proves_nothing(client, rule):
    before_ms = client.now_ms - 1_800.0
    (found,) = client.found((busy(before_ms, before_ms + 500.0, "all waited"),))
    assert found["rule"] == rule
    assert "unsure" in found


def test_processes_without_a_history_are_told_by_their_connections():
    client = member("i").beat(FENCED)
    client.rules._clients["c"].events.clear()
    assert client.now(connection="another", member="").join().broken == {}


def test_what_the_tap_sent_again_is_nothing_that_the_client_sent():
    client = Conversation(heartbeat_ms={"c": 700.0}).join().sync()
    own = client.connection
    for _ in range(12):
        client.now(connection=own).beat(every_ms=690)
        client.now(connection=f"{own}{COPY}").beat(every_ms=0)
    assert client.broken == {}
