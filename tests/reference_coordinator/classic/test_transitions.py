"""The table of transitions: each row is taken, names rules that exist, and is in the docs."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.events import DescribeReceived, JoinReceived
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import KIP_423, NEWEST, PROFILES
from reference_coordinator.classic.state import Group, State
from reference_coordinator.classic.step import _HANDLERS, step
from reference_coordinator.classic.transitions import (
    ANY,
    EMPTY,
    LOADING_GROUP,
    PREPARING,
    STABLE,
    TABLE,
    Cause,
)
from tests.reference_coordinator.classic import transition_check
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.transition_check import Taken, checked_steps, row_of, taken

SCALA = PROFILES["3.9-scala"]
DOCS = Path(__file__).parents[3] / "docs"
LONG_MS = 10 * REBALANCE_MS


def rejoin(play: Playbook, *ids: str) -> None:
    """Let static members of these ids join again with them."""
    for member_id in ids:
        play.join(member_id, instance=member_id.split("-")[0])


def forms_and_leaves() -> None:
    play = Playbook()
    statics(play, "L", "F")
    play.leave(("", "L"), ("", "F"))
    play.expire()


def is_deleted() -> None:
    play = Playbook()
    play.commit(generation=-1)
    play.delete()


def new_members_join() -> None:
    play = Playbook()
    statics(play, "L", "F")
    play.join(instance="N")
    rejoin(play, "L-1", "F-1")
    play.join(instance="O")


def members_rejoin() -> None:
    play = Playbook()
    statics(play, "L", "F")
    rejoin(play, "L-1", "F-1")
    play.join("F-1", instance="F", protocols=("range",))
    rejoin(play, "L-1")
    play.sync_everyone()
    play.join("F-1", instance="F")


def static_members_rejoin() -> None:
    play = Playbook()
    statics(play, "L", "F")
    rejoin(play, "L-1", "F-1")
    play.join(instance="F")
    play = Playbook()
    statics(play, "L", "F")
    play.join(instance="F", protocols=("roundrobin",))


def gives_a_reason() -> None:
    play = Playbook()
    statics(play, "L", "F")
    play.join(instance="F", reason="UPGRADE")


def members_leave() -> None:
    play = Playbook()
    statics(play, "L", "F", "G")
    play.leave(("", "G"))
    rejoin(play, "L-1")
    play.leave(("", "F"))
    play.leave(("", "L"))


def members_leave_while_completing() -> None:
    play = Playbook()
    statics(play, "L", "F")
    rejoin(play, "L-1", "F-1")
    play.leave(("", "F"))


def sessions_expire() -> None:
    play = Playbook()
    statics(play, "L", "F", "G")
    play.after(SESSION_MS // 2)
    play.heartbeat("L-1")
    play.heartbeat("F-1")
    play.after(SESSION_MS // 2)
    rejoin(play, "L-1")
    play.after(SESSION_MS)
    play.after(SESSION_MS)


def join_timer_expires() -> None:
    play = Playbook()
    statics(play, "L", "F", session_ms=LONG_MS)
    play.join("L-1", instance="L", session_ms=LONG_MS)
    play.after(REBALANCE_MS)


def no_member_is_left() -> None:
    play = Playbook()
    calls = [play.join_dynamic(client, session_ms=LONG_MS) for client in ("c", "d")]
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    play.leave((calls[0].answer.member_id, None))
    play.after(REBALANCE_MS)


def sync_does_not_come() -> None:
    play = Playbook()
    leader, _ = statics(play, "L", "F", session_ms=LONG_MS)
    rejoin(play, leader)
    play.after(REBALANCE_MS)
    play.sync(leader)
    play.after(REBALANCE_MS, alive=[leader])
    play = Playbook()
    statics(play, "L", "F", session_ms=LONG_MS)
    rejoin(play, "L-1", "F-1")
    play.after(REBALANCE_MS, alive=["L-1", "F-1"])


def assignment_is_not_stored() -> None:
    for error in (Error.COORDINATOR_NOT_AVAILABLE, None):
        play = Playbook()
        statics(play, "L", "F")
        rejoin(play, "L-1", "F-1")
        play.hold_writes = True
        call = play.sync("L-1")
        if error is None:
            play.unload()
        else:
            play.written(call, error)


def is_loaded_over_capacity() -> None:
    play = Playbook()
    statics(play, "L", "F")
    small = Playbook(max_size=1)
    small.start_loading()
    small.load(play.records[-1])


def coordinator_fails() -> None:
    play = Playbook()
    play.crash()
    statics(play, "L", "F")
    play.crash()
    play.leave(("", "L"), ("", "F"))
    play.crash()


PLAYS: tuple[tuple[Profile, Callable[[], None]], ...] = (
    *((NEWEST, play) for play in (
        forms_and_leaves, is_deleted, new_members_join, members_rejoin, static_members_rejoin,
        members_leave, members_leave_while_completing, sessions_expire, join_timer_expires,
        no_member_is_left, sync_does_not_come, assignment_is_not_stored, is_loaded_over_capacity,
        coordinator_fails,
    )),
    (KIP_423, gives_a_reason),
    (SCALA, is_deleted),
)  # fmt: skip


def test_each_row_is_taken(monkeypatch):
    monkeypatch.setattr(transition_check, "TAKEN", set())
    for profile, play in PLAYS:
        monkeypatch.setattr(Playbook, "release", profile)
        play()
    assert set(TABLE) == transition_check.TAKEN


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
    for row in TABLE:
        if (row.before, row.cause) == (ANY, Cause.LOADED):
            expected[f"{LOADING_GROUP} to {loaded}"].add(row.cause)
        else:
            expected[f"{row.before} to {row.after}"].add(row.cause)
    assert {name: {*causes.split(", ")} for name, causes in arrows.items()} == expected
    assert boxes == {end for name in arrows for end in name.split(" to ")}
