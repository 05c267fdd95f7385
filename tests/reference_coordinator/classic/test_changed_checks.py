"""Checks and answers that a release changed, each under all releases."""

from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, SyncResponse
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, UNDER_ALL, by_rule

pytestmark = EVERY_RELEASE

refused_if_unknown = by_rule(
    "unknown_instance_is_refused",
    "error",
    {True: Error.UNKNOWN_MEMBER_ID, False: Error.NONE},
)


@refused_if_unknown
def test_unknown_instance_is_refused_by_heartbeat_sync_and_commit(error):
    """Until 2.8 the member id alone counted then; who has another's instance is fenced anyway."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    assert play.heartbeat(follower, instance="nobody") is error
    assert play.sync(follower, instance="nobody").error is error
    assert play.commit(follower, instance="nobody") is error
    assert play.heartbeat(follower, instance="L") is Error.FENCED_INSTANCE_ID
    assert play.heartbeat("unknown", instance="nobody") is Error.UNKNOWN_MEMBER_ID


@refused_if_unknown
def test_unknown_instance_is_refused_by_leave(error):
    """A LeaveGroup names its member well, and an instance that nobody has."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    answer = play.leave((follower, "nobody"))
    assert answer.members == ((follower, "nobody", error),)
    assert (follower in play.member_ids) == (error is not Error.NONE)


@refused_if_unknown
def test_unknown_instance_is_refused_by_join_always(error):
    """JoinGroup never knew the exception."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    assert play.join(follower, instance="nobody").error is Error.UNKNOWN_MEMBER_ID


@by_rule(
    "heartbeats_count_while_completing",
    "error, session_ms",
    {True: (Error.NONE, SESSION_MS), False: (Error.REBALANCE_IN_PROGRESS, 1)},
    among=lambda profile: profile.new_members_have_sessions,
)
def test_heartbeats_count_while_completing(error, session_ms):
    """Without the rule the response is REBALANCE_IN_PROGRESS, and the session is not extended."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    play.after(SESSION_MS - 1)
    assert play.state is State.COMPLETING_REBALANCE
    assert play.heartbeat("I1-1", instance="I1") is error
    assert play.armed(TimerKind.SESSION, "I1-1") == session_ms


@pytest.mark.parametrize(("member_id", "instance"), [("m", None), ("", "I9"), ("m", "I9")])
@by_rule(
    "empty_group_takes_any_commit",
    "error",
    {True: Error.NONE, False: Error.UNKNOWN_MEMBER_ID},
)
def test_empty_group_takes_any_commit(error, member_id, instance):
    """`assign()` with a group.instance.id could not commit on 3.0 to 3.2."""
    play = Playbook()
    assert play.commit(member_id, instance=instance, generation=-1, version=8) is error
    assert play.commit(generation=-1, version=8) is Error.NONE
    (member,) = statics(play, "I1")
    play.leave((member, "I1"))
    assert play.state is State.EMPTY
    assert play.commit(member_id, instance=instance, generation=-1, version=8) is error
    assert play.commit(generation=-1, version=8) is Error.NONE


@UNDER_ALL
def test_a_refused_commit_without_a_generation_makes_the_group_known_too():
    """The group is created first: a later commit with a generation is UNKNOWN_MEMBER_ID."""
    play = Playbook()
    assert play.commit("m", generation=0, version=8) is Error.ILLEGAL_GENERATION
    play.commit("m", generation=-1, version=8)
    assert play.commit("m", generation=0, version=8) is Error.UNKNOWN_MEMBER_ID


@by_rule("failures_are_answered_in_every_version", "answered", {True: True, False: False})
def test_failures_are_answered_in_every_version(answered):
    """JoinGroup v6 was new in 2.4, which knew no error answer for it."""
    play = Playbook()
    pending = play.join(client="c").answer.member_id
    failed = JoinResponse(Error.UNKNOWN_SERVER_ERROR)
    assert play.join(pending, instance="I1", version=5).answer == failed
    unanswered = play.join(pending, instance="I1", version=6)
    assert unanswered.response == (failed if answered else None)
    assert pending in play.group.pending_joins


@by_rule(
    "pending_may_name_an_instance",
    "with_known, with_unknown",
    {
        True: (Error.NONE, Error.NONE),
        False: (Error.FENCED_INSTANCE_ID, Error.UNKNOWN_SERVER_ERROR),
    },
)
def test_pending_may_name_an_instance(with_known, with_unknown):
    """A pending member is dynamic; until 2.8 Kafka threw at the thought of anything else.

    Those named before it in the request have left by then, those after it stay.
    """
    play = Playbook()
    statics(play, "I1", "I2", "I3")
    pending = play.join(client="c").answer.member_id
    assert play.leave((pending, "I1")).members == ((pending, "I1", with_known),)
    pending = play.join(client="c").answer.member_id
    answer = play.leave(("", "I1"), (pending, "nobody"), ("", "I2"))
    if with_unknown is Error.NONE:
        assert [error for _, _, error in answer.members] == [Error.NONE] * 3
        assert set(play.group.static_ids) == {"I3"}
    else:
        assert answer == LeaveResponse(with_unknown)
        assert set(play.group.static_ids) == {"I2", "I3"}


@by_rule(
    "transaction_creates_group",
    "error",
    {True: Error.UNKNOWN_MEMBER_ID, False: Error.ILLEGAL_GENERATION},
    among=lambda profile: profile.transaction_is_checked_as_a_whole,
)
def test_transaction_creates_group(error):
    """KIP-447: a TxnOffsetCommit with a generation, to a group nobody knows."""
    play = Playbook()
    assert play.commit("m", generation=1, version=3, transactional=True) is error
    assert play.group.exists == (error is Error.UNKNOWN_MEMBER_ID)
    assert play.commit(generation=-1, version=2, transactional=True) is Error.NONE


@by_rule(
    "transaction_to_unknown_group_v6",
    "error",
    {
        Error.GROUP_ID_NOT_FOUND: Error.GROUP_ID_NOT_FOUND,
        Error.ILLEGAL_GENERATION: Error.ILLEGAL_GENERATION,
    },
    among=lambda profile: not profile.transaction_creates_group,
)
def test_transaction_to_unknown_group_v6(error):
    """KIP-1319: a transaction hears what an OffsetCommit v9 hears, from v6 on."""
    play = Playbook()
    assert play.commit("m", generation=1, version=5, transactional=True) is Error.ILLEGAL_GENERATION
    assert play.commit("m", generation=1, version=6, transactional=True) is error
    assert not play.group.exists
    assert play.commit(generation=-1, version=6, transactional=True) is Error.NONE


@by_rule(
    "transaction_is_checked_as_a_whole",
    "no_generation, no_member, unknown_instance",
    {
        True: (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.UNKNOWN_MEMBER_ID),
        False: (Error.NONE, Error.NONE, Error.NONE),
    },
)
def test_transaction_is_checked_as_a_whole(no_generation, no_member, unknown_instance):
    """Wrong ids and generations are refused; what is left out counts since 3.0."""
    play = Playbook()
    (member,) = statics(play, "I1")

    def commit(member_id: str = "", **given: Any) -> Error:
        return play.commit(member_id, version=3, transactional=True, **given)

    assert commit(generation=-1) is Error.NONE
    assert commit(member, instance="I1") is Error.NONE
    assert commit("wrong", instance="I1") is Error.FENCED_INSTANCE_ID
    assert commit("wrong") is Error.UNKNOWN_MEMBER_ID
    assert commit(member, generation=9) is Error.ILLEGAL_GENERATION
    assert commit(member, generation=-1) is no_generation
    assert commit() is no_member
    assert commit(member, instance="nobody") is unknown_instance


@UNDER_ALL
def test_transactions_do_not_care_for_the_group_s_state():
    """They keep nobody alive either, and a group without a name has none."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    before = dict(play.timers)
    play.after(1)
    assert play.commit("I1-1", version=3, transactional=True) is Error.NONE
    play.force(State.STABLE)
    assert play.commit("I1-1", version=3, transactional=True) is Error.NONE
    assert play.timers == before
    play.force(State.DEAD)
    error = play.commit(generation=-1, transactional=True)
    assert error is Error.COORDINATOR_NOT_AVAILABLE
    nameless = Playbook(group_id="")
    assert nameless.commit(generation=-1, transactional=True) is Error.INVALID_GROUP_ID


@by_rule("session_range_comes_first", "error", {True: 26, False: 16})
def test_session_range_comes_first(error):
    """Java's first release looked at the broker first, as Scala always did."""
    play = Playbook()
    play.unload()
    assert play.join("m", session_ms=9).answer.error == error


@by_rule("unload_answers_waiting", "pending", {True: False, False: True})
def test_unload_answers_waiting(pending):
    """Java 3.7 unloads a partition and says nothing to those who wait."""
    play = Playbook()
    leader, *_ = statics(play, "L", "F", "G")
    joining = play.join(leader, instance="L")
    play.unload()
    assert joining.pending == pending
    again = Playbook()
    statics(again, "L", "F")
    again.join("L-1", instance="L")
    again.join("F-1", instance="F")
    waiting = again.sync("F-1")
    again.unload()
    assert waiting.pending == pending
    if not pending:
        assert waiting.answer == SyncResponse(Error.NOT_COORDINATOR)


@UNDER_ALL
def test_sync_v5_has_to_name_type_and_protocol():
    """KIP-559: both, from v5 on, and before anything else is looked at."""
    play = Playbook()
    (member,) = statics(play, "I1")
    refused = SyncResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
    assert play.sync(member, version=5).answer == refused
    assert play.sync(member, version=5, protocol="range").answer == refused
    assert play.sync("unknown", version=5, protocol_type="consumer").answer == refused
    named = play.sync(member, version=5, protocol_type="consumer", protocol="range")
    assert named.error is Error.NONE
    assert play.sync(member, version=4).error is Error.NONE
