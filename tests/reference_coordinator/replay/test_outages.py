"""Writes that fail while a broker is down on purpose, or that time out; and who waits for them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error
from reference_coordinator.replay import EpochEvent, Outage, Replay, Stall
from reference_coordinator.replay.failed_writes import TIMED_OUT
from tests.reference_coordinator.replay.conftest import (
    IDS,
    LOADS,
    PROFILE,
    START,
    Scenario,
    stable,
    wrong,
)

DOWN = Outage(START + 1_900, START + 4_000)
UNAVAILABLE = Error.COORDINATOR_NOT_AVAILABLE
JAVA = ("3.9-java", "4.3")
REPLICA = Stall("2", START - 10, START + 5_100)
"""Another broker stood still, so that a write of another group may have waited for it."""


def refused(api: str = "HEARTBEAT", error: int = UNAVAILABLE) -> Scenario:
    """A request of b, pending from 2000 to 2600, whose response reports a failed write."""
    scenario = stable()
    scenario.heartbeats("a", 1_500, 3_500)
    send = scenario.heartbeat if api == "HEARTBEAT" else scenario.commit
    send("b", 2_000, error, answered=2_600)
    scenario.requests = [replace(r, latest_ms=r.answered_ms) for r in scenario.requests]
    scenario.heartbeat("b", 2_800)
    return scenario


def commit(answered: float, error: int) -> Scenario:
    """A commit of b from 2000 on; both members stay, and send heartbeats."""
    scenario = stable()
    scenario.heartbeats("a", 1_500, 8_500)
    scenario.heartbeats("b", 1_501, 8_501)
    scenario.commit("b", 2_000, error, answered=answered, latest=answered, connection="commits")
    return scenario


def unstored(error: int, answered: float) -> Scenario:
    """An assignment that is not confirmed: both SyncGroups are answered with an error."""
    scenario = stable()
    del scenario.requests[2:]
    scenario.sync("b", 1_010, answered, error=error)
    scenario.sync("a", 1_010, answered, error=error, gives="ab")
    scenario.set_in_joins(sessionTimeoutMs=30_000)
    return scenario


@pytest.mark.parametrize(
    ("api", "error", "release", "excused"),
    [
        ("OFFSET_COMMIT", UNAVAILABLE, "4.3", True),
        ("HEARTBEAT", UNAVAILABLE, "4.3", True),
        ("HEARTBEAT", Error.UNKNOWN_MEMBER_ID, "4.3", False),
        ("OFFSET_COMMIT", UNAVAILABLE, "3.9-scala", True),
        ("HEARTBEAT", UNAVAILABLE, "3.9-scala", False),  # it is answered without waiting
        ("OFFSET_COMMIT", Error.REQUEST_TIMED_OUT, "3.9-scala", False),  # too soon
    ],
)
def test_a_write_may_fail_while_a_broker_is_down(
    api: str, error: int, release: str, *, excused: bool
) -> None:
    """Every request that waits for it gets its error, and no other error."""
    scenario = refused(api, error)
    for outages in ([], [Outage(START, START + 1_990)]):
        scenario.outages = outages
        assert wrong(scenario.replay(rules=release)) == [f"{api}:b:2000"]
    scenario.outages = [DOWN]
    outcome = scenario.replay(rules=release)
    assert (outcome.violations == ()) == excused
    assert outcome.bound.get("failed_write", 0) == excused


@pytest.mark.parametrize(
    ("release", "error"),
    [("2.6.0", 7), ("2.8.1", 7), ("3.9-scala", 7), ("3.9-java", 15), ("4.3", 15)],
)
def test_a_commit_times_out_after_its_time(release: str, error: int) -> None:
    """Seen on 2.6.0: error 7, remoteTimeMs 5003. No fault is needed for it, only its time."""
    for answered, timed_out in ((2_010, False), (6_980, False), (6_990, True), (7_003, True)):
        result = commit(answered, error).replay(rules=release)
        assert wrong(result) == ([] if timed_out else ["OFFSET_COMMIT:b:2000"])
        assert result.bound.get("failed_write", 0) == timed_out
        shown = [due.latest_ms - START for due in result.expected_lines if due.line == TIMED_OUT]
        assert shown == ([answered] if timed_out else [])


@pytest.mark.parametrize(
    ("release", "error"), [("2.8.1", 15), ("3.9-scala", 27), ("3.9-java", 7), ("4.3", 7)]
)
def test_a_commit_that_times_out_has_its_own_error(release: str, error: int) -> None:
    """What group records are answered with, or the other coordinator's commits, is wrong here."""
    assert wrong(commit(7_003, error).replay(rules=release)) == ["OFFSET_COMMIT:b:2000"]


def test_the_time_of_a_write_is_a_setting() -> None:
    settings = replace(PROFILE.settings, commit_timeout_ms=500)
    assert wrong(commit(2_503, 15).replay()) == ["OFFSET_COMMIT:b:2000"]
    assert wrong(commit(2_503, 15).replay(rules=PROFILE.with_settings(settings))) == []


@pytest.mark.parametrize(("release", "error"), [("2.8.1", 7), ("3.9-scala", 7), ("4.3", 15)])
def test_a_time_out_that_comes_too_late_is_wrong(release: str, error: int) -> None:
    held_up = [Stall("1", START + 6_900, START + 8_000)]
    line = [EpochEvent(START + 8_890, "1", AppendError.TIMED_OUT)]
    for stalls, lines, fine in (([], [], False), ([], line, False), (held_up, line, True)):
        scenario = commit(8_900, error)
        scenario.stalls, scenario.epoch_events = stalls, [*LOADS, *lines]
        found = wrong(judged(scenario, release))
        if fine:
            assert "OFFSET_COMMIT:b:2000" not in found
        else:
            assert found == ["OFFSET_COMMIT:b:2000"]


@pytest.mark.parametrize(("release", "error"), [("3.9-scala", 27), ("4.3", 15)])
def test_an_assignment_times_out_after_its_time(release: str, error: int) -> None:
    for answered, timed_out in ((1_600, False), (6_020, True)):
        outcome = unstored(error, answered).replay(rules=release)
        assert (outcome.violations == ()) == timed_out
    assert outcome.rows[-1].reason == "assignment_error"


@pytest.mark.parametrize(("down_from", "excused"), [(1_900, False), (1_200, True)])
def test_an_assignment_that_was_not_stored_makes_the_group_rebalance(
    down_from: float, *, excused: bool
) -> None:
    scenario = unstored(UNAVAILABLE, 1_600)
    scenario.outages = [Outage(START + down_from, START + 4_000)]
    outcome = scenario.replay()
    assert (outcome.violations == ()) == excused
    assert not excused or outcome.rows[-1].reason == "assignment_error"


def judged(scenario: Scenario, release: str) -> Replay:
    """Replay it with a coordinator whose lines are known, and sessions that do not end."""
    scenario.set_in_joins(sessionTimeoutMs=30_000)
    scenario.epoch_events = scenario.epoch_events or [*LOADS]
    return scenario.replay(rules=release)


def refused_join(took: float) -> Scenario:
    """The JoinGroup of c waits for a and b, and gets 15 though the answer of a lists c."""
    scenario = stable()
    scenario.join("c", 2_000, 2_000 + took, error=UNAVAILABLE)
    for who, at, members in (("b", 2_100, ""), ("a", 1_998 + took, "abc")):
        scenario.join(who, at, 2_000 + took, generation=2, known=IDS[who], members=members)
    return scenario


def refused_sync(took: float) -> Scenario:
    """The SyncGroup of b waits for a, and gets 15 though that of a succeeds at once."""
    scenario = stable()
    del scenario.requests[2:]
    scenario.sync("b", 1_010, 1_010 + took, error=UNAVAILABLE)
    scenario.sync("a", 1_007 + took, 1_010 + took, gives="ab")
    return scenario


def refused_heartbeat(took: float) -> Scenario:
    """A heartbeat of b gets 15."""
    scenario = stable()
    scenario.heartbeat("b", 2_000, UNAVAILABLE, answered=2_000 + took, latest=2_000 + took)
    return scenario


@pytest.mark.parametrize("release", JAVA)
@pytest.mark.parametrize("refused", [refused_join, refused_sync, refused_heartbeat])
def test_waiting_for_members_is_no_write_that_times_out(
    refused: Callable[[float], Scenario], release: str
) -> None:
    """Time alone does not prove a time-out."""
    for took in (600, 5_200, 7_500, 20_000):
        scenario = refused(took)
        unlike = next(seen.id for seen in scenario.requests if seen.response_fields["errorCode"])
        outcome = judged(scenario, release)
        assert unlike in wrong(outcome)
        assert outcome.bound.get("failed_write", 0) == 0


@pytest.mark.parametrize("release", JAVA)
@pytest.mark.parametrize("refused", [refused_sync, refused_heartbeat])
def test_a_write_of_another_group_may_time_out_while_a_broker_stands_still(
    refused: Callable[[float], Scenario], release: str
) -> None:
    for took, stall, excused in (
        (5_050, REPLICA, True),
        (5_050, Stall("2", START + 1_000, START + 2_000), False),
        (5_050, Stall("2", START + 1_000, START + 3_400), False),
        (5_050, Stall("2", START + 1_000, START + 3_600), True),  # half of 5 s
        (7_500, REPLICA, False),  # nobody was late by 1,500 ms
    ):
        scenario = refused(took)
        scenario.stalls = [stall]
        outcome = judged(scenario, release)
        assert (wrong(outcome) == []) == excused
        assert not excused or outcome.bound["failed_write"] == 1


@pytest.mark.parametrize(
    ("other", "shown"), [(1_500, False), (2_500, True), (6_500, True), (6_998, False)]
)
def test_a_later_answer_shows_that_the_writes_were_confirmed(other: float, shown: bool) -> None:
    scenario = refused_heartbeat(5_050)
    scenario.heartbeat("a", other)
    scenario.stalls = [REPLICA]
    assert ("HEARTBEAT:b:2000" in wrong(judged(scenario, "4.3"))) == shown


@pytest.mark.parametrize(
    ("at", "answered", "confirmed", "waits"),
    [(2_010, 7_020, False, True), (7_100, 12_110, False, True), (7_100, 12_110, True, False)],
    ids=["still under way", "timed out before", "confirmed before"],
)
def test_a_heartbeat_waits_for_a_write_of_its_group(
    at: float, answered: float, *, confirmed: bool, waits: bool
) -> None:
    """The commit of b times out at 7003; its record need not be confirmed by the end of its time.

    The heartbeat of a that came after it times out with it, or after it. That of b shows that the
    record is confirmed.
    """
    scenario = commit(7_003, 15)
    scenario.requests = [
        seen
        for seen in scenario.requests
        if seen.api != "HEARTBEAT" or not START + 2_000 <= seen.at_ms <= START + answered + 90
    ]
    if confirmed:
        scenario.heartbeat("b", 7_050)
    scenario.heartbeat("a", at, UNAVAILABLE, answered=answered, latest=answered)
    outcome = judged(scenario, "4.3")
    assert (wrong(outcome) == []) == waits
    assert not waits or outcome.bound["failed_write"] == 2
