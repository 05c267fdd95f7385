"""Clients under faults on the wire: they are judged by what they sent, and what reached them."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reports.judgement.clients.client_rules.findings import ClientRules
from reports.judgement.run.deliveries import Deliveries, Delivery
from reports.judgement.run.disturbance import BrokenWire
from reports.judgement.run.faults import broken_wire_of
from tests.reports.judgement.clients.client_rules.conversation import Conversation

UNKNOWN, REBALANCE, FENCED = (
    Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID,
)  # fmt: skip
MEMBER_SINCE_MS = 5_700.0
"""About when a client of `member_of_it` sent its last heartbeat."""


def disturbed(client="c", from_ms=MEMBER_SINCE_MS, until_ms=60_000.0):
    return {"broken_wires": [BrokenWire("g", client, from_ms, until_ms)]}


def parted(client):
    return client.member_of_it().wait(8_000).beat(UNKNOWN)


def late_to_rejoin(client):
    return client.member_of_it().beat(REBALANCE).wait(12_000).join()


def late_to_sync(client):
    return client.member_of_it().beat(REBALANCE).join().wait(12_000).beat(REBALANCE)


def of_an_old_membership(client):
    client.member_of_it().beat(UNKNOWN)
    for _ in range(2):
        client.wait(1_100).send("HEARTBEAT", UNKNOWN)
    return client


@pytest.mark.parametrize(
    ("rule", "course"),
    [
        ("keeps-its-session", parted),
        ("rejoins", late_to_rejoin),
        ("syncs", late_to_sync),
        ("gives-up-what-it-lost", of_an_old_membership),
    ],
)
def test_a_client_is_excused_while_faults_break_its_own_wire(rule, course):
    assert rule in course(Conversation()).broken
    assert rule not in course(Conversation(**disturbed())).broken
    assert rule in course(Conversation(**disturbed("another"))).broken
    assert rule in course(Conversation(**disturbed(until_ms=MEMBER_SINCE_MS - 1_000))).broken


def test_a_disturbance_lasts_from_the_intent_to_the_heal():
    fault = {
        "name": "net.isolate", "group": "g", "target": "c", "meant_at_ms": 10, "healed": True,
        "healed_at_ms": 20,
    }  # fmt: skip
    restart = {**fault, "name": "member.restart"}
    assert broken_wire_of(fault) == BrokenWire("g", "c", 10, 20)
    assert broken_wire_of(restart) is None
    open_ = broken_wire_of({**fault, "healed": False, "healed_at_ms": None})
    assert open_ is not None
    assert open_.until_ms == float("inf")


class Lossy(Conversation):
    """A client some of whose answers the tap drops; the broker answered all."""

    def __init__(self, **rules):
        self.lost = {}
        super().__init__(deliveries=Deliveries(self.lost), **rules)
        self.number = 0
        add = self.rules.add

        def numbered(requests, *rest):
            kept = []
            for one in requests:
                self.number += 1
                kept.append(replace(one, serial=self.number))
            add(kept, *rest)

        self.rules.add = numbered

    def losing(self, api):
        """Lose the answer to the next request, of an API."""
        answer = Delivery(self.connection, self.now_ms, None)
        self.lost["c", api, self.number + 1] = (answer,)
        return self


@pytest.fixture(autouse=True)
def _rules_may_be_replaced(monkeypatch):
    """Let a test stand between a client and its rules."""
    loose = type("LooseRules", (ClientRules,), {})
    monkeypatch.setattr(
        "tests.reports.judgement.clients.client_rules.conversation.ClientRules", loose
    )


def test_a_leave_whose_answer_is_lost_was_sent():
    leaving = Lossy().member_of_it().event("closing")
    leaving.losing("LEAVE_GROUP").send("LEAVE_GROUP")
    assert leaving.event("closed").broken == {}
    silent = Lossy().member_of_it().event("closing").event("closed")
    assert list(silent.broken) == ["leaves-when-dynamic"]


def test_a_leave_that_was_never_answered_was_sent():
    """As where a client closes its connection and awaits no answer, at level `wire`."""
    client = Conversation().member_of_it().event("closing")
    sent = []
    add, client.rules.add = client.rules.add, lambda requests, _: sent.extend(requests)
    client.send("LEAVE_GROUP")
    client.rules.add = add
    (leave,) = sent
    client.rules.add((), (), (), [replace(leave, response=None)])
    assert client.event("closed").broken == {}


def test_a_loop_shows_though_no_answer_arrives():
    client = Lossy()
    for _ in range(20):
        client.losing("JOIN_GROUP").wait(10).join()
    assert list(client.broken) == ["does-not-loop"]
    (row,) = client.rules.rows()
    assert row["until_ms"] < 1_000.0


def test_what_a_lost_answer_said_binds_nobody():
    client = Lossy().member_of_it().losing("HEARTBEAT")
    client.beat(UNKNOWN).beat(times=3)
    assert client.broken == {}


def test_a_lost_answer_hides_no_silence():
    client = Lossy().member_of_it().losing("HEARTBEAT").beat()
    assert list(client.wait(8_000).beat(UNKNOWN).broken) == ["keeps-its-session"]
