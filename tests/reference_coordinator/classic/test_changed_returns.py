"""The return of a static member, where a release changed it."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, UNDER_ALL, by_rule

pytestmark = EVERY_RELEASE


@by_rule(
    "return_makes_completing_group_rebalance",
    "pending, rebalances",
    {True: (True, [Reason.STATIC_REPLACED]), False: (False, [])},
)
def test_return_makes_completing_group_rebalance(pending, rebalances):
    """KAFKA-9801: the leader of 2.4 gives the work to an id that nobody has any longer."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    fenced = play.sync("F-1", instance="F")
    back = play.join(instance="F", version=6)
    assert fenced.error is Error.FENCED_INSTANCE_ID
    assert back.pending == pending
    assert play.rebalances[1:] == rebalances
    if pending:
        return
    assert back.answer == JoinResponse(Error.NONE, "F-2", 1, "consumer", "range", leader="L-1")
    play.sync("L-1", **{"L-1": "some", "F-1": "the rest"})
    assert play.state is State.STABLE
    assert play.sync("F-2").answer.assignment == ""


@by_rule(
    "return_makes_completing_group_rebalance",
    "state",
    {True: State.COMPLETING_REBALANCE, False: State.COMPLETING_REBALANCE},
)
def test_leader_that_returns_while_its_group_completes(state):
    """On 2.4 its response names its old id as the leader, and nobody sends the assignment.

    Elsewhere the group starts over, and another generation begins as soon as all are back.
    """
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    back = play.join(instance="L", version=6)
    if back.pending:
        play.join("F-1", instance="F")
    assert play.state is state
    leads = back.answer.leader == back.answer.member_id == "L-2"
    assert leads == (play.generation == 2)
    assert play.leader == "L-2"


@by_rule(
    "return_makes_completing_group_rebalance",
    "error, error_again, state",
    {
        True: (Error.REBALANCE_IN_PROGRESS, None, State.COMPLETING_REBALANCE),
        False: (Error.UNKNOWN_SERVER_ERROR, Error.UNKNOWN_SERVER_ERROR, State.COMPLETING_REBALANCE),
    },
)
def test_assignment_fails_while_a_member_lacks_the_protocol(error, error_again, state):
    """On 2.4 a return leaves the group with a protocol that it does not offer, and storing fails.

    The leader receives the error, but its SyncGroup stays pending; a JoinGroup does not help.
    """
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.join(instance="F", protocols=("roundrobin",), version=6)
    sync = play.sync("L-1", version=3, **{"L-1": "some", "F-2": "the rest"})
    assert sync.error is error
    again = play.join("L-1", instance="L", version=5)
    assert play.state is state
    if error_again is None:
        assert play.generation == 2
        return
    assert again.error is error_again
    assert play.group.members["L-1"].is_awaiting


@by_rule(
    "failures_are_answered_in_every_version",
    "answered",
    {False: False},
    among=lambda profile: not profile.return_makes_completing_group_rebalance,
)
def test_failed_sync_stays_pending(answered):
    """On 2.4 the newest version of SyncGroup has no answer for that, and the others get two."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.join(instance="F", protocols=("roundrobin",), version=6)
    sync = play.sync("L-1", version=4, **{"L-1": "some", "F-2": "the rest"})
    assert sync.pending is not answered
    assert play.group.members["L-1"].sync == sync.request
    play.leave(("", "F"))
    assert sync.error is Error.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("instance", ["L", "F"])
@by_rule(
    "return_may_change_protocol",
    "pending, rebalances",
    {True: (True, [Reason.PROTOCOL_CHANGE]), False: (False, [])},
)
def test_return_may_change_protocol(pending, rebalances, instance):
    """KAFKA-10284: with `roundrobin` alone, `range` cannot stay; before 2.6.1 it did."""
    play = Playbook()
    statics(play, "L", "F")
    back = play.join(instance=instance, protocols=("roundrobin",), version=6)
    assert back.pending == pending
    assert play.rebalances[1:] == rebalances
    if not pending:
        assert (back.answer.protocol, back.answer.generation) == ("range", 1)


@by_rule("return_is_stored", "answer", {True: Error.NONE, False: Error.FENCED_INSTANCE_ID})
def test_return_is_stored(answer):
    """KAFKA-10284: the live member was fenced by a failover, for good."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    stored = len(play.records)
    play.hold_writes = True
    back = play.join(instance="F", version=6)
    assert back.pending == (answer is Error.NONE)
    if back.pending:
        play.written(back)
    assert back.answer == JoinResponse(Error.NONE, "F-2", 1, "consumer", "range", leader=leader)
    assert len(play.records) - stored == (answer is Error.NONE)
    play.crash()
    assert play.heartbeat("F-2", instance="F") is answer


@UNDER_ALL
def test_static_rejoin_of_the_leader_is_answered_with_the_old_leader_id():
    """Below v9 everywhere, also in releases that store nothing (KAFKA-13435)."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    back = play.join(instance="L", version=6)
    assert (back.answer.leader, back.answer.members) == (leader, frozenset())
    assert play.leader == "L-2"


@UNDER_ALL
def test_no_instance_outlives_its_group():
    """A mapping that is left in an Empty group, which cannot be, is an exception."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.force(State.EMPTY)
    back = play.join(instance="I1", version=5)
    assert back.answer == JoinResponse(Error.UNKNOWN_SERVER_ERROR)
    assert play.join(member, instance="I1").answer == JoinResponse(Error.UNKNOWN_MEMBER_ID, member)
    assert play.heartbeat(member, instance="I1") is Error.UNKNOWN_MEMBER_ID
