"""`group.max.size`, beside Kafka's own tests."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE

FULL = JoinResponse(Error.GROUP_MAX_SIZE_REACHED, member_id="")


def test_static_member_cannot_return_to_a_full_group():
    """Seen live on every release: a restart within the session is refused as well."""
    play = Playbook(max_size=2)
    _, follower = statics(play, "I1", "I2")
    assert play.join(instance="I2").answer == FULL
    assert play.id_of("I2") == follower
    assert play.rebalances == [Reason.NEW_MEMBER]


@by_coordinator("ends", scala=True, java=False)
def test_refused_join_may_end_join_phase(ends):
    """Seen live on 3.9.1: a refused pending member is waited for no longer.

    Scala sees that at once, Java with the next join that is accepted, or at the rebalance timeout.
    """
    play = Playbook(max_size=2)
    (first,) = statics(play, "I1")
    pending = play.join(client="c").answer.member_id
    second = play.join(instance="I2")
    play.join(first, instance="I1")
    assert second.pending
    assert play.join(pending, client="c").answer == FULL
    assert second.pending is not ends
    play.join(first, instance="I1")
    assert second.answer.generation == 2


@by_coordinator("runs_on", scala=True, java=False)
def test_forgotten_pending_timer_runs_on_after_a_refusal(runs_on):
    """Seen live on 3.9.1: Scala says once more, one session later, that the member is removed."""
    play = Playbook(max_size=1)
    first = play.join(client="c").answer.member_id
    second = play.join(client="c").answer.member_id
    play.join(first, client="c")
    assert play.join(second, client="c").answer == FULL
    assert (second in play.group.removed_pending_joins) == runs_on
    assert (play.armed(TimerKind.SESSION, second) is not None) == runs_on


def overloaded(play: Playbook, *, static: bool) -> list[str]:
    """Load a group of four, stored where four were allowed, under `play`'s limit; name them."""
    before = Playbook()
    names = ("a", "b", "c", "d")
    calls = [before.join(instance=n) if static else before.join_dynamic(n) for n in names]
    before.after(2 * INITIAL_DELAY_MS)
    before.sync_everyone()
    play.start_loading()
    play.load(before.records[-1])
    return [call.answer.member_id for call in calls]


def test_member_that_waits_already_is_not_shed():
    """A JoinGroup sent again takes the place of the one that waits."""
    play = Playbook(max_size=2)
    ids = overloaded(play, static=True)
    play.join(ids[0], instance="a", protocols=("range",))
    play.join(ids[1], instance="b", protocols=("range",))
    assert play.join(ids[0], instance="a", protocols=("range",)).pending
    assert play.state is State.PREPARING_REBALANCE
