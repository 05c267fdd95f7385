"""Hot standby: members beyond a group's target size hold no partitions. Never released."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.hot_standby import NOTHING
from reference_coordinator.classic.releases import HOT_STANDBY, NEWEST
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import (
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    accepted,
    listed,
)
from tests.reference_coordinator.classic.releases import under

pytestmark = under([(HOT_STANDBY, {})])
WORK = {"L-1": "work of L-1", "F-1": "work of F-1"}


def formed(*spare: str, target: str = "2") -> Playbook:
    """Form a Stable group of L, F and standbys, led by L, whose target is two members."""
    play = Playbook()
    assert play.configure(target_size=target) is Error.NONE
    play.completing("L", "F", *spare)
    assert play.sync("L-1", **WORK).error is Error.NONE
    assert play.sync("F-1").answer.assignment == "work of F-1"
    return play


@under([(HOT_STANDBY, {"rebalances": []}), (NEWEST, {"rebalances": [Reason.SESSION_EXPIRED]})])
def test_a_standby_takes_the_place_of_a_member_whose_session_ends(play, rebalances):
    named = not rebalances
    play.configure(target_size="2")
    play.statics("L", "F") if named else play.statics("L", "F", "S")
    if named:
        joined = play.join(instance="S")
        assert joined.answer == accepted("S-1", 1, "L-1")
        assert play.sync("S-1").answer.assignment == NOTHING
    play.after(SESSION_MS, alive=["L-1", "S-1"])
    assert play.rebalances[1:] == rebalances
    if named:
        assert play.heartbeat("L-1") is Error.NONE
        assert play.heartbeat("S-1") is Error.REBALANCE_IN_PROGRESS
        assert play.join("S-1", instance="S").answer == accepted("S-1", 1, "L-1")
        assert play.heartbeat("S-1") is Error.NONE
        assert play.sync("S-1").answer.assignment == "work of F-1"
        assert play.sync("L-1").answer.assignment == "work of L-1", "nobody else's moved"


def test_standbys_are_none_of_the_leader_s_members():
    play = Playbook()
    play.configure(target_size="2")
    joins = [play.join(instance=one) for one in ("L", "F", "S")]
    play.after(2_000)
    assert joins[0].answer.members == listed("L-1", "F-1")
    play.sync("L-1", **WORK, **{"S-1": "work that a standby does not get"})
    assert play.sync("S-1").answer.assignment == NOTHING


def test_who_works_goes_on_working():
    """In a rebalance the workers keep their places, whichever member is longer in the group."""
    play = formed("S")
    play.join(instance="F")
    play.rejoin("L-1", "S-1", "F-2")
    assert play.state is State.COMPLETING_REBALANCE
    assert [one for one, member in play.group.members.items() if member.is_standby] == ["S-1"]


def test_a_standby_does_not_lead_if_a_member_that_works_can():
    play = Playbook()
    play.configure(target_size="1")
    play.completing("L", "F", "A")
    play.sync("L-1", **WORK)
    play.rejoin("L-1")
    play.leave(("", "L"))
    play.rejoin("A-1", "F-1")
    assert (play.group.members["A-1"].is_standby, play.leader) == (True, "F-1")


def test_a_standby_leads_if_its_leader_is_gone():
    play = formed("S")
    play.after(SESSION_MS, alive=["F-1", "S-1"])
    assert (play.rebalances[1:], play.leader) == ([], "S-1")
    assert play.heartbeat("F-1") is Error.NONE
    called = play.join("S-1", instance="S", subscription="other owned partitions")
    assert called.answer == accepted("S-1", 1, "S-1", "F-1", "S-1", skips=True)
    assert play.sync("S-1", **{"S-1": "not taken"}).answer.assignment == "work of L-1"


@pytest.mark.parametrize("leave", [("", "F"), ("F-1", None)])
def test_one_that_is_removed_is_replaced_at_once(leave):
    play = formed("S")
    play.leave(leave)
    assert (play.rebalances[1:], play.state) == ([], State.STABLE)
    assert play.heartbeat("S-1") is Error.REBALANCE_IN_PROGRESS


def test_without_enough_standbys_the_group_rebalances():
    play = formed("S")
    play.leave(("", "L"), ("", "F"))
    assert play.rebalances[1:] == [Reason.LEAVE]
    play.rejoin("S-1")
    assert play.group.workers == 1


def test_a_standby_that_goes_costs_nothing():
    play = formed("S", "T")
    play.leave(("", "S"))
    play.after(SESSION_MS, alive=["L-1", "F-1"])
    assert (play.rebalances[1:], play.member_ids) == ([], {"L-1", "F-1"})
    assert play.join(instance="N").error is Error.NONE, "who is back waits"
    assert play.rebalances[1:] == []


def test_a_return_of_a_standby_is_a_static_rejoin():
    play = formed("S")
    assert play.join(instance="S").answer.member_id == "S-2"
    assert play.sync("S-2").answer.assignment == NOTHING
    play.leave(("", "F"))
    assert play.join(instance="S").answer.member_id == "S-3", "its new process need not be called"
    assert play.heartbeat("S-3") is Error.NONE
    assert play.sync("S-3").answer.assignment == "work of F-1"


def test_what_survives_a_failover():
    play = formed("S", "T")
    play.leave(("", "F"))
    play.crash()
    assert play.heartbeat("S-1") is Error.REBALANCE_IN_PROGRESS, "it is still called"
    assert play.join("S-1", instance="S").error is Error.NONE
    assert play.sync("S-1").answer.assignment == "work of F-1"
    assert play.sync("T-1").answer.assignment == NOTHING
    assert play.join(instance="N").error is Error.NONE, "the target is stored"
    assert play.rebalances[1:] == []


@pytest.mark.parametrize(("target", "workers"), [("1", 1), ("3", 3), (None, 3)])
def test_another_target_makes_the_group_rebalance(target, workers):
    play = formed("S")
    assert play.configure(target_size=target) is Error.NONE
    assert play.rebalances[1:] == [Reason.GROUP_CONFIG]
    play.rejoin("L-1", "F-1", "S-1")
    assert play.group.workers == workers
    assert play.configure(target_size=target) is Error.NONE
    play.sync("L-1", **WORK)
    assert play.rebalances[2:] == []


def test_a_crash_before_that_rebalance_ends_starts_another():
    play = formed("S")
    play.configure(target_size="1")
    play.crash()
    assert play.rebalances[1:] == [Reason.GROUP_CONFIG] * 2


def test_who_cannot_take_over_is_taken_in():
    play = formed()
    assert play.join(instance="S", protocols=("range",)).error is Error.NONE
    other = formed()
    assert other.join(instance="S", protocols=("roundrobin",)).pending


def test_absent_workers_keep_their_places():
    """Static members that do not rejoin in time stay (KIP-345): a standby leads."""
    play = formed("S", "T")
    play.configure(target_size="1")
    rejoined = play.rejoin("S-1", "T-1")
    play.after(REBALANCE_MS, alive=["L-1", "F-1"])
    assert {call.answer.leader for call in rejoined} == {"S-1"}
    assert rejoined[0].answer.members == listed("L-1")


@pytest.mark.parametrize("target", ["0", "many", str(2**31)])
def test_what_is_no_target_is_refused(play, target):
    assert play.configure(target_size=target) is Error.INVALID_CONFIG
