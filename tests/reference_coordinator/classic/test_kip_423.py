"""KIP-423: a static member says why it joins. Never released; one profile has it."""

from base64 import b64encode
from types import SimpleNamespace

import pytest

from kafka_protocol.consumer_protocol import Subscription, TopicPartition
from kafka_protocol.errors import Error
from kafka_protocol.join_reason import JoinReason
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.rejoin_reasons import wants_the_same
from reference_coordinator.classic.releases import KIP_423, NEWEST
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, accepted
from tests.reference_coordinator.classic.releases import under

RESTART, CHANGE, UPGRADE = (
    JoinReason.RESTART, JoinReason.TOPIC_METADATA_CHANGE, JoinReason.UPGRADE
)  # fmt: skip
REASONS = pytest.mark.parametrize("reason", [RESTART, CHANGE, UPGRADE])
pytestmark = under([(KIP_423, {"heard": True}), (NEWEST, {"heard": False})])
"""Run a play under the proposal, where reasons are heard, and as the newest release has it."""


def test_restart_of_a_leader_that_kept_its_id(play, heard):
    """Today it makes the group rebalance, whatever it joins for.

    If the reason counts, the response makes it leader, with skipAssignment (KIP-814).
    """
    play.statics("L", "F")
    back = play.join("L-1", instance="L", join_reason=RESTART)
    assert back.pending != heard
    assert play.rebalances[1:] == ([] if heard else [Reason.LEADER_REJOIN])
    if heard:
        assert back.answer == accepted("L-1", 1, "L-1", "L-1", "F-1", skips=True)


def _wanting(*topics: str, owned: int | None = None, protocol: str = "range"):
    """Return a request's, or a member's, protocols; in a generation it has owned a partition."""
    parts, generation = ((), -1) if owned is None else ((TopicPartition("orders", owned),), 7)
    metadata = Subscription(topics, owned=parts, generation=generation).encode()
    return SimpleNamespace(protocols=((protocol, b64encode(metadata).decode()),))


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        (_wanting("orders", owned=0), _wanting("orders"), True),
        (_wanting("orders"), _wanting("payments"), False),
        (_wanting("orders"), _wanting("orders", "payments"), False),
        (_wanting("orders"), _wanting("orders", protocol="roundrobin"), False),
        (_wanting("orders"), SimpleNamespace(protocols=()), False),
    ],
)
def test_a_restart_may_have_forgotten_what_it_owned_and_no_more(before, now, same):
    """What a process owned, and in which generation, is in its metadata (KIP-429, KAFKA-13715)."""
    assert wants_the_same(now, before) == same


@pytest.mark.parametrize(
    ("member_id", "instance", "reason", "rebalance"),
    [
        # with its id the leader is heard already; returning without one it has to say it
        ("L-1", "L", CHANGE, Reason.LEADER_REJOIN),
        ("", "L", CHANGE, Reason.JOIN_REASON),
        # "must be from the leader": nobody else watches the topics for the group
        ("F-1", "F", CHANGE, None),
        ("", "F", CHANGE, None),
        # "the client is doing upgrade that requires rebalance"
        ("F-1", "F", UPGRADE, Reason.JOIN_REASON),
        ("", "F", UPGRADE, Reason.JOIN_REASON),
    ],
)
def test_who_may_give_which_reason(play, heard, member_id, instance, reason, rebalance):
    play.statics("L", "F")
    back = play.join(member_id, instance=instance, join_reason=reason)
    expected = None if rebalance is Reason.JOIN_REASON and not heard else rebalance
    assert play.rebalances[1:] == ([] if expected is None else [expected])
    assert back.pending == (expected is not None)
    assert back.pending or back.error is Error.NONE


@pytest.mark.parametrize("text", [None, "", "RESTART", "UPGRADE", "rolling bounce"])
def test_text_for_people_changes_nothing(play, heard, text):
    """The reason of KIP-800 is none to act by; who gives no other rebalances as today."""
    play.statics("L", "F")
    assert play.join(instance="F", reason=text).error is Error.NONE
    assert play.join("L-1", instance="L", reason=text).pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN]


def test_a_reason_that_is_not_known_counts_as_none():
    assert JoinReason(7) is JoinReason.UNKNOWN


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
        assert play.join(member_id, join_reason=reason, **asked).pending
        assert play.rebalances[1:] == [rebalance]
    assert play.join("L-1", instance="F", join_reason=reason).error is Error.FENCED_INSTANCE_ID


@REASONS
def test_reasons_of_dynamic_members_are_ignored(play, heard, reason):
    """ "Dynamic member's behavior will not be affected"."""
    leading, following = play.join_dynamic("c"), play.join_dynamic("d")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    assert play.join(following.answer.member_id, client="d", join_reason=reason).error is Error.NONE
    assert play.rebalances[1:] == []
    assert play.join(leading.answer.member_id, client="c", join_reason=reason).pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN]


@REASONS
def test_reasons_count_in_stable_groups_only(play, heard, reason):
    """While it rebalances, joins mean what they always did."""
    play.statics("L", "F")
    play.rejoin("L-1")
    for _ in range(2):
        assert play.join("F-1", instance="F", join_reason=reason).error is Error.NONE
        assert play.state is State.COMPLETING_REBALANCE
    assert play.join(instance="F", join_reason=reason).pending
    assert play.rebalances[1:] == [Reason.LEADER_REJOIN, Reason.STATIC_REPLACED]
