"""KIP-423: a static member says why it joins. Never released; one profile has it."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.releases import KIP_423, NEWEST
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, accepted
from tests.reference_coordinator.classic.releases import under

REASONS = pytest.mark.parametrize("reason", ["RESTART", "TOPIC_METADATA_CHANGE", "UPGRADE"])
pytestmark = under([(KIP_423, {"heard": True}), (NEWEST, {"heard": False})])
"""Run a play under the proposal, where reasons are heard, and as the newest release has it."""


@pytest.mark.parametrize("version", [8, 9])
def test_restart_of_a_leader_that_kept_its_id(play, heard, version):
    """Today it makes the group rebalance, whatever it joins for.

    If the reason counts, the response makes it leader, with skipAssignment from v9 on (KIP-814).
    """
    play.statics("L", "F")
    back = play.join("L-1", instance="L", reason="RESTART", version=version)
    assert back.pending != heard
    assert play.rebalances[1:] == ([] if heard else [Reason.LEADER_REJOIN])
    if heard:
        skips = version == 9
        assert back.answer == accepted("L-1", 1, "L-1", "L-1", "F-1", skips=skips)


@pytest.mark.parametrize(
    ("member_id", "instance", "reason", "rebalance"),
    [
        # with its id the leader is heard already; returning without one it has to say it
        ("L-1", "L", "TOPIC_METADATA_CHANGE", Reason.LEADER_REJOIN),
        ("", "L", "TOPIC_METADATA_CHANGE", Reason.JOIN_REASON),
        # "must be from the leader": nobody else watches the topics for the group
        ("F-1", "F", "TOPIC_METADATA_CHANGE", None),
        ("", "F", "TOPIC_METADATA_CHANGE", None),
        # "the client is doing upgrade that requires rebalance"
        ("F-1", "F", "UPGRADE", Reason.JOIN_REASON),
        ("", "F", "UPGRADE", Reason.JOIN_REASON),
    ],
)
def test_who_may_give_which_reason(play, heard, member_id, instance, reason, rebalance):
    play.statics("L", "F")
    back = play.join(member_id, instance=instance, reason=reason)
    expected = None if rebalance is Reason.JOIN_REASON and not heard else rebalance
    assert play.rebalances[1:] == ([] if expected is None else [expected])
    assert back.pending == (expected is not None)
    assert back.pending or back.error is Error.NONE


@pytest.mark.parametrize("reason", [None, "", "restart", "RESTART ", "rolling bounce", "UNKNOWN"])
def test_unknown_reasons_change_nothing(play, heard, reason):
    """Only the proposal's own names are heard; the leader that gives another rebalances."""
    play.statics("L", "F")
    assert play.join(instance="F", reason=reason).error is Error.NONE
    assert play.join("L-1", instance="L", reason=reason).pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN]


def test_reasons_are_not_read_before_v8(play, heard):
    """There is no field for them, so what stands there does not come from the wire."""
    play.statics("L", "F")
    assert play.join(instance="F", reason="UPGRADE", version=7).error is Error.NONE
    assert play.join("L-1", instance="L", reason="RESTART", version=7).pending


@REASONS
def test_reasons_come_after_existing_checks(heard, reason):
    """A change of protocols, of the selected protocol, or a new member rebalances for itself.

    A leader with other protocols is not just restarting, and a wrong id is fenced.
    """
    for member_id, asked, rebalance in (
        ("F-1", {"instance": "F", "subscription": "payments"}, Reason.MEMBER_METADATA),
        ("L-1", {"instance": "L", "subscription": "payments"}, Reason.LEADER_REJOIN),
        ("", {"instance": "F", "protocols": ("roundrobin",)}, Reason.PROTOCOL_CHANGE),
        ("", {"instance": "N"}, Reason.NEW_MEMBER),
    ):
        play = Playbook()
        play.statics("L", "F")
        assert play.join(member_id, reason=reason, **asked).pending
        assert play.rebalances[1:] == [rebalance]
    assert play.join("L-1", instance="F", reason=reason).error is Error.FENCED_INSTANCE_ID


@REASONS
def test_reasons_of_dynamic_members_are_ignored(play, heard, reason):
    """ "Dynamic member's behavior will not be affected"."""
    leading, following = play.join_dynamic("c"), play.join_dynamic("d")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    assert play.join(following.answer.member_id, client="d", reason=reason).error is Error.NONE
    assert play.rebalances[1:] == []
    assert play.join(leading.answer.member_id, client="c", reason=reason).pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN]


@REASONS
def test_reasons_count_in_stable_groups_only(play, heard, reason):
    """While it rebalances, joins mean what they always did."""
    play.statics("L", "F")
    play.rejoin("L-1")
    for _ in range(2):
        assert play.join("F-1", instance="F", reason=reason).error is Error.NONE
        assert play.state is State.COMPLETING_REBALANCE
    assert play.join(instance="F", reason=reason).pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN, Reason.STATIC_REPLACED]
