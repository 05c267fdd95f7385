"""The timers that the oracle has armed, and the windows in which they may expire."""

from dataclasses import replace

import pytest

from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.state import Group, Member
from reference_coordinator.replay.candidates import Candidate, Due
from reference_coordinator.replay.clock import ArmedTimers, Clock, renamed_timer
from tests.reference_coordinator.replay.conftest import START

A, B = (Timer(TimerKind.SESSION, member_id) for member_id in "ab")
JOIN = Timer(TimerKind.JOIN)
NEVER = float("inf")


def cause(earliest_ms: float, latest_ms: float) -> Candidate:
    return Candidate(earliest_ms, earliest_ms, latest_ms, None)


def armed(
    timer: Timer = A, *, keeps_overtaken: bool = False, of_pending: bool = False
) -> ArmedTimers:
    """Arm a timer of 1000 ms by an event in [95, 110], most likely at 100."""
    timers = ArmedTimers(10.0, keeps_overtaken)
    timers.arm(timer, 1_100, Clock(95, 100, 110), cause(95, 110), of_pending)
    return timers


def test_a_window_is_as_wide_as_that_of_the_event_behind_it() -> None:
    assert armed().running == {A: Due(1_095, 1_100, 1_110)}


def test_a_timer_may_expire_from_its_deadline_on_but_for_the_reading_error() -> None:
    timers = armed()
    assert not timers.may_expire(1_084)
    assert timers.may_expire(1_085)


def test_the_first_deadline_moves_when_its_timer_is_restarted_or_stopped() -> None:
    timers = armed()
    timers.arm(B, 1_500, Clock(100, 100, 100), cause(100, 100), False)
    timers.arm(A, 2_000, Clock(200, 200, 200), cause(200, 200), False)
    assert not timers.may_expire(1_400)
    assert timers.may_expire(1_490)
    timers.disarm(B, cause(300, 300))
    assert not timers.may_expire(1_900)
    timers.disarm(A, cause(300, 300))
    assert not timers.may_expire(1e9)


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize(("restarted_ms", "may_have_expired"), [(500, False), (1_090, True)])
def test_an_overtaken_session_timer_is_kept_where_the_profile_counts_it(
    *, keeps: bool, restarted_ms: int, may_have_expired: bool
) -> None:
    timers = armed(keeps_overtaken=keeps)
    at = float(restarted_ms)
    timers.arm(A, at + 1_000, Clock(at, at, at), cause(at, at), False)
    assert (A in timers.overtaken) is (keeps and may_have_expired)
    assert timers.running[A].at_ms == at + 1_000


def test_no_join_timer_is_overtaken() -> None:
    timers = armed(JOIN, keeps_overtaken=True)
    timers.arm(JOIN, 3_000, Clock(1_200, 1_200, 1_200), cause(1_200, 1_200), False)
    assert not timers.overtaken


@pytest.mark.parametrize("of_pending", [True, False])
def test_only_the_timer_of_a_pending_member_is_overtaken_when_it_is_stopped(
    *, of_pending: bool
) -> None:
    timers = armed(keeps_overtaken=True, of_pending=of_pending)
    timers.disarm(A, cause(1_100, 1_100))
    assert (A in timers.overtaken) is of_pending
    assert not timers.running


def test_an_expired_timer_does_not_run() -> None:
    timers = armed()
    timers.expire(A, cause(1_100, 1_100))
    assert not timers.running


def member(member_id: str, instance_id: str | None = None) -> Member:
    return Member(
        member_id=member_id,
        group_instance_id=instance_id,
        session_timeout_ms=1_000,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=(("range", "bQ=="),),
        client_id=member_id,
    )


def test_the_timers_of_members_that_have_left_are_dropped() -> None:
    before = Group("g", members=Members.of([member("a"), member("b")]))
    after = replace(before, members=before.members.without("b"))
    timers = armed(A)
    timers.arm(B, START, Clock(), cause(0, 0), False)
    timers.arm(JOIN, START, Clock(), cause(0, 0), False)
    timers.drop_stale(before, after, None)  # type: ignore[arg-type]  (no JoinGroup)
    assert timers.running.keys() == {A, JOIN}


def test_pending_members_keep_their_timers() -> None:
    before = Group("g", members=Members.of([member("b")]), pending_joins=frozenset("a"))
    after = replace(before, members=before.members.without("b"))
    timers = armed(A)
    timers.drop_stale(before, after, None)  # type: ignore[arg-type]
    assert A in timers.running


def test_windows_cover_narrower_ones_and_can_be_widened() -> None:
    wide, narrow = armed(), armed()
    narrow.running[A] = Due(1_100, 1_100, 1_105)
    assert wide.covers(narrow)
    assert not narrow.covers(wide)
    narrow.widen(wide, without_end=False)
    assert narrow.covers(wide)
    assert narrow.running[A] == Due(1_095, 1_100, 1_110)


def test_a_window_that_grows_again_and_again_may_lose_its_end() -> None:
    late, early = armed(), armed()
    late.running[A] = Due(1_100, 1_100, 1_200)
    late.widen(early, without_end=True)
    assert late.running[A].latest_ms == NEVER


def test_overtaken_timers_count_for_covering() -> None:
    one, other = armed(), armed()
    other.overtaken = {A: Due(1, 2, 3)}
    assert other.covers(one)
    assert not one.covers(other)
    one.widen(other, without_end=False)
    assert one.covers(other)


def test_a_timer_goes_by_the_id_that_its_member_turned_out_to_have() -> None:
    timers = armed()
    timers.rename({"a": "a-0000"})
    assert timers.running.keys() == {Timer(TimerKind.SESSION, "a-0000")}
    assert renamed_timer(B, {"a": "x"}) is B


def test_a_fork_goes_on_by_itself() -> None:
    timers = armed()
    forked = timers.fork()
    assert forked == timers
    forked.clear()
    assert timers.running
