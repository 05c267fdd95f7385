"""Static members return with a new id; what a release changed of that."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.events import Choices
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator, by_rule

pytestmark = EVERY_RELEASE


@pytest.mark.parametrize(
    ("picked", "rebalances"), [("range", []), ("roundrobin", [Reason.PROTOCOL_CHANGE])]
)
def test_static_member_whose_return_makes_a_tie_of_the_votes(picked, rebalances):
    """Cases 11 and 12 meet: a tie is broken by hash order, so what was observed decides."""
    play = Playbook()
    statics(play, "L", "F")
    play.choices = Choices(protocol=picked)
    back = play.join(instance="F", protocols=("roundrobin", "range"))
    assert play.rebalances[1:] == rebalances
    play.join("L-1", instance="L")
    assert back.answer.protocol == picked


def test_replace_static_member_in_stable_state_starts_with_the_old_session():
    """The first session still runs with the old timeout."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    play.join(instance="F", session_ms=3 * SESSION_MS)
    play.after(SESSION_MS - 1)
    play.heartbeat(leader)
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(1)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert play.member_ids == {leader}


@by_coordinator("answered_id, alive", scala=("F-2", False), java=("F-3", True))
@pytest.mark.parametrize("version", [8, 9])
def test_store_answers_latest_return(answered_id, alive, version):
    """Seen live on 3.9.1: each return fences the one before; only the last is answered NONE.

    In Scala the first one's write does that, with the first one's id: fenced as soon as it is used.
    """
    play = Playbook()
    statics(play, "L", "F")
    play.hold_writes = True
    first = play.join(instance="F", version=version)
    second = play.join(instance="F", version=version)
    assert first.answer == JoinResponse(Error.FENCED_INSTANCE_ID, "F-2")
    play.written(first)
    assert second.pending == alive
    play.written(second)
    assert (second.error, second.answer.member_id) == (Error.NONE, answered_id)
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert play.id_of("F") == "F-3"
    expected = Error.NONE if alive else Error.FENCED_INSTANCE_ID
    assert play.heartbeat(answered_id, instance="F") is expected


def test_store_of_a_static_rejoin_does_not_answer_a_new_member_of_its_instance():
    """A member that left and joined again is another member, even in Scala."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    play.hold_writes = True
    back = play.join(instance="F")
    play.leave(("F-2", "F"))
    assert back.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID)
    anew = play.join(instance="F")
    play.written(back)
    assert anew.pending
    assert follower not in play.member_ids


def test_failed_return_that_was_followed_by_another():
    """There is nothing to take back: the next return's own write decides."""
    play = Playbook()
    statics(play, "L", "F")
    play.hold_writes = True
    first = play.join(instance="F")
    second = play.join(instance="F")
    play.written(first, Error.COORDINATOR_NOT_AVAILABLE)
    assert (second.pending, play.id_of("F")) == (True, "F-3")
    play.written(second, Error.COORDINATOR_NOT_AVAILABLE)
    assert second.answer.member_id == ""
    assert (second.error, play.id_of("F")) == (Error.COORDINATOR_NOT_AVAILABLE, "F-2")


@by_coordinator("restored", scala=("range",), java=("range", "roundrobin"))
def test_failed_return_restores_protocols(restored):
    """Seen live on 3.9.1: in Scala the member of old is left with what its return offered.

    So its next join, with what it always offered, looks like a change and rebalances the group.
    """
    play = Playbook()
    _, follower = statics(play, "L", "F")
    play.hold_writes = True
    back = play.join(instance="F", protocols=("range",))
    play.written(back, Error.COORDINATOR_NOT_AVAILABLE)
    assert tuple(name for name, _ in play.member("F").protocols) == restored
    again = play.join(follower, instance="F")
    assert again.pending == (restored == ("range",))


def test_failed_return_after_a_rebalance_began_waits_no_longer():
    """The join it was answered for no longer counts; the member of old has yet to come."""
    play = Playbook()
    leader, follower, other = statics(play, "L", "F", "G")
    play.hold_writes = True
    back = play.join(instance="F")
    play.leave((other, "G"))
    play.written(back, Error.COORDINATOR_NOT_AVAILABLE)
    assert back.error is Error.COORDINATOR_NOT_AVAILABLE
    play.hold_writes = False
    rejoin = play.join(leader, instance="L")
    assert rejoin.pending
    play.join(follower, instance="F")
    assert {m for m, _, _ in rejoin.answer.members} == {leader, follower}


def test_failed_return_of_a_candidate_leader():
    """The member selected as leader stays the leader under its old id."""
    play = Playbook()
    leader, follower, other = statics(play, "L", "F", "G")
    play.hold_writes = True
    back = play.join(instance="F")
    play.leave((leader, "L"))
    play.written(back, Error.COORDINATOR_NOT_AVAILABLE)
    assert play.group.open_leaders == {follower, other}


def test_failed_return_after_its_join_was_answered():
    """The old id is restored all the same, and the member with the new one is fenced."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.hold_writes = True
    back = play.join(instance="F")
    play.leave((leader, "L"))
    assert (back.error, back.answer.leader) == (Error.NONE, "F-2")
    play.written(back, Error.COORDINATOR_NOT_AVAILABLE)
    assert (play.leader, play.id_of("F")) == (follower, follower)
    assert play.sync("F-2", instance="F").error is Error.FENCED_INSTANCE_ID


def test_rebalance_before_a_follower_s_return_is_stored():
    """A write that comes out well answers its join, whatever the group does by then.

    The response has the current generation, and the member has to join again.
    """
    play = Playbook()
    _, _, other = statics(play, "L", "F", "G")
    play.hold_writes = True
    back = play.join(instance="F")
    play.leave((other, "G"))
    assert play.state is State.PREPARING_REBALANCE
    play.written(back)
    assert (back.error, back.answer.generation) == (Error.NONE, 1)


def test_rebalance_before_a_leader_s_return_is_stored():
    """From v9 on the response would list the members; Kafka refuses in PreparingRebalance.

    `ClassicGroup.currentClassicGroupMembers` (Scala: `GroupMetadata.currentMemberMetadata`) throws
    there, inside the write's callback, so the join stays pending and counts for the rebalance under
    way.
    """
    play = Playbook()
    _, follower, other = statics(play, "L", "F", "G")
    play.hold_writes = True
    back = play.join(instance="L", version=9)
    play.leave((other, "G"))
    play.written(back)
    assert back.pending
    play.join(follower, instance="F")
    assert (back.error, back.answer.generation) == (Error.NONE, 2)
    assert not back.answer.skip_assignment


@pytest.mark.parametrize("offered", ["", "F-1", "unknown-7"])
def test_a_new_member_id_is_bound_only_to_what_kafka_could_have_drawn(offered):
    """An id is `<instance>-<random>` and in nobody's use; any other offer is refused (1.7.6)."""
    play = Playbook()
    statics(play, "L", "F")
    back = play.join(instance="F", drawn=offered)
    assert play.bound[-1].refused == offered
    assert back.answer.member_id not in {offered, "F-1"}


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
