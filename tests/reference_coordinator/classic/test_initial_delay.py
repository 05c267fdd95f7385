"""The first rebalance of an Empty group waits for company, beside Kafka's own tests.

`group.initial.rebalance.delay.ms`, extended by every newcomer up to the rebalance timeout.
"""

from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import REBALANCE_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE

DELAY_MS = 1_000


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
