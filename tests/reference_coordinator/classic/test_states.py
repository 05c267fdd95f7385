"""The states of a group: which may follow which, and what no event leads to."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import TimerFired
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    SESSION_MS,
    Playbook,
    statics,
)

ASSIGNED = {"L-1": "some", "F-1": "the rest"}


def in_state(state: State) -> Playbook:
    """Bring a group of two static members to a state; Empty is one that they have left."""
    play = Playbook()
    statics(play, "L", "F")
    match state:
        case State.EMPTY:
            play.leave(("", "L"), ("", "F"))
        case State.PREPARING_REBALANCE:
            play.join("L-1", instance="L")
        case State.COMPLETING_REBALANCE:
            play.join("L-1", instance="L")
            play.join("F-1", instance="F")
        case State.DEAD:
            play.force(State.DEAD)
    assert play.state is state
    play.transitions.clear()
    return play


def fire_all(play: Playbook) -> None:
    """Let every timer run out at once."""
    for timer in tuple(play.timers):
        play.take(TimerFired(play.now_ms, timer))


EVENTS: dict[str, Callable[[Playbook], object]] = {
    "newcomer": lambda play: play.join(instance="N"),
    "dynamic newcomer": lambda play: play.join(client="c", version=3),
    "newcomer with a second step": lambda play: play.join(client="c"),
    "leader again": lambda play: play.join("L-1", instance="L"),
    "follower again": lambda play: play.join("F-1", instance="F"),
    "other protocols": lambda play: play.join("F-1", instance="F", protocols=("roundrobin",)),
    "leader's return": lambda play: play.join(instance="L"),
    "follower's return": lambda play: play.join(instance="F"),
    "return with other protocols": lambda play: play.join(instance="F", protocols=("roundrobin",)),
    "leader's sync": lambda play: play.sync("L-1", **ASSIGNED),
    "follower's sync": lambda play: play.sync("F-1"),
    "heartbeat": lambda play: play.heartbeat("L-1"),
    "commit": lambda play: play.commit("L-1"),
    "commit without a generation": lambda play: play.commit(generation=-1),
    "transaction": lambda play: play.commit("L-1", version=3, transactional=True),
    "one leaves": lambda play: play.leave(("", "F")),
    "all leave": lambda play: play.leave(("", "L"), ("", "F")),
    "describe": lambda play: play.describe(),
    "delete": lambda play: play.delete(),
    "timers": fire_all,
    "unload": lambda play: play.unload(),
}


@pytest.mark.parametrize("state", list(State))
@case(
    "testEmptyToStableIllegalTransition",
    "testStableToStableIllegalTransition",
    "testEmptyToAwaitingRebalanceIllegalTransition",
    "testPreparingRebalanceToPreparingRebalanceIllegalTransition",
    "testPreparingRebalanceToStableIllegalTransition",
    "testAwaitingRebalanceToAwaitingRebalanceIllegalTransition",
    "testDeadToStableIllegalTransition",
    "testDeadToPreparingRebalanceIllegalTransition",
    "testDeadToAwaitingRebalanceIllegalTransition",
    "testCannotRebalanceWhenDead",
)
def test_illegal_transitions(state):
    """Whatever happens, and what may happen after it, a state follows its legal predecessors."""
    empty, preparing, completing, stable = (
        State.EMPTY,
        State.PREPARING_REBALANCE,
        State.COMPLETING_REBALANCE,
        State.STABLE,
    )
    legal = {
        (empty, preparing),
        (stable, preparing),
        (completing, preparing),
        (preparing, completing),
        (preparing, empty),
        (completing, stable),
    }
    for first in EVENTS.values():
        for second in ("leader's sync", "newcomer", "all leave", "timers"):
            play = in_state(state)
            first(play)
            EVENTS[second](play)
            seen = [(t.before, t.after) for t in play.transitions]
            assert set(seen) <= legal
            assert not seen or seen[0][0] is state
            assert all(a[1] is b[0] for a, b in pairwise(seen))


@case(
    "testDeadToStableIllegalTransition",
    "testDeadToPreparingRebalanceIllegalTransition",
    "testDeadToAwaitingRebalanceIllegalTransition",
    "testCannotRebalanceWhenDead",
)
def test_nothing_brings_a_dead_group_back():
    """It stays Dead until its broker forgets it."""
    for name, event in EVENTS.items():
        play = in_state(State.DEAD)
        event(play)
        assert play.transitions == []
        assert name == "unload" or play.state is State.DEAD


@case("testCanRebalanceWhenStable", "testStableToPreparingRebalanceTransition")
def test_can_rebalance_when_stable():
    """A newcomer is enough."""
    play = in_state(State.STABLE)
    assert play.join(instance="N").pending
    assert play.state is State.PREPARING_REBALANCE
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert play.group.previous_state is State.STABLE


@case(
    "testCanRebalanceWhenCompletingRebalance", "testAwaitingRebalanceToPreparingRebalanceTransition"
)
def test_can_rebalance_when_completing_rebalance():
    """A CompletingRebalance group can begin a rebalance."""
    play = in_state(State.COMPLETING_REBALANCE)
    assert play.join(instance="N").pending
    assert play.state is State.PREPARING_REBALANCE
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert play.group.previous_state is State.COMPLETING_REBALANCE


@case(
    "testCannotRebalanceWhenPreparingRebalance",
    "testPreparingRebalanceToPreparingRebalanceIllegalTransition",
)
def test_cannot_rebalance_when_preparing_rebalance():
    """Joins, rejoins and leaves all belong to the rebalance under way."""
    play = in_state(State.PREPARING_REBALANCE)
    play.join(instance="N")
    play.join("L-1", instance="L", protocols=("roundrobin",))
    play.join(instance="L")
    play.leave(("", "L"))
    assert play.transitions == []
    play.join("F-1", instance="F")
    assert [t.after for t in play.transitions] == [State.COMPLETING_REBALANCE]


@pytest.mark.parametrize("leaves", [False, True])
@case("testPreparingRebalanceToEmptyTransition")
def test_preparing_rebalance_to_empty_transition(leaves):
    """When nobody is left, whether they said so or not."""
    play = Playbook()
    (member,) = statics(play, "I1")
    if leaves:
        play.leave((member, "I1"))
    else:
        play.after(SESSION_MS)
    last = play.transitions[-1]
    assert (last.before, last.after) == (State.PREPARING_REBALANCE, State.EMPTY)
    assert (play.state, play.generation, play.leader) == (State.EMPTY, 2, None)


@case("testAwaitingRebalanceToStableTransition", "testPreparingRebalanceToStableIllegalTransition")
def test_awaiting_rebalance_to_stable_transition():
    """With the leader's assignment, once that is stored; too early it is refused."""
    play = Playbook()
    play.join(instance="L")
    assert play.sync("L-1", generation=0, **ASSIGNED).error is Error.REBALANCE_IN_PROGRESS
    play.after(INITIAL_DELAY_MS)
    play.hold_writes = True
    leading = play.sync("L-1", **ASSIGNED)
    assert (leading.pending, play.state) == (True, State.COMPLETING_REBALANCE)
    play.written(leading)
    assert (leading.answer.assignment, play.state) == ("some", State.STABLE)
