"""What a member goes on with, or without: stale generations, no heartbeats, no polls, one id."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Stall
from reports.judgement.run.disturbance import Absence, Act
from reports.judgement.run.faults import act_of
from reports.judgement.run.machine_log import busy
from tests.reports.judgement.clients.client_rules.conversation import Conversation

ILLEGAL, UNKNOWN = Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID
REBALANCE, FENCED = Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID
BUSY = (busy(0.0, 1e9, "all waited"),)


def member(instance=None, **known):
    return Conversation(instance, heartbeat_ms={"c": 700.0}, **known).member_of_it()


def acted(**traits):
    """A fault that acts on the client all the time."""
    return {"acts": (Act("fault", "g", frozenset({"c"}), 0.0, 1e9, "a fault", **traits),)}


def frozen(from_ms):
    return {"absences": [Absence("g", "c", from_ms, 60_000.0, "frozen")]}


def what(client, rule):
    """Return what is said of a client that breaks one rule, once."""
    [found] = [one for one in client.found(()) if one["rule"] == rule]
    return found["what"]


# generations


def stale(client, *apis):
    """A member of generation 2 that sends under generation 1."""
    client.beat(REBALANCE).join().sync().wait(1_100).now(generation=1)
    for api in apis:
        client.wait(500).send(api, ILLEGAL)
    return client


@pytest.mark.parametrize("api", ["OFFSET_COMMIT", "HEARTBEAT", "SYNC_GROUP"])
def test_a_request_under_an_older_generation_is_stale(api):
    assert stale(member(), api).broken == {"uses-its-generation": ["1:12", "1:14"]}


def test_a_request_that_was_on_its_way_is_not_stale():
    client = member().beat(REBALANCE).join().sync().now(generation=1)
    assert client.commit(ILLEGAL).now(generation=2).beat(times=20).broken == {}


def test_a_member_whose_wire_is_broken_may_be_late():
    assert "uses-its-generation" not in stale(member(**frozen(6_000.0)), "OFFSET_COMMIT").broken


def test_stale_commits_are_told_with_their_generations_and_their_cost():
    client = stale(member(), "OFFSET_COMMIT").now(generation=2).join().sync().wait(1_500)
    client.now(generation=1).commit(ILLEGAL)
    said = what(client, "uses-its-generation")
    assert "2 OFFSET_COMMIT under generation 1 over 1.5 s" in said
    assert "in generation 3" in said
    assert "joined again once" in said


@pytest.mark.parametrize(("times", "certain"), [(1, False), (4, True)])
def test_many_stale_commits_are_certain_on_a_busy_machine(times, certain):
    [found] = stale(member(), *["OFFSET_COMMIT"] * times).found(BUSY)
    assert ("unsure" not in found) == certain


def test_an_answer_about_an_older_generation_asks_for_nothing():
    """As `ConsumerCoordinator` has it, which compares generations first."""
    client = member().beat(REBALANCE).join().now(generation=1).commit(ILLEGAL)
    assert client.now(generation=2).sync().beat(times=20).broken == {}


# asked, and not come


def removed(client, step, answered=UNKNOWN):
    """A member that is asked, goes on for 10 s, is removed, and joins at once."""
    client.beat(REBALANCE).again(10, step).commit(answered)
    return client.now(member="").join()


def test_a_member_that_is_asked_and_removed_has_not_rejoined():
    client = member()
    waits = client.other("d").now(answers_ms=9_000.0, member="m2").wait(900)
    waits.join()
    removed(client, lambda c: c.beat(REBALANCE, every_ms=1_000))
    said = what(client, "rejoins")
    assert "the answer REBALANCE_IN_PROGRESS to its HEARTBEAT" in said
    assert "after 10.1 s the group removed it" in said
    assert "d had waited for it, up to 9.0 s" in said


def test_a_finding_names_a_few_of_many_members_that_waited():
    client = member()
    for number in range(9):
        client.other(f"d{number}").now(answers_ms=9_000.0, member="m2").wait(900).join()
    removed(client, lambda c: c.beat(REBALANCE, every_ms=1_000))
    said = what(client, "rejoins")
    assert "d0, d1" in said
    assert "d8" not in said


def test_a_member_that_is_removed_early_was_not_late():
    client = member().beat(REBALANCE).wait(2_000).commit(UNKNOWN).now(member="").join()
    assert client.broken == {}


def test_a_member_that_is_frozen_cannot_rejoin():
    late = removed(member(**frozen(9_000.0)), lambda c: c.beat(REBALANCE, every_ms=1_000))
    assert late.broken == {}


# heartbeats


def commits(client, times=10):
    return client.again(times, lambda c: c.wait(1_000).commit())


def test_a_member_that_commits_sends_heartbeats_too():
    assert "goes-on-with-its-heartbeats" in commits(member()).broken
    assert "OFFSET_COMMIT 10 times" in what(commits(member()), "goes-on-with-its-heartbeats")
    between = commits(commits(member(), 4).beat(), 4)
    assert "goes-on-with-its-heartbeats" not in between.broken
    resumed = commits(commits(member().beat(), 10).beat(), 2)
    assert "goes-on-with-its-heartbeats" in resumed.broken
    assert commits(member(**frozen(9_000.0))).broken == {}
    assert member().wait(20_000).broken == {}, "nothing shows that it goes on"
    silent = member().wait(20_000).commit(UNKNOWN).broken
    assert [*silent] == ["keeps-its-session"], "it did not go on meanwhile"


def test_commits_that_began_before_the_last_heartbeat_count():
    client = member().again(3, lambda c: c.beat().commit())
    said = what(commits(client), "goes-on-with-its-heartbeats")
    assert "sent no HEARTBEAT for 10.1 s" in said
    assert "OFFSET_COMMIT 10 times" in said, "the one before is as old as the last heartbeat"


def test_commits_without_heartbeats_are_certain_on_a_busy_machine():
    found = removed(member(), lambda c: c.wait(1_000).commit()).found(BUSY)
    assert {one["rule"] for one in found} == {"rejoins", "goes-on-with-its-heartbeats"}
    assert not any("unsure" in one for one in found)


# leaving


def away(client):
    """A member that leaves 10 s after its last commit, and comes back."""
    client.commit().beat(times=14).leave().wait(4_000)
    return client.now(member="").join().sync().beat(times=3)


def test_a_member_that_leaves_and_comes_back_was_not_polled():
    said = what(away(away(member())), "stays-while-it-runs")
    assert "left the group by itself twice, 9.9 s after its last commit" in said
    assert "max.poll.interval.ms of 10.0 s" in said
    assert "came back 4.0 s later" in said


def test_a_member_that_leaves_soon_after_a_commit_may_have_been_polled():
    client = member().commit().beat(times=3).leave().now(member="").join()
    assert "max.poll.interval.ms" not in what(client, "stays-while-it-runs")


def test_a_static_member_that_is_not_polled_falls_silent():
    client = member("i").wait(5_000).now(member="").join().sync().beat(times=3)
    assert client.broken == {"stays-while-it-runs": ["1:10", "1:11"]}
    assert member("i").wait(5_000).join().sync().broken == {}, "it keeps its member id"


def test_the_last_sign_of_a_member_counts_whatever_it_sent():
    client = member("i").commit().beat(times=8).wait(100).now(member="").join()
    assert client.broken == {}


def test_a_leave_that_may_have_arrived_after_a_fault_began_is_excused():
    (found,) = away(member()).found(())
    between, after = (away(member(**frozen(found["at_ms"] + ms))).broken for ms in (0.5, 100))
    assert between == {}, "it was answered after that"
    assert "stays-while-it-runs" in after


@pytest.mark.parametrize(("until_ms", "excused"), [(8_200.0, False), (11_000.0, True)])
def test_a_short_standstill_of_a_broker_excuses_nothing(until_ms, excused):
    found = away(member(stalls=(Stall("1", 8_000.0, until_ms),))).broken
    assert ("stays-while-it-runs" not in found) == excused


def test_a_member_that_was_removed_as_it_closed_sends_no_leave():
    client = member().event("closing").wait(2_000).commit(UNKNOWN).event("closed")
    assert client.broken == {}


@pytest.mark.parametrize(
    "client",
    [
        away(member(**acted())),
        member("i", **acted(freezes=True)).wait(5_000).now(member="").join(),
        member().closes(leaves=True).start().join().sync(),
        away(member(**frozen(9_000.0))),
    ],
    ids=["a fault acts on it", "a fault freezes it", "it closes", "it could not act"],
)
def test_what_a_member_does_not_do_by_itself(client):
    assert client.broken == {}


# instance ids


def fenced(client):
    """Two members under one id, the first of which the second fences."""
    client.other("d", "i").join()
    return client.wait(50).beat(FENCED)


def test_two_members_have_two_instance_ids():
    said = what(fenced(member("i")), "has-an-instance-id-of-its-own")
    assert said.startswith(
        "c and d both use the group.instance.id i: c was fenced once as d joined"
    )
    assert said.endswith(", and has read nothing since")
    assert fenced(member("i", **acted(gives_id=True))).broken == {}
    assert member("i").beat(FENCED).broken == {}, "its own duplicate"


ONE = {
    "group": "g", "target": "a", "broker": None, "meant_at_ms": 1.0, "injected_at_ms": 2.0,
    "healed": True, "healed_at_ms": 9.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "acts"),
    [
        ({"name": "member.restart", "args": {}}, ("a", False, False)),
        ({"name": "member.restart", "args": {"instance_id": "i"}}, ("a", False, True)),
        ({"name": "member.slow-poll", "args": {}}, ("a", True, False)),
        ({"name": "member.duplicate-instance", "args": {"duplicate": "b"}}, ("ab", False, True)),
        ({"name": "member.swap-instance", "args": {"members": ["a", "b"]}}, ("ab", False, True)),
        ({"name": "net.isolate", "args": {}}, ("a", False, False)),
    ],
)  # fmt: skip
def test_what_faults_do_to_clients(fault, acts):
    clients, *traits = acts
    found = act_of(ONE | fault, 0.0)
    assert (found.clients, [found.freezes, found.gives_id]) == (frozenset(clients), traits)
    assert (found.group, found.from_ms, found.until_ms) == ("g", 1.0, 9.0)
