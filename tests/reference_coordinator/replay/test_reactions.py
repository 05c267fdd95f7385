"""What is remembered of a decision is what the coordinator would decide anew."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from kafka_protocol.versions import FIRST_SYNC_WITH_PROTOCOL
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import Answer, Arm
from reference_coordinator.classic.events import (
    CommitReceived,
    Event,
    HeartbeatReceived,
    SyncReceived,
    Timer,
    TimerKind,
)
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.classic.state import Group, Member, Service, State
from reference_coordinator.classic.step import Step, step
from reference_coordinator.frozen import replace_fields
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.reactions import Reactions
from selftest.broken_rules import MUTANTS

SESSION_MS = 10_000
SYNC_RESTARTS = replace(NEWEST, sync_in_stable_restarts_session=True)


def member(member_id: str, instance: str | None, **fields: Any) -> Member:
    made = Member(member_id, instance, SESSION_MS, 30_000, "consumer", (("range", ""),))
    return replace(made, **fields)


def group(*members: Member, **fields: Any) -> Group:
    start = Group(
        "g",
        exists=True,
        state=State.STABLE,
        generation=3,
        protocol_type="consumer",
        protocol="range",
        leader="b-1",
        members=Members.of(members),
        static_ids={m.group_instance_id: m.member_id for m in members if m.group_instance_id},
    )
    return replace_fields(start, **fields)


A, B = member("a-1", "a"), member("b-1", None)
OWNER = replace(A, assignment="work")
LONG_A, LONG_B = (replace(one, session_timeout_ms=2 * SESSION_MS) for one in (A, B))


def seen(api: str, version: int, who: Member, request: Any, response: Any) -> ObservedRequest:
    about = {"memberId": who.member_id, "groupInstanceId": who.group_instance_id}
    request = {"generationId": 3, **about, **request}
    return ObservedRequest("1", "1", api, version, "c", "c", 0, 0, 1, 1, request, response)


def heartbeat(who: Member, code: int = 0) -> ObservedRequest:
    return seen("HEARTBEAT", 4, who, {}, {"errorCode": code})


def sync(share: str, version: int = 3) -> ObservedRequest:
    named = {"protocolType": "consumer", "protocolName": "range"}
    named = named if version >= FIRST_SYNC_WITH_PROTOCOL else {}
    response = {"errorCode": 0, "assignment": share, **named}
    return seen("SYNC_GROUP", version, A, {"assignments": [], **named}, response)


@pytest.mark.parametrize(
    ("who", "after", "session_ms", "asked"),
    [
        (A, group(A, replace(B, assignment="x")), SESSION_MS, 1),
        (A, group(A), SESSION_MS, 1),
        (A, group(LONG_A, B), 2 * SESSION_MS, 2),
        (B, group(A, LONG_B), 2 * SESSION_MS, 2),
        (A, group(B), None, 2),
        (A, group(A, B, generation=4), None, 2),
        (A, group(A, B, state=State.PREPARING_REBALANCE), None, 2),
        (A, group(A, B, service=Service.ABSENT), None, 2),
        (A, group(A, B, static_ids={"a": "a-2"}), None, 2),
    ],
    ids=["another has other work", "another is gone", "its session is another", "a dynamic one's",
         "it is gone", "another generation", "a rebalance", "no coordinator", "it is replaced"],
)  # fmt: skip
def test_it_is_remembered_whatever_happens_to_others_and_while_the_answer_is_the_same(
    who: Member, after: Group, session_ms: int | None, asked: int
) -> None:
    """A heartbeat is answered without an error before, and after; where it is not, it is wrong."""
    groups: list[Group] = []

    def counted(*about: Any) -> Any:
        groups.append(about[0])
        return step(*about)

    known, protocol = Reactions(), replace(CLASSIC, step=counted)
    timer = Timer(TimerKind.SESSION, who.member_id)
    assert known.to(group(A, B), heartbeat(who), protocol, NEWEST) == ((timer, SESSION_MS),)
    expected = None if session_ms is None else ((timer, session_ms),)
    assert known.to(after, heartbeat(who), protocol, NEWEST) == expected
    assert len(groups) == asked


def test_a_wrong_response_is_never_cached_as_right() -> None:
    known = Reactions()
    found = [known.to(group(A, B), heartbeat(A, code), CLASSIC, NEWEST) for code in (0, 27, 0)]
    assert [timers is not None for timers in found] == [True, False, True]


@pytest.mark.parametrize("api_version", [3, 5])
def test_a_sync_group_that_changes_nothing_is_recognized_by_its_response(api_version: int) -> None:
    known, unchanged = Reactions(), group(OWNER, B)
    right = known.to(unchanged, sync("work", api_version), CLASSIC, SYNC_RESTARTS)
    assert right is not None
    assert (Timer(TimerKind.SESSION, "a-1"), SESSION_MS) in right
    assert known.to(unchanged, sync("other", api_version), CLASSIC, SYNC_RESTARTS) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"pending_syncs": frozenset({"a-1"})},
        {"state": State.COMPLETING_REBALANCE},
        {"leader": None, "open_leaders": frozenset({"a-1"})},
        {"generation": 4},
    ],
)
def test_a_sync_group_that_may_change_something_is_not_passed_over(changed: dict[str, Any]) -> None:
    assert Reactions().to(group(OWNER, B, **changed), sync("work"), CLASSIC, NEWEST) is None


COORDINATORS: tuple[Step, ...] = (step, *MUTANTS.values())
"""Kafka's, and those that break a rule."""


def effects_of(coordinator: Step, group: Group, event: Event, rules: Profile = NEWEST) -> Any:
    """Say what an event does, its time apart; None if it changes the group."""
    after, effects = coordinator(group, event, rules)
    if after is not group:
        return None
    said: list[object] = []
    for effect in effects:
        if isinstance(effect, Arm):
            said.append((effect.timer, round(effect.deadline_ms - event.at_ms, 3)))
        else:
            said.append(effect.response if isinstance(effect, Answer) else effect)
    return said


def test_a_sync_group_takes_its_time_for_deadlines_alone() -> None:
    for coordinator, member_id in product(COORDINATORS, ("a-1", "a-0")):
        early, late = (
            SyncReceived(at_ms, "r", 3, member_id, "a", None, None, ())
            for at_ms in (0.0, 1_700_000.0)
        )
        effects = effects_of(coordinator, group(OWNER, B), early, SYNC_RESTARTS)
        assert effects == effects_of(coordinator, group(OWNER, B), late, SYNC_RESTARTS)


def test_coordinators_look_at_nothing_else() -> None:
    ids = (("a-1", "a"), ("a-1", None), ("a-0", "a"), ("x", None), ("", None))
    for state in State:
        one = group(A, B, state=state)
        other = replace_fields(
            one,
            members=Members.of([A, member("c-1", "c", session_timeout_ms=7_000, join="waits")]),
            static_ids={"a": "a-1", "c": "c-1"},
            leader="c-1",
            protocol="another",
            pending_joins=frozenset({"d-1"}),
            pending_syncs=frozenset({"a-1"}),
            previous_state=State.EMPTY,
        )
        for who, generation, times in product(ids, (3, 2, -1), ((0.0, 1_700_000.0), (5.0, 0.0))):
            heartbeats = [HeartbeatReceived(at_ms, "r", generation, *who) for at_ms in times]
            commits = [CommitReceived(at_ms, "r", 8, generation, *who) for at_ms in times]
            for coordinator, (early, late) in product(COORDINATORS, (heartbeats, commits)):
                effects = effects_of(coordinator, one, early)
                assert effects == effects_of(coordinator, other, late), coordinator.__name__
