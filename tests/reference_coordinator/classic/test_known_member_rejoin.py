"""Members join again with the id they have, beside Kafka's own tests."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE

pytestmark = EVERY_RELEASE


def test_requests_with_an_unknown_instance_and_a_known_member_id():
    """The instance is looked at first (5.4; 3.0 and later)."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    assert play.sync(leader, instance="nobody").error is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat(leader, instance="nobody") is Error.UNKNOWN_MEMBER_ID
    assert play.commit(leader, instance="nobody") is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("state", [State.STABLE, State.COMPLETING_REBALANCE])
def test_join_group_from_changed_follower_triggers_rebalance(state):
    """Other metadata under the same protocol names counts as a change."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    if state is State.COMPLETING_REBALANCE:
        play.join(leader, instance="L")
        play.join(follower, instance="F")
    assert play.state is state
    again = play.join(follower, instance="F", subscription="orders,payments")
    assert again.pending
    assert play.rebalances[-1] is Reason.MEMBER_METADATA


def test_join_group_from_leader_in_completing_rebalance_lists_the_members():
    """Java and Scala: a leader that lost its response receives the members again."""
    play = Playbook()
    leader, follower = play.join(instance="L"), play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    assert play.join("L-1", instance="L").answer == leader.answer
    assert play.join("F-1", instance="F").answer == follower.answer
    assert len(leader.answer.members) == 2
    assert follower.answer.members == frozenset()
