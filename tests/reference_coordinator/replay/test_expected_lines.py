"""The lines that a coordinator must print of members that join and leave."""

from dataclasses import replace
from typing import Any

import pytest

from reference_coordinator.classic.events import (
    Event,
    JoinReceived,
    LeaveReceived,
    Loaded,
    RecordWritten,
    Timer,
    TimerFired,
    TimerKind,
)
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.state import Group, Member, State
from reference_coordinator.replay.expected_lines import expected_lines

MEMBER = Member("a", None, 1_000, 1_000, "consumer", (("range", "bQ=="),))
EMPTY = Group("g")
DYNAMIC = replace(EMPTY, members=Members.of([MEMBER]))
PREPARING = replace(DYNAMIC, state=State.PREPARING_REBALANCE, previous_state=State.STABLE)
PENDING = replace(EMPTY, pending_joins=frozenset("a"))
STATIC, OTHER = (replace(EMPTY, static_ids={"i": member_id}) for member_id in "ab")


def join(**fields: Any) -> JoinReceived:
    about: dict[str, Any] = {"member_id": "", "group_instance_id": None, **fields}
    return JoinReceived(
        at_ms=0,
        request="1",
        api_version=5,
        client_id="c",
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        protocol_type="consumer",
        protocols=(),
        **about,
    )


def expired(*, of_pending: bool = False) -> TimerFired:
    return TimerFired(0, Timer(TimerKind.SESSION, "a"), of_pending=of_pending)


@pytest.mark.parametrize(
    ("before", "after", "event", "line"),
    [
        (EMPTY, DYNAMIC, join(), ("dynamic_added", "a")),
        (EMPTY, PENDING, join(), ("dynamic_given_id", "a")),
        (PENDING, DYNAMIC, join(member_id="a"), ("pending_joins", "a")),
        (EMPTY, STATIC, join(group_instance_id="i"), ("static_added", "a")),
        (STATIC, OTHER, join(group_instance_id="i"), ("static_replaced", "i")),
        (DYNAMIC, EMPTY, LeaveReceived(0, "1", 3, ()), ("left", "a")),
        (PENDING, EMPTY, LeaveReceived(0, "1", 3, ()), ("pending_left", "a")),
        (DYNAMIC, EMPTY, expired(), ("session_expired", "a")),
        (DYNAMIC, EMPTY, expired(of_pending=True), ("pending_expired", "a")),
        (PENDING, EMPTY, expired(), ("pending_expired", "a")),
        (STATIC, STATIC, join(group_instance_id="i"), None),
        (EMPTY, DYNAMIC, RecordWritten(0, "1"), None),
        (DYNAMIC, EMPTY, TimerFired(0, Timer(TimerKind.JOIN)), None),
        (PREPARING, EMPTY, TimerFired(0, Timer(TimerKind.JOIN)), ("absent_dynamic_removed", "")),
        (PREPARING, PREPARING, TimerFired(0, Timer(TimerKind.JOIN)), ("nobody_rejoined", "")),
        (EMPTY, replace(EMPTY, exists=True), Loaded(0, None), ("group_loaded", "")),
        (EMPTY, EMPTY, Loaded(0, None), None),
    ],
)
def test_each_change_of_a_member_has_its_line(
    before: Group, after: Group, event: Event, line: tuple[str, str] | None
) -> None:
    found = [(due.line, due.subject) for due in expected_lines(before, after, event)]
    assert found == ([] if line is None else [line])
