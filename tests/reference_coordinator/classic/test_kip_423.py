"""KIP-423: a static member says why it joins. Never released; one profile has it."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.releases import KIP_423, NEWEST
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, under

pytestmark = EVERY_RELEASE

REASONS = ("RESTART", "TOPIC_METADATA_CHANGE", "UPGRADE")
heard = under([(KIP_423, {"heard": True}), (NEWEST, {"heard": False})])
"""Run a play under the proposal, where reasons are heard, and as the newest release has it."""


@heard
@pytest.mark.parametrize("version", [8, 9])
def test_restart_of_a_leader_that_kept_its_id(heard, version):
    """Today it makes the group rebalance, whatever it joins for.

    If the reason counts, the response makes it leader, with skipAssignment from v9 on (KIP-814).
    """
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    back = play.join(leader, instance="L", reason="RESTART", version=version)
    assert back.pending != heard
    assert play.rebalances[1:] == ([] if heard else [Reason.LEADER_REJOIN])
    if heard:
        everyone = frozenset({(leader, "L", "range:orders"), (follower, "F", "range:orders")})
        assert back.answer == JoinResponse(
            Error.NONE, leader, 1, "consumer", "range", leader, version == 9, everyone
        )


@heard
def test_topic_metadata_change_of_the_leader(heard):
    """With its id the leader is heard already; returning without one it has to say it."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    assert play.join(leader, instance="L", reason="TOPIC_METADATA_CHANGE").pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN]
    again = Playbook()
    statics(again, "L", "F")
    assert again.join(instance="L", reason="TOPIC_METADATA_CHANGE").pending == heard
    assert again.rebalances[1:] == ([Reason.JOIN_REASON] if heard else [])


@heard
@pytest.mark.parametrize("keeps_id", [True, False])
def test_topic_metadata_change_of_a_follower(heard, keeps_id):
    """ "Must be from the leader": nobody else watches the topics for the group."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    member_id = follower if keeps_id else ""
    back = play.join(member_id, instance="F", reason="TOPIC_METADATA_CHANGE")
    assert (back.error, play.rebalances[1:]) == (Error.NONE, [])


@heard
@pytest.mark.parametrize("keeps_id", [True, False])
def test_upgrade_of_a_follower(heard, keeps_id):
    """ "The client is doing upgrade that requires rebalance"."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    back = play.join(follower if keeps_id else "", instance="F", reason="UPGRADE")
    assert back.pending == heard
    assert play.rebalances[1:] == ([Reason.JOIN_REASON] if heard else [])


@heard
@pytest.mark.parametrize("reason", [None, "", "restart", "RESTART ", "rolling bounce", "UNKNOWN"])
def test_unknown_reasons_change_nothing(heard, reason):
    """Only the proposal's own names are heard; the leader that gives another rebalances."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    assert play.join(instance="F", reason=reason).error is Error.NONE
    assert play.join(leader, instance="L", reason=reason).pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN]


@heard
def test_reasons_are_not_read_before_v8(heard):
    """There is no field for them, so what stands there does not come from the wire."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    assert play.join(instance="F", reason="UPGRADE", version=7).error is Error.NONE
    assert play.join(leader, instance="L", reason="RESTART", version=7).pending


@heard
@pytest.mark.parametrize("reason", REASONS)
def test_reasons_come_after_existing_checks(heard, reason):
    """A change of protocols, of the selected protocol, or a new member rebalances for itself."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    changed = play.join(follower, instance="F", subscription="payments", reason=reason)
    assert changed.pending
    assert play.rebalances[1:] == [Reason.MEMBER_METADATA]
    again = Playbook()
    statics(again, "L", "F")
    assert again.join(instance="F", protocols=("roundrobin",), reason=reason).pending
    assert again.rebalances[1:] == [Reason.PROTOCOL_CHANGE]
    third = Playbook()
    statics(third, "L", "F")
    assert third.join(instance="N", reason=reason).pending
    assert third.rebalances[1:] == [Reason.NEW_MEMBER]
    assert third.join(leader, instance="F", reason=reason).error is Error.FENCED_INSTANCE_ID


@heard
def test_a_leader_with_other_protocols_is_not_just_restarting(heard):
    """Its metadata change counts for more than what it says."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    back = play.join(leader, instance="L", subscription="payments", reason="RESTART")
    assert back.pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN]


@heard
@pytest.mark.parametrize("reason", REASONS)
def test_reasons_of_dynamic_members_are_ignored(heard, reason):
    """ "Dynamic member's behavior will not be affected"."""
    play = Playbook()
    leading = play.join_dynamic("c")
    following = play.join_dynamic("d")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    follower = following.answer.member_id
    assert play.join(follower, client="d", reason=reason).error is Error.NONE
    assert play.rebalances[1:] == []
    assert play.join(leading.answer.member_id, client="c", reason=reason).pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN]


@heard
@pytest.mark.parametrize("reason", REASONS)
def test_reasons_count_in_stable_groups_only(heard, reason):
    """While it rebalances, joins mean what they always did."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(leader, instance="L")
    assert play.join(follower, instance="F", reason=reason).error is Error.NONE
    assert play.state is State.COMPLETING_REBALANCE
    again = play.join(follower, instance="F", reason=reason)
    assert again.error is Error.NONE
    assert play.join(instance="F", reason=reason).pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN, Reason.STATIC_REPLACED]
