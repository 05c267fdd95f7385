"""Members that fall silent, beside Kafka's own tests."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import REBALANCE_MS, SESSION_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE

FIVE_MINUTES_MS = 300_000
TEN_MINUTES_MS = 600_000


def test_refused_heartbeats_and_commits_do_not_maintain_the_session():
    """Only a request that passes the checks is a sign of life."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.after(SESSION_MS - 1)
    assert play.heartbeat(member, generation=7) is Error.ILLEGAL_GENERATION
    assert play.commit(member, generation=7) is Error.ILLEGAL_GENERATION
    play.after(1)
    assert play.state is State.EMPTY


@by_coordinator("lives_ms", scala=SESSION_MS, java=1)
def test_sync_in_stable_restarts_session(lives_ms):
    """Seen live on 3.9.1: in Scala it does, in Java not."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.after(SESSION_MS - 1)
    assert play.sync(member, instance="I1").error is Error.NONE
    assert play.armed(TimerKind.SESSION, member) == lives_ms
    play.after(lives_ms)
    assert play.state is State.EMPTY


def test_two_expiries_make_one_rebalance():
    """Seen live: the second member to expire only ends what the first began."""
    play = Playbook()
    statics(play, "L", "F")
    play.after(SESSION_MS)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert (play.state, play.generation) == (State.EMPTY, 2)


def test_waiting_members_do_not_expire():
    """A known member lives as long as it waits, and gets a fresh session after."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    rejoin = play.join(leader, instance="L")
    play.after(REBALANCE_MS - 1, alive=[follower])
    assert rejoin.pending
    play.join(follower, instance="F")
    assert rejoin.answer.generation == 2
    waiting = play.sync(follower)
    play.after(2 * SESSION_MS, alive=[leader])
    assert waiting.pending
    play.sync(leader)
    assert waiting.error is Error.NONE
    play.after(SESSION_MS - 1, alive=[leader])
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.member_ids == {leader}


@by_coordinator("empty_after_ms", scala=TEN_MINUTES_MS, java=FIVE_MINUTES_MS)
def test_expiry_ends_initial_delay(empty_after_ms):
    """Here with nobody left; in Scala the delay runs out all the same."""
    play = Playbook(initial_delay_ms=TEN_MINUTES_MS)
    play.join(instance="I1")
    play.after(FIVE_MINUTES_MS)
    assert play.member_ids == set()
    assert (play.state is State.EMPTY) == (empty_after_ms == FIVE_MINUTES_MS)
    play.after(empty_after_ms - FIVE_MINUTES_MS)
    assert (play.state, play.generation) == (State.EMPTY, 1)
    assert play.armed(TimerKind.JOIN) is None


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


@by_coordinator("dies_after_ms", scala=SESSION_MS, java=None)
def test_replaced_newcomer_stays_new(dies_after_ms):
    """Seen live on 3.9.1: its return starts a session, which in Scala ends though it waits."""
    play = Playbook()
    (old,) = statics(play, "I1")
    play.join(instance="I2", session_ms=SESSION_MS)
    back = play.join(instance="I2", session_ms=2 * SESSION_MS)
    play.after(SESSION_MS - 1, alive=[old])
    assert back.pending
    play.after(1)
    assert back.pending == (dies_after_ms is None)
    play.join(old, instance="I1")
    assert back.error is (Error.NONE if dies_after_ms is None else Error.UNKNOWN_MEMBER_ID)


def test_replaced_member_of_old_lives_as_long_as_it_waits():
    """A member that completed a join phase is not new any more, nor is its static replacement."""
    play = Playbook()
    old, _ = statics(play, "I1", "I2")
    back = play.join(instance="I2", subscription="payments", protocols=("roundrobin",))
    again = play.join(instance="I2", protocols=("roundrobin",))
    assert back.error is Error.FENCED_INSTANCE_ID
    play.after(2 * SESSION_MS, alive=[old])
    assert again.pending


def test_new_member_that_heartbeats_while_it_waits_may_expire():
    """Seen live on 3.9.1: its heartbeat starts a session in place of the five minutes."""
    play = Playbook()
    (old,) = statics(play, "I1")
    newcomer = play.join_dynamic("c")
    member_id = next(iter(play.member_ids - {old}))
    assert play.heartbeat(member_id) is Error.REBALANCE_IN_PROGRESS
    play.after(SESSION_MS - 1, alive=[old])
    assert newcomer.pending
    play.after(1)
    assert newcomer.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID)


def test_pending_member_holds_up_the_join_phase():
    """A join phase waits for pending members too, until they expire."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(client="c", session_ms=SESSION_MS)
    rejoin = play.join(leader, instance="L")
    play.join(follower, instance="F")
    assert rejoin.pending
    play.after(SESSION_MS)
    assert rejoin.answer.generation == 2
    assert play.group.pending_joins == frozenset()
