"""Situations that plays of several modules start from."""

from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import REBALANCE_MS, Playbook, statics


def stuck(play: Playbook) -> str:
    """Bring a group to where only a silent static leader is left of it; return its id."""
    session_ms = 2 * REBALANCE_MS
    leader, follower = statics(play, "L", "F", session_ms=session_ms)
    dynamic = play.join_dynamic("d", session_ms=session_ms)
    play.after(REBALANCE_MS)
    assert dynamic.answer.leader == dynamic.answer.member_id
    assert (dynamic.answer.generation, len(dynamic.answer.members)) == (2, 3)
    play.leave((follower, "F"))
    assert play.state is State.PREPARING_REBALANCE
    play.after(REBALANCE_MS)
    return leader
