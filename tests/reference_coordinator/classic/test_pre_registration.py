"""Pre-registration: an operator names the instance ids that a group is to have. Never released."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.releases import NEWEST, PRE_REGISTRATION
from reference_coordinator.classic.state import State
from reference_coordinator.timing import EXPECTED_WITHIN_MS
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    listed,
)
from tests.reference_coordinator.classic.releases import under

pytestmark = under([(PRE_REGISTRATION, {})])
LONG_MS = 10 * REBALANCE_MS


def formed(*instances: str, expected: str, **more: str) -> Playbook:
    """Form a Stable group, for which an operator then names instance ids."""
    play = Playbook()
    play.statics(*instances)
    assert play.configure(expected=expected, **more) is Error.NONE
    return play


@under([(PRE_REGISTRATION, {"rebalances": 1}), (NEWEST, {"rebalances": 4})])
def test_scale_up_of_four_costs_one_rebalance(play, rebalances):
    """Each of the four comes when the group has taken the one before in; today that costs four."""
    named = rebalances == 1
    play.statics("L", "F")
    assert play.configure(expected="L,F,A,B,C,D") is (Error.NONE if named else Error.INVALID_CONFIG)
    calls = []
    for one in "ABCD":
        calls.append(play.join(instance=one))
        if not named or one == "D":
            play.rejoin(*[m for m in play.member_ids if play.group.members[m].join is None])
            play.sync_everyone()
    assert len(play.rebalances[1:]) == rebalances
    if named:
        assert play.rebalances[1:] == [Reason.GROUP_CONFIG]
        assert [call.answer.generation for call in calls] == [2] * 4
        assert play.armed(TimerKind.WAIT) is None


def test_who_waits_does_not_disturb_the_others():
    play = formed("L", "F", expected="L,F,A,B")
    first = play.join(instance="A")
    assert first.pending
    assert play.heartbeat("L-1") is play.heartbeat("F-1") is Error.NONE
    assert play.join(instance="F").answer.generation == 1, "a static rejoin is none of the batch"
    assert play.member_ids == {"L-1", "F-2"}
    play.join(instance="B")
    assert play.heartbeat("L-1") is Error.REBALANCE_IN_PROGRESS
    (leader, *_) = play.rejoin("L-1", "F-2")
    assert leader.answer.members == first.answer.members | listed("L-1", "F-2", "A-1", "B-1")


def test_scale_down_costs_one_rebalance_when_the_last_has_left():
    play = formed("L", "F", "A", "B", expected="L,F")
    play.leave(("", "A"))
    assert (play.rebalances[1:], play.state) == ([], State.STABLE)
    play.after(SESSION_MS, alive=["L-1", "F-1"])
    assert play.member_ids == {"L-1", "F-1"}
    assert play.rebalances[1:] == [Reason.GROUP_CONFIG]


def test_some_come_and_others_go():
    """Whatever comes last starts the rebalance."""
    play = formed("L", "F", expected="L,A")
    assert play.join(instance="A").pending
    assert play.rebalances[1:] == []
    play.leave(("", "F"))
    assert play.rebalances[1:] == [Reason.GROUP_CONFIG]
    other = formed("L", "F", expected="L,A")
    other.leave(("", "F"))
    assert other.rebalances[1:] == []
    other.join(instance="A")
    assert other.rebalances[1:] == [Reason.GROUP_CONFIG]


def test_a_time_out_ends_the_wait():
    play = formed("L", "F", expected="L,F,A,B", timeout_ms="20000")
    came = play.join(instance="A")
    play.after(19_999, alive=["L-1", "F-1"])
    assert (play.rebalances[1:], came.pending) == ([], True)
    play.after(1, alive=["L-1", "F-1"])
    assert play.rebalances[1:] == [Reason.GROUP_CONFIG]
    play.rejoin("L-1", "F-1")
    assert came.answer.generation == 2
    play.sync_everyone()
    assert play.join(instance="B").pending
    assert play.rebalances[2:] == [Reason.NEW_MEMBER], "nobody waits any more"


def test_a_time_out_with_nobody_there_costs_nothing():
    play = formed("L", "F", expected="L,F,A")
    play.after(EXPECTED_WITHIN_MS, alive=["L-1", "F-1"])
    assert (play.rebalances[1:], play.state) == ([], State.STABLE)
    assert not play.group.is_unsettled


def test_who_is_named_may_still_fail():
    """The end of an expected member's session is a failure: its partitions do not lie idle."""
    play = formed("L", "F", expected="L,F,A")
    play.after(SESSION_MS, alive=["L-1"])
    assert play.rebalances[1:] == [Reason.SESSION_EXPIRED]


@pytest.mark.parametrize("who", [{"instance": "X"}, {"client": "c", "version": 3}])
def test_who_is_not_named_is_taken_in_at_once(who):
    play = formed("L", "F", expected="L,F,A")
    play.join(**who)
    assert play.rebalances[1:] == [Reason.NEW_MEMBER]


def test_a_rebalance_under_way_takes_them_in():
    play = formed("L", "F", expected="L,F,A,B")
    play.rejoin("L-1")
    assert play.state is State.PREPARING_REBALANCE
    came = play.join(instance="A")
    play.rejoin("F-1")
    assert came.answer.generation == 2
    assert play.join(instance="B").pending, "held back: the assignment is under way"
    assert play.state is State.COMPLETING_REBALANCE
    play.sync("L-1", **{"L-1": "some"})
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN, Reason.GROUP_CONFIG]


def test_the_same_instance_again_fences_what_waits():
    play = formed("L", expected="L,A,B")
    first, second = play.join(instance="A"), play.join(instance="A")
    assert first.error is Error.FENCED_INSTANCE_ID
    assert second.pending


def test_a_group_may_be_named_before_it_exists(play):
    """The first generation waits for nobody: the initial delay is there for that (KIP-134)."""
    assert play.configure(expected="L,F,A") is Error.NONE
    assert play.state is State.EMPTY
    play.statics("L", "F")
    assert play.join(instance="A").pending
    assert play.rebalances[1:] == [Reason.GROUP_CONFIG]


def test_a_failover_waits_again():
    play = formed("L", "F", "G", expected="L,F,A,B", timeout_ms="20000")
    waiting = play.join(instance="A")
    play.leave(("", "G"))
    play.after(10_000, alive=["L-1", "F-1"])
    play.unload()
    assert waiting.error is Error.NOT_COORDINATOR
    play.crash()
    assert play.member_ids == {"L-1", "F-1", "G-1"}, "what was not stored has not happened"
    assert play.armed(TimerKind.WAIT) == 20_000
    assert play.join(instance="A").pending
    assert play.join(instance="B").pending
    assert play.rebalances[1:] == []
    play.after(SESSION_MS, alive=["L-1", "F-1"])
    assert play.rebalances[1:] == [Reason.GROUP_CONFIG]
    play.rejoin("L-1", "F-1")
    play.sync_everyone()
    play.crash()
    assert play.armed(TimerKind.WAIT) is None, "the batch is over, and stored so"


def test_who_waits_for_an_empty_group_waits_no_more():
    play = formed("L", expected="L,A,B")
    came = play.join(instance="A")
    play.leave(("", "L"))
    assert play.rebalances[1:] == [Reason.LEAVE, Reason.NEW_MEMBER]
    play.after(2 * INITIAL_DELAY_MS)
    assert came.answer.generation == 3


def test_an_operator_ends_the_wait():
    play = formed("L", "F", expected="L,F,A,B")
    came = play.join(instance="A")
    assert play.configure(expected=None) is Error.NONE
    assert play.rebalances[1:] == [Reason.GROUP_CONFIG]
    play.rejoin("L-1", "F-1")
    assert came.answer.generation == 2


@pytest.mark.parametrize(
    "configs",
    [{"timeout_ms": "soon"}, {"timeout_ms": "0"}, {"timeout_ms": str(2**31)}, {"size": "3"}],
)
def test_what_is_no_config_is_refused_as_a_whole(play, configs):
    play.statics("L")
    assert play.configure(expected="L,A", **configs) is Error.INVALID_CONFIG
    assert not play.group.is_unsettled


def test_only_the_coordinator_is_asked(play):
    play.unload()
    assert play.configure(expected="L") is Error.NOT_COORDINATOR
