"""What is remembered of a decision is what the coordinator would decide anew."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from kafka_protocol.versions import FIRST_SYNC_WITH_PROTOCOL
from reference_coordinator.classic import CLASSIC, ClassicProtocol
from reference_coordinator.classic.effects import Answer, Arm, Effect
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
from reference_coordinator.replay.reactions import Reactions, Timers
from selftest.broken_rules import MUTANTS

SESSION_MS = 10_000


def member(member_id: str, instance: str | None, **fields: Any) -> Member:
    return replace(
        Member(member_id, instance, SESSION_MS, 30_000, "consumer", (("range", ""),)), **fields
    )


def group(*members: Member, **fields: Any) -> Group:
    owners = {m.group_instance_id: m.member_id for m in members if m.group_instance_id}
    start = Group(
        "g",
        exists=True,
        state=State.STABLE,
        generation=3,
        protocol_type="consumer",
        protocol="range",
        leader="b-1",
        members=Members.of(members),
        static_ids=owners,
    )
    return replace_fields(start, **fields)


A, B = member("a-1", "a"), member("b-1", None)


class Counted:
    """The coordinator, and how often it was asked."""

    __name__ = "counted"

    def __init__(self) -> None:
        self.asked = 0

    def __call__(
        self, group: Group, event: Event, profile: Profile
    ) -> tuple[Group, tuple[Effect, ...]]:
        self.asked += 1
        return step(group, event, profile)

    @property
    def protocol(self) -> ClassicProtocol:
        """The classic protocol with this coordinator."""
        return replace(CLASSIC, step=self)


def heartbeat(
    number: int, member_id: str = "a-1", instance: str | None = "a", code: int = 0
) -> ObservedRequest:
    request = {"generationId": 3, "memberId": member_id, "groupInstanceId": instance}
    return ObservedRequest(
        str(number), "1", "HEARTBEAT", 4, "c", "c", 0.0, 0.0, 1.0, 1.0, request, {"errorCode": code}
    )


def sync(share: str, api_version: int = 3) -> ObservedRequest:
    request = {"generationId": 3, "memberId": "a-1", "groupInstanceId": "a", "assignments": []}
    response: dict[str, Any] = {"errorCode": 0, "assignment": share}
    if api_version >= FIRST_SYNC_WITH_PROTOCOL:
        request |= {"protocolType": "consumer", "protocolName": "range"}
        response |= {"protocolType": "consumer", "protocolName": "range"}
    return ObservedRequest(
        "s", "1", "SYNC_GROUP", api_version, "c", "c", 0.0, 0.0, 1.0, 1.0, request, response
    )


def reactions(groups: Iterable[Group], code: int = 0) -> tuple[list[Timers | None], int]:
    """Ask the same of one group after the other; return what came of it, and who was asked."""
    known, coordinator = Reactions(), Counted()
    timers = [
        known.to(each, heartbeat(number, code=code), coordinator.protocol, NEWEST)
        for number, each in enumerate(groups)
    ]
    return timers, coordinator.asked


def test_the_same_is_decided_once_whatever_happens_to_others() -> None:
    others = [group(A, B), group(A, B), group(A, replace(B, assignment="x")), group(A)]
    found, asked = reactions([replace_fields(each, leader="b-1") for each in others])
    (timers,) = set(found)
    assert [after_ms for _, after_ms in timers or ()] == [SESSION_MS]
    assert asked == 1


@pytest.mark.parametrize(
    "after",
    [
        group(B),
        group(A, B, generation=4),
        group(A, B, state=State.PREPARING_REBALANCE),
        group(A, B, service=Service.ABSENT),
        group(A, B, static_ids={"a": "a-2"}),
    ],
)
def test_a_cached_reaction_is_wrong_once_the_group_answers_otherwise(after: Group) -> None:
    (before, wrong), _ = reactions([group(A, B), after])
    assert before is not None
    assert wrong is None


def test_a_member_that_changed_is_looked_at_anew() -> None:
    longer = replace(A, session_timeout_ms=2 * SESSION_MS)
    found, asked = reactions([group(A, B), group(longer, B)])
    assert [after_ms for timers in found for _, after_ms in timers or ()] == [10_000, 20_000]
    assert asked == 2


def test_a_wrong_response_is_never_cached_as_right() -> None:
    known, coordinator = Reactions(), Counted()
    codes = [0, 27, 0]
    found = [
        known.to(group(A, B), heartbeat(number, code=code), coordinator.protocol, NEWEST)
        for number, code in enumerate(codes)
    ]
    assert [timers is not None for timers in found] == [True, False, True]


OWNER = replace(A, assignment="work")


@pytest.mark.parametrize("api_version", [3, 5])
def test_a_sync_group_that_changes_nothing_is_recognized_by_its_response(api_version: int) -> None:
    known, rules = Reactions(), replace(NEWEST, sync_in_stable_restarts_session=True)
    right, wrong = (
        known.to(group(OWNER, B), sync(share, api_version), CLASSIC, rules)
        for share in ("work", "other")
    )
    assert right is not None
    assert (Timer(TimerKind.SESSION, "a-1"), SESSION_MS) in right
    assert wrong is None


@pytest.mark.parametrize(
    "other",
    [
        group(OWNER, B, pending_syncs=frozenset({"a-1"})),
        group(OWNER, B, state=State.COMPLETING_REBALANCE),
        group(OWNER, B, leader=None, open_leaders=frozenset({"a-1"})),
        group(OWNER, B, generation=4),
    ],
)
def test_a_sync_group_that_may_change_something_is_not_passed_over(other: Group) -> None:
    assert Reactions().to(other, sync("work"), CLASSIC, NEWEST) is None


COORDINATORS: tuple[Step, ...] = (step, *MUTANTS.values())
"""Kafka's, and those that break a rule."""


def test_a_sync_group_takes_its_time_for_deadlines_alone() -> None:
    rules = replace(NEWEST, sync_in_stable_restarts_session=True)
    for coordinator, member_id in product(COORDINATORS, ("a-1", "a-0")):
        early, late = (
            SyncReceived(at_ms, "r", 3, member_id, "a", None, None, ())
            for at_ms in (0.0, 1_700_000.0)
        )
        effects = effects_of(coordinator, group(OWNER, B), early, rules)
        assert effects == effects_of(coordinator, group(OWNER, B), late, rules)


def effects_of(
    coordinator: Step,
    group: Group,
    event: HeartbeatReceived | CommitReceived | SyncReceived,
    rules: Profile = NEWEST,
) -> list[object] | None:
    """Say what an event does, its time apart; None if it changes the group."""
    after, effects = coordinator(group, event, rules)
    if after is not group:
        return None
    return [
        (e.timer, round(e.deadline_ms - event.at_ms, 3)) if isinstance(e, Arm)
        else e.response if isinstance(e, Answer)
        else e
        for e in effects
    ]  # fmt: skip


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


def test_a_dynamic_member_that_changed_is_looked_at_anew() -> None:
    known, coordinator = Reactions(), Counted()
    for number, session_ms in enumerate((SESSION_MS, 2 * SESSION_MS)):
        dynamic = replace(B, session_timeout_ms=session_ms)
        asked = heartbeat(number, "b-1", None)
        ((_, after_ms),) = known.to(group(A, dynamic), asked, coordinator.protocol, NEWEST) or ()
        assert after_ms == session_ms
