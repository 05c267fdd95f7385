"""The states of a group: which may follow which, and the table that says so, as the docs do."""

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kafka_protocol.errors import Error
from kafka_protocol.join_reason import JoinReason
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import DescribeReceived, JoinReceived, TimerFired
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import (
    HOT_STANDBY,
    KIP_423,
    NEWEST,
    PRE_REGISTRATION,
    PROFILES,
)
from reference_coordinator.classic.state import Group, State
from reference_coordinator.classic.step import _HANDLERS, step
from reference_coordinator.classic.transitions import (
    ANY,
    EMPTY,
    LOADING_GROUP,
    NEVER,
    PREPARING,
    STABLE,
    TABLE,
    Cause,
)
from reference_coordinator.timing import EXPECTED_WITHIN_MS
from tests.reference_coordinator.classic import transition_check
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    in_state,
)
from tests.reference_coordinator.classic.test_properties import LEGAL
from tests.reference_coordinator.classic.transition_check import Taken, checked_steps, row_of, taken

DOCS = Path(__file__).parents[3] / "docs"
ASSIGNED = {"L-1": "some", "F-1": "the rest"}


def fire_all(play: Playbook) -> None:
    """Let every timer run out at once."""
    for timer in tuple(play.timers):
        play.take(TimerFired(play.now_ms, timer))


def fail_the_assignment(play: Playbook) -> None:
    """Let it not be stored."""
    play.hold_writes = True
    if (sync := play.sync("L-1", **ASSIGNED)).pending:
        play.written(sync, Error.COORDINATOR_NOT_AVAILABLE)


def sync_the_leader_alone(play: Playbook) -> None:
    """Let the follower beat, and never sync."""
    play.sync("L-1", **ASSIGNED)
    play.after(REBALANCE_MS, alive=["L-1", "F-1"])


def unload_under_way(play: Playbook) -> None:
    """Let the broker give the group up before the assignment is stored."""
    play.hold_writes = True
    play.sync("L-1", **ASSIGNED)
    play.unload()


EVENTS: dict[str, Callable[[Playbook], object]] = {
    "newcomer": lambda play: play.join(instance="N"),
    "dynamic newcomer": lambda play: play.join(client="c", version=3),
    "newcomer with a second step": lambda play: play.join(client="c"),
    "leader again": lambda play: play.rejoin("L-1"),
    "follower again": lambda play: play.rejoin("F-1"),
    "other protocols": lambda play: play.join("F-1", instance="F", protocols=("roundrobin",)),
    "leader's return": lambda play: play.join(instance="L"),
    "follower's return": lambda play: play.join(instance="F"),
    "return with other protocols": lambda play: play.join(instance="F", protocols=("roundrobin",)),
    "return with a reason": lambda play: play.join(instance="F", join_reason=JoinReason.UPGRADE),
    "leader's sync": lambda play: play.sync("L-1", **ASSIGNED),
    "follower's sync": lambda play: play.sync("F-1"),
    "assignment that is not stored": fail_the_assignment,
    "heartbeat": lambda play: play.heartbeat("L-1"),
    "commit": lambda play: play.commit("L-1"),
    "commit without a generation": lambda play: play.commit(generation=-1),
    "transaction": lambda play: play.commit("L-1", version=3, transactional=True),
    "one leaves": lambda play: play.leave(("", "F")),
    "all leave": lambda play: play.leave(("", "L"), ("", "F")),
    "describe": lambda play: play.describe(),
    "delete": lambda play: play.delete(),
    "expire": lambda play: play.state is State.EMPTY and play.expire(),
    "timers": fire_all,
    "sessions end": lambda play: play.after(SESSION_MS),
    "all beat, and do no more": lambda play: play.after(REBALANCE_MS, alive=["L-1", "F-1"]),
    "leader alone syncs": sync_the_leader_alone,
    "leader alone beats": lambda play: play.after(REBALANCE_MS, alive=["L-1"]),
    "unload": lambda play: play.unload(),
    "unload under way": unload_under_way,
    "crash": lambda play: play.crash(),
}


def no_member_is_left(play: Playbook, *, held_back: bool = False) -> None:
    """Let a member leave, and another live on without joining again, while a third may wait."""
    calls = [play.join_dynamic(client, session_ms=10 * REBALANCE_MS) for client in "cd"]
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    if held_back:
        play.configure(expected="M,N")
        play.join(instance="M")
    play.leave((calls[0].answer.member_id, None))
    play.after(REBALANCE_MS)


def is_loaded_over_capacity() -> None:
    small = Playbook(max_size=1)
    small.start_loading()
    small.load(in_state(State.STABLE).records[-1])


def a_batch_comes_and_goes() -> None:
    """Let each cause be the one that ends the wait, and each leave an Empty group for those."""
    ends: list[Callable[[Playbook], object]] = [
        lambda play: play.join(instance="N"),
        lambda play: play.configure(expected=None),
        lambda play: play.after(EXPECTED_WITHIN_MS, alive=["L-1", "F-1"]),
        lambda play: play.leave(("", "F")),
        lambda play: play.after(SESSION_MS, alive=["L-1"]),
    ]
    for place, end in enumerate(ends):
        play = in_state(State.STABLE)
        play.configure(expected="L,N" if place > 2 else "L,F,M,N")
        play.join(instance="N" if place > 2 else "M")
        end(play)
    no_member_is_left(Playbook(), held_back=True)
    last_gone: dict[State, Callable[[Playbook], object]] = {
        State.STABLE: lambda play: play.leave(("", "L"), ("", "F")),
        State.PREPARING_REBALANCE: lambda play: play.after(2 * SESSION_MS),
        State.COMPLETING_REBALANCE: lambda play: play.after(REBALANCE_MS, alive=["L-1", "F-1"]),
    }
    for state, go in last_gone.items():
        play = in_state(State.STABLE)
        play.configure(expected="L,F,M,N")
        play.join(instance="M")
        if state is State.COMPLETING_REBALANCE:
            play.rejoin("L-1", "F-1")
        go(play)
    play = in_state(State.COMPLETING_REBALANCE)
    play.configure(expected="L,F,N")
    play.join(instance="N")
    play.sync("L-1", **ASSIGNED)
    unnamed = Playbook()
    unnamed.configure(expected="L")


def test_each_row_is_taken(monkeypatch):
    monkeypatch.setattr(transition_check, "TAKEN", set())
    for profile in (NEWEST, KIP_423, PROFILES["3.9-scala"]):
        monkeypatch.setattr(Playbook, "release", profile)
        for event in EVENTS.values():
            event(Playbook())
            for state in State:
                event(in_state(state))
        no_member_is_left(Playbook())
        is_loaded_over_capacity()
    monkeypatch.setattr(Playbook, "release", PRE_REGISTRATION)
    a_batch_comes_and_goes()
    monkeypatch.setattr(Playbook, "release", HOT_STANDBY)
    loaded = in_state(State.STABLE)
    loaded.configure(target_size="1")
    loaded.crash()
    assert set(TABLE) == transition_check.TAKEN


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
    """Whatever happens, and when all timers then run out, a state follows legal predecessors.

    Nothing brings a Dead group back: it stays Dead until its broker forgets it.
    """
    for name, event in EVENTS.items():
        play = in_state(state)
        before = len(play.transitions)
        event(play)
        fire_all(play)
        seen = [(t.before, t.after) for t in play.transitions[before:]]
        assert set(seen) <= LEGAL
        assert not seen or seen[0][0] is state or name == "crash"
        assert all(a[1] is b[0] for a, b in pairwise(seen))
        if state is State.DEAD and name not in {"crash", "unload", "unload under way"}:
            assert (seen, play.state) == ([], State.DEAD)


@pytest.mark.parametrize("state", [State.STABLE, State.COMPLETING_REBALANCE])
@case(
    "testCanRebalanceWhenStable",
    "testStableToPreparingRebalanceTransition",
    "testCanRebalanceWhenCompletingRebalance",
    "testAwaitingRebalanceToPreparingRebalanceTransition",
)
def test_a_newcomer_makes_the_group_rebalance(state):
    play = in_state(state)
    assert play.join(instance="N").pending
    assert (play.state, play.group.previous_state) == (State.PREPARING_REBALANCE, state)
    assert play.rebalances[-1] is Reason.NEW_MEMBER


@case(
    "testCannotRebalanceWhenPreparingRebalance",
    "testPreparingRebalanceToPreparingRebalanceIllegalTransition",
)
def test_joins_and_leaves_belong_to_the_rebalance_under_way():
    play = in_state(State.PREPARING_REBALANCE)
    before = len(play.transitions)
    play.join(instance="N")
    play.join("L-1", instance="L", protocols=("roundrobin",))
    play.join(instance="L")
    play.leave(("", "L"))
    assert play.transitions[before:] == []
    play.rejoin("F-1")
    assert [t.after for t in play.transitions[before:]] == [State.COMPLETING_REBALANCE]


@pytest.mark.parametrize("leaves", [False, True])
@case("testPreparingRebalanceToEmptyTransition")
def test_group_is_empty_when_nobody_is_left(play, leaves):
    """Whether they said so or not."""
    play.statics("I1")
    if leaves:
        play.leave(("", "I1"))
    else:
        play.after(SESSION_MS)
    last = play.transitions[-1]
    assert (last.before, last.after) == (State.PREPARING_REBALANCE, State.EMPTY)
    assert (play.state, play.generation, play.leader) == (State.EMPTY, 2, None)


@case("testAwaitingRebalanceToStableTransition", "testPreparingRebalanceToStableIllegalTransition")
def test_group_is_stable_once_the_assignment_is_stored(play):
    """The leader's; too early it is refused."""
    play.join(instance="L")
    assert play.sync("L-1", generation=0, **ASSIGNED).error is Error.REBALANCE_IN_PROGRESS
    play.after(INITIAL_DELAY_MS)
    play.hold_writes = True
    leading = play.sync("L-1", **ASSIGNED)
    assert (leading.pending, play.state) == (True, State.COMPLETING_REBALANCE)
    play.written(leading)
    assert (leading.answer.assignment, play.state) == ("some", State.STABLE)


def test_each_row_is_one_transition_with_its_reason_and_rule():
    assert len({(*row[:3], row.reason) for row in TABLE}) == len(TABLE)
    assert all((row.reason is not None) == (row.after == PREPARING) for row in TABLE)
    rules = {row.rule.removeprefix("not ") for row in TABLE} - {""}
    assert rules <= {*Profile.__dataclass_fields__}


def test_a_transition_that_is_not_in_the_table_has_no_row():
    assert row_of(Taken(EMPTY, Cause.JOIN, STABLE)) is None
    assert row_of(Taken(STABLE, Cause.LOADED, EMPTY)).before == ANY


def test_an_event_that_changes_no_state_takes_no_transition():
    event = DescribeReceived(0.0, "r", 5)
    after, effects = step(Group("g"), event, NEWEST)
    assert list(taken(Group("g"), event, effects, after)) == []


def test_a_step_without_a_row_fails(monkeypatch):
    """The check itself can fail: a handler that makes an Empty group Stable is caught."""
    play = Playbook()
    play.commit(generation=-1)
    monkeypatch.setitem(
        _HANDLERS, JoinReceived, lambda context, _: context.change(state=State.STABLE)
    )
    with checked_steps(), pytest.raises(AssertionError, match="has no row"):
        play.join(instance="L")


def test_the_picture_has_the_states_and_the_causes_of_the_table():
    """`tests/docs/test_pages.py` compares the page."""
    drawn = ET.parse(DOCS / "images" / "state-machine.svg")
    boxes = {text.text for text in drawn.findall("{*}text")}
    arrows = {
        arrow.findtext("{*}title"): ", ".join(line.text for line in arrow.findall("{*}text"))
        for arrow in drawn.findall("{*}g")
    }
    expected = defaultdict(set)
    loaded = " or ".join(
        row.after for row in TABLE if row.cause is Cause.LOADED and row.before == ANY
    )
    for row in (row for row in TABLE if row.source != NEVER):
        if (row.before, row.cause) == (ANY, Cause.LOADED):
            expected[f"{LOADING_GROUP} to {loaded}"].add(row.cause)
        else:
            expected[f"{row.before} to {row.after}"].add(row.cause)
    assert {name: {*causes.split(", ")} for name, causes in arrows.items()} == expected
    assert boxes == {end for name in arrows for end in name.split(" to ")}
