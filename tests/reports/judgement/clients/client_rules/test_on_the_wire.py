"""Clients under faults on the wire: they are judged by what they sent, and what reached them."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reports.judgement.clients.client_rules.findings import ClientRules
from reports.judgement.run.deliveries import Deliveries, Delivery
from reports.judgement.run.disturbance import Act
from reports.judgement.run.faults import act_of
from tests.reports.judgement.clients.client_rules.conversation import ANSWERS_MS, Conversation

UNKNOWN, REBALANCE, FENCED = (
    Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID,
)  # fmt: skip
MEMBER_SINCE_MS = 5_700.0
"""About when a client of `member_of_it` sent its last heartbeat."""


def disturbed(client="c", from_ms=MEMBER_SINCE_MS, until_ms=60_000.0):
    return {"acts": [Act("fault", "g", frozenset([client]), from_ms, until_ms, "", excuses=True)]}


def parted(client):
    return client.member_of_it().wait(8_000).beat(UNKNOWN)


def late_to_rejoin(client):
    return client.member_of_it().beat(REBALANCE).wait(12_000).join()


def late_to_sync(client):
    return client.member_of_it().beat(REBALANCE).join().wait(12_000).beat(REBALANCE)


def leaves_as_static(client):
    return client.now(instance="i").member_of_it().wait(500).leave()


def of_an_old_membership(client):
    return client.member_of_it().beat(UNKNOWN).again(2, lambda c: c.beat(UNKNOWN, every_ms=1_100))


@pytest.mark.parametrize(
    ("rule", "course"),
    [
        ("keeps-its-session", parted),
        ("rejoins", late_to_rejoin),
        ("syncs", late_to_sync),
        ("gives-up-what-it-lost", of_an_old_membership),
        ("stays-when-static", leaves_as_static),
    ],
)
def test_a_client_is_excused_while_faults_break_its_own_wire(rule, course):
    assert rule in course(Conversation()).broken
    assert rule not in course(Conversation(**disturbed())).broken
    assert rule in course(Conversation(**disturbed("another"))).broken
    assert rule in course(Conversation(**disturbed(until_ms=MEMBER_SINCE_MS - 1_000))).broken


def test_a_leave_that_may_have_arrived_just_before_the_fault_is_excused():
    """When a request arrived is known no better than its answer."""
    leaves_ms = Conversation().now(instance="i").member_of_it().wait(500).now_ms
    soon = disturbed(from_ms=leaves_ms + ANSWERS_MS / 2)
    assert "stays-when-static" not in leaves_as_static(Conversation(**soon)).broken


def test_a_disturbance_lasts_from_the_intent_to_the_heal():
    fault = {
        "name": "net.isolate", "group": "g", "target": "c", "meant_at_ms": 10, "healed": True,
        "healed_at_ms": 20, "args": {"brokers": [1], "members": []}, "broker": None,
        "injected_at_ms": 12,
    }  # fmt: skip
    for name in ("net.isolate", "member.unsubscribe"):
        found = act_of({**fault, "name": name}, 0.0)
        assert (found.group, found.clients, found.excuses) == ("g", {"c"}, True)
        assert (found.from_ms, found.until_ms) == (10, 20)
    assert not act_of({**fault, "name": "member.restart"}, 0.0).excuses
    assert not act_of({**fault, "name": "net.answer-error"}, 0.0).excuses  # it gets its answers
    open_ = act_of({**fault, "healed": False, "healed_at_ms": None}, 0.0)
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


def test_a_leave_that_was_never_answered_was_sent():
    """As where a client closes its connection and awaits no answer, at level `wire`."""
    client = Conversation().member_of_it().event("closing")
    sent = []
    add, client.rules.add = client.rules.add, lambda requests, _: sent.extend(requests)
    client.leave()
    client.rules.add = add
    (leave,) = sent
    client.rules.add((), (), (), [replace(leave, response=None)])
    assert client.event("closed").broken == {}


@pytest.mark.parametrize(
    ("course", "broken"),
    [
        (lambda c: c.member_of_it().event("closing").losing("LEAVE_GROUP").leave().event("closed"),
         []),
        (lambda c: c.member_of_it().closes(), ["leaves-when-dynamic"]),
        (lambda c: c.again(20, lambda c: c.losing("JOIN_GROUP").wait(10).join()),
         ["does-not-loop"]),
        (lambda c: c.member_of_it().losing("HEARTBEAT").beat(UNKNOWN).beat(times=3), []),
        (lambda c: c.member_of_it().losing("HEARTBEAT").beat().wait(8_000).beat(UNKNOWN),
         ["keeps-its-session"]),
    ],
    ids=["a leave without its answer", "no leave", "a loop without answers",
         "what a lost answer said binds nobody", "a lost answer hides no silence"],
)  # fmt: skip
def test_a_client_some_of_whose_answers_are_lost(course, broken):
    client = course(Lossy())
    assert list(client.broken) == broken
    assert all(row["until_ms"] < 1_000.0 for row in client.rules.rows() if "loop" in row["rule"])
