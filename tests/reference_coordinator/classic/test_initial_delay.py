"""The first rebalance of an Empty group waits for company.

`group.initial.rebalance.delay.ms`, extended by every newcomer up to the rebalance timeout.
"""

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import REBALANCE_MS, SESSION_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE

FIVE_MINUTES_MS = 300_000


TEN_MINUTES_MS = 600_000


@case(
    "testHeartbeatExpirationShouldRemoveMember",
    empty_after_ms={"2.4": TEN_MINUTES_MS, "java": FIVE_MINUTES_MS},
)
def test_heartbeat_expiration_should_remove_member(empty_after_ms):
    """In a long initial delay a new member expires; Java's join phase then ends at once."""
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


DELAY_MS = 1_000


@case("shouldDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup")
def test_should_delay_initial_rebalance_by_group_initial_rebalance_delay_on_empty_group():
    """One member alone is in after one delay."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    first = play.join(instance="I1")
    assert (play.state, play.rebalances) == (State.PREPARING_REBALANCE, [Reason.NEW_MEMBER])
    play.after(DELAY_MS - 1)
    assert first.pending
    play.after(1)
    assert first.answer.generation == 1


@case("shouldResetRebalanceDelayWhenNewMemberJoinsGroupInInitialRebalance")
def test_should_reset_rebalance_delay_when_new_member_joins_group_in_initial_rebalance():
    """A member that joins within a delay starts another one at its end."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    first = play.join(instance="I1")
    play.after(DELAY_MS - 1)
    second = play.join(instance="I2")
    play.after(1)
    assert (first.pending, second.pending) == (True, True)
    play.after(DELAY_MS - 1)
    third = play.join(instance="I3")
    play.after(1)
    assert third.pending
    play.after(DELAY_MS - 1)
    assert (first.pending, second.pending, third.pending) == (True, True, True)
    play.after(1)
    assert [call.answer.generation for call in (first, second, third)] == [1, 1, 1]
    assert play.rebalances == [Reason.NEW_MEMBER]


@case("shouldDelayRebalanceUptoRebalanceTimeout")
def test_should_delay_rebalance_upto_rebalance_timeout():
    """Newcomers cannot put it off past the rebalance timeout."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    timeout = 2 * DELAY_MS + 500
    calls = [play.join(instance="I1", rebalance_ms=timeout)]
    for n in range(2, 5):
        play.after(800)
        calls.append(play.join(instance=f"I{n}", rebalance_ms=timeout))
    play.after(timeout - 2_400 - 1)
    assert all(call.pending for call in calls)
    play.after(1)
    assert {call.answer.generation for call in calls} == {1}


def test_pending_and_returning_members_do_not_extend_the_delay():
    """Only members that are added count: neither an id given out nor a static replacement does."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    play.join(instance="I1")
    play.after(DELAY_MS / 2)
    play.join(client="c")
    back = play.join(instance="I1")
    play.after(DELAY_MS / 2)
    assert back.answer.generation == 1


def test_a_pending_member_does_not_hold_up_the_end_of_the_delay():
    """When the delay is over the join phase ends, even if members have not joined yet."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    first = play.join(instance="I1")
    pending = play.join(client="c").answer.member_id
    play.after(DELAY_MS)
    assert first.answer.generation == 1
    late = play.join(pending, client="c")
    assert late.pending
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER]


@by_coordinator("delays", scala=1, java=2)
def test_newcomers_extend_every_initial_delay(delays):
    """Seen live on 3.9.1: both delay whenever the group was Empty, Java extends too."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    (member,) = statics(play, "I1")
    play.leave((member, "I1"))
    assert (play.state, play.generation) == (State.EMPTY, 2)
    first = play.join(instance="I1")
    play.after(DELAY_MS / 2)
    second = play.join(instance="I2")
    play.after((delays - 0.5) * DELAY_MS - 1)
    assert (first.pending, second.pending) == (True, True)
    play.after(1)
    assert second.answer.generation == 3


def test_no_delay_when_the_group_has_members():
    """The delay belongs to Empty -> PreparingRebalance alone."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    (member,) = statics(play, "I1")
    newcomer = play.join(instance="I2")
    play.join(member, instance="I1")
    assert newcomer.answer.generation == 2


def test_rebalance_timeout_is_the_longest_of_all_members():
    """The slowest member sets the pace of everybody."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    patient, quick = [
        play.join(instance=name, rebalance_ms=timeout, session_ms=100_000)
        for name, timeout in (("P", REBALANCE_MS), ("Q", REBALANCE_MS / 10))
    ]
    play.after(2 * DELAY_MS)
    play.sync_everyone()
    rejoin = play.join(
        quick.answer.member_id,
        instance="Q",
        subscription="payments",
        rebalance_ms=REBALANCE_MS / 10,
        session_ms=100_000,
    )
    play.after(REBALANCE_MS - 1)
    assert rejoin.pending
    play.after(1)
    assert rejoin.answer.generation == patient.answer.generation + 1


def test_newcomers_of_a_later_rebalance_do_not_extend_the_next_delay():
    """The mark "somebody new came" is set during an initial delay alone."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    (first,) = statics(play, "I1")
    play.join(instance="I2")
    play.join(instance="I3")
    play.join(first, instance="I1")
    assert play.generation == 2
    play.leave(("", "I1"), ("", "I2"), ("", "I3"))
    assert play.state is State.EMPTY
    alone = play.join(instance="I1")
    play.after(DELAY_MS)
    assert alone.answer.generation == 4


def test_a_newcomer_after_the_delay_extends_the_next_delay():
    """The mark "somebody new came" is cleared only where the delay is extended.

    Left over when the rebalance timeout ended the delay, it outlives the generation and lets the
    next first member wait twice (Java: `tryCompleteInitialRebalanceElseSchedule`, 3.9.1 and 4.3.0;
    Scala: `InitialDelayedJoin.onComplete`, if it was the first generation).
    """
    play = Playbook(initial_delay_ms=DELAY_MS)
    first, second = [play.join(instance=f"I{n}", rebalance_ms=DELAY_MS) for n in (1, 2)]
    play.after(DELAY_MS)
    assert second.answer.generation == 1
    play.leave((first.answer.member_id, "I1"), (second.answer.member_id, "I2"))
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
