"""The first rebalance of an Empty group waits for company.

`group.initial.rebalance.delay.ms`, extended by every newcomer up to the rebalance timeout.
"""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS as DELAY_MS
from tests.reference_coordinator.classic.playbook import REBALANCE_MS, SESSION_MS, Playbook
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE

FIVE_MINUTES_MS, TEN_MINUTES_MS = 300_000, 600_000


@case(
    "testHeartbeatExpirationShouldRemoveMember",
    empty_after_ms={"2.4": TEN_MINUTES_MS, "java": FIVE_MINUTES_MS},
)
def test_new_member_expires_in_a_long_delay(empty_after_ms):
    """Java's join phase then ends at once."""
    play = Playbook(initial_delay_ms=TEN_MINUTES_MS)
    first = play.join(client="c", version=3)
    play.after(FIVE_MINUTES_MS - 1)
    assert first.pending
    play.after(1)
    assert first.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID)
    assert play.member_ids == set()
    play.after(empty_after_ms - FIVE_MINUTES_MS - 1)
    assert (play.state is State.EMPTY) == (empty_after_ms == FIVE_MINUTES_MS)
    play.after(1)
    assert (play.state, play.generation) == (State.EMPTY, 1)
    assert play.records[-1].members == ()


@pytest.mark.parametrize(
    ("joins_ms", "rebalance_ms", "ends_ms"),
    [
        ([0], REBALANCE_MS, DELAY_MS),
        ([0, DELAY_MS - 1], REBALANCE_MS, 2 * DELAY_MS),
        ([0, DELAY_MS - 1, 2 * DELAY_MS - 1], REBALANCE_MS, 3 * DELAY_MS),
        ([0, 800, 1_600, 2_400], 2_500, 2_500),
    ],
    ids=["alone", "a second one", "a third one", "up to the rebalance timeout"],
)
@case(
    "shouldDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup",
    "shouldResetRebalanceDelayWhenNewMemberJoinsGroupInInitialRebalance",
    "shouldDelayRebalanceUptoRebalanceTimeout",
)
def test_each_newcomer_within_a_delay_starts_another_one(play, joins_ms, rebalance_ms, ends_ms):
    """At its end; members join at some times, and all are in at one."""
    calls = []
    for at_ms in joins_ms:
        play.after(at_ms - play.now_ms)
        calls.append(play.join(instance=f"I{at_ms}", rebalance_ms=rebalance_ms))
    play.after(ends_ms - play.now_ms - 1)
    assert all(call.pending for call in calls)
    play.after(1)
    assert {call.answer.generation for call in calls} == {1}
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_pending_and_returning_members_do_not_extend_the_delay(play):
    """Only members that are added count: neither an id given out nor a static replacement does.

    Nor does the delay's end wait for who has not joined yet.
    """
    play.join(instance="I1")
    play.after(DELAY_MS / 2)
    pending = play.join(client="c").answer.member_id
    back = play.join(instance="I1")
    play.after(DELAY_MS / 2)
    assert back.answer.generation == 1
    assert play.join(pending, client="c").pending
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER]


@by_coordinator("delays", scala=1, java=2)
def test_newcomers_extend_every_initial_delay(play, delays):
    """Seen live on 3.9.1: both delay whenever the group was Empty, Java extends too."""
    play.statics("I1")
    play.leave(("", "I1"))
    assert (play.state, play.generation) == (State.EMPTY, 2)
    first = play.join(instance="I1")
    play.after(DELAY_MS / 2)
    second = play.join(instance="I2")
    play.after((delays - 0.5) * DELAY_MS - 1)
    assert (first.pending, second.pending) == (True, True)
    play.after(1)
    assert second.answer.generation == 3


def test_rebalance_timeout_is_the_longest_of_all_members(play):
    """The slowest member sets the pace of everybody."""
    quick = {"rebalance_ms": REBALANCE_MS // 10, "session_ms": 100_000}
    play.join(instance="P", session_ms=100_000)
    play.join(instance="Q", **quick)
    play.after(2 * DELAY_MS)
    play.sync_everyone()
    again = play.join("Q-1", instance="Q", subscription="payments", **quick)
    play.after(REBALANCE_MS - 1)
    assert again.pending
    play.after(1)
    assert again.answer.generation == 2


def test_newcomers_of_a_later_rebalance_do_not_extend_the_next_delay(play):
    """The mark "somebody new came" is set during an initial delay alone.

    The delay itself belongs to Empty -> PreparingRebalance alone.
    """
    play.statics("I1")
    play.join(instance="I2")
    newcomer = play.join(instance="I3")
    play.rejoin("I1-1")
    assert newcomer.answer.generation == 2
    play.leave(("", "I1"), ("", "I2"), ("", "I3"))
    assert play.state is State.EMPTY
    alone = play.join(instance="I1")
    play.after(DELAY_MS)
    assert alone.answer.generation == 4


def test_a_newcomer_after_the_delay_extends_the_next_delay(play):
    """The mark "somebody new came" is cleared only where the delay is extended.

    Left over when the rebalance timeout ended the delay, it outlives the generation and lets the
    next first member wait twice (Java: `tryCompleteInitialRebalanceElseSchedule`, 3.9.1 and 4.3.0;
    Scala: `InitialDelayedJoin.onComplete`, if it was the first generation).
    """
    _, second = [play.join(instance=f"I{n}", rebalance_ms=DELAY_MS) for n in (1, 2)]
    play.after(DELAY_MS)
    assert second.answer.generation == 1
    play.leave(("", "I1"), ("", "I2"))
    assert play.state is State.EMPTY
    alone = play.join(instance="I1")
    play.after(2 * DELAY_MS - 1)
    assert alone.pending
    play.after(1)
    assert alone.answer.generation == 3


@by_coordinator("ends_after_ms", scala=2 * SESSION_MS, java=SESSION_MS)
def test_expiry_of_a_pending_member_ends_initial_delay(ends_after_ms):
    """Seen live on 3.9.1: once all others have joined, in Java alone."""
    play = Playbook(initial_delay_ms=2 * SESSION_MS)
    first = play.join(instance="I1")
    play.join(client="c", session_ms=SESSION_MS)
    play.after(ends_after_ms - 1)
    assert first.pending
    play.after(1)
    assert first.answer.generation == 1
