"""Requests that waited for the write of another (Java): time alone does not prove a time-out."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error
from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.replay import EpochEvent, Evidence, Replay, Stall, replay
from tests.reference_coordinator.replay.conftest import IDS, PROFILE, START, Scenario, stable, wrong
from tests.reference_coordinator.replay.test_outages import commit

JAVA = ("3.9-java", "4.3")
REPLICA = (Stall("2", START - 10, START + 5_100),)
"""Another broker stood still, so that a write of another group may have waited for it."""


def judged(
    scenario: Scenario, release: str, stalls: Iterable[Stall] = (), lines: Iterable[EpochEvent] = ()
) -> Replay:
    requests = (
        replace(seen, request={**seen.request, "sessionTimeoutMs": 30_000})
        if seen.api == "JOIN_GROUP"
        else seen
        for seen in scenario.requests
    )
    in_order = tuple(sorted(requests, key=lambda seen: seen.at_ms))
    loads = (EpochEvent(START - 200, "1", "loading"), EpochEvent(START - 100, "1", "loaded"))
    evidence = Evidence("g", in_order, epoch_events=(*loads, *lines), stalls=tuple(stalls))
    return replay(evidence, PROFILES[release].with_settings(PROFILE.settings))


def refused_join(took: float) -> Scenario:
    """The JoinGroup of c waits for a and b, and gets 15 though the answer of a lists c."""
    scenario = stable()
    refused = scenario.join("c", 2_000, 2_000 + took, generation=2)
    nobody = {"generationId": -1, "protocolName": "", "leader": "", "memberId": ""}
    scenario.change(refused, errorCode=Error.COORDINATOR_NOT_AVAILABLE, **nobody)
    where = {"generation": 2, "answered": 2_000 + took}
    scenario.join("b", 2_100, known=IDS["b"], **where)
    scenario.join("a", 1_998 + took, known=IDS["a"], members="abc", **where)
    return scenario


def refused_sync(took: float) -> Scenario:
    """The SyncGroup of b waits for a, and gets 15 though that of a succeeds at once."""
    scenario = Scenario()
    scenario.join("a", 0, 1_001, members="ab")
    scenario.join("b", 20, 1_001)
    refused = scenario.sync("b", 1_010, 1_010 + took)
    scenario.change(refused, errorCode=Error.COORDINATOR_NOT_AVAILABLE, assignment="")
    scenario.sync("a", 1_007 + took, 1_010 + took, gives="ab")
    return scenario


def refused_heartbeat(took: float, *others: float) -> Scenario:
    """A heartbeat of b gets 15; a sends heartbeats at other times, which are answered at once."""
    scenario = stable()
    scenario.heartbeat("b", 2_000, 15, answered=2_000 + took)
    scenario.alter_last(latest_ms=scenario.requests[-1].answered_ms)
    for at in others:
        scenario.heartbeat("a", at)
    return scenario


@pytest.mark.parametrize("release", JAVA)
@pytest.mark.parametrize("refused", [refused_join, refused_sync, refused_heartbeat])
def test_waiting_for_members_is_no_write_that_times_out(
    refused: type[Scenario], release: str
) -> None:
    for took in (600, 5_200, 7_500, 20_000):
        scenario = refused(took)
        unlike = next(seen.id for seen in scenario.requests if seen.response_fields["errorCode"])
        outcome = judged(scenario, release)
        assert unlike in wrong(outcome)
        assert outcome.bound.get("failed_write", 0) == 0


@pytest.mark.parametrize("release", JAVA)
@pytest.mark.parametrize("refused", [refused_sync, refused_heartbeat])
def test_a_write_of_another_group_may_time_out_while_a_broker_stands_still(
    refused: type[Scenario], release: str
) -> None:
    outcome = judged(refused(5_050), release, REPLICA)
    assert (wrong(outcome), outcome.bound["failed_write"]) == ([], 1)
    for stalled, explained in ((1_000, False), (2_400, False), (2_600, True)):  # half of 5 s
        short = [Stall("2", START + 1_000, START + 1_000 + stalled)]
        assert (wrong(judged(refused(5_050), release, short)) == []) == explained
    assert wrong(judged(refused(7_500), release, REPLICA)), "nobody was late by 1,500 ms"


@pytest.mark.parametrize(
    ("other", "shown"), [(1_500, False), (2_500, True), (6_500, True), (6_998, False)]
)
def test_a_later_answer_shows_that_the_writes_were_confirmed(other: float, shown: bool) -> None:
    outcome = judged(refused_heartbeat(5_050, other), "4.3", REPLICA)
    assert ("HEARTBEAT:b:2000" in wrong(outcome)) == shown


def test_a_heartbeat_waits_for_a_write_of_its_group() -> None:
    """The commit of b times out at 7003, and the heartbeat of a that came after it, too."""
    scenario = commit(7_003, 15)
    scenario.requests = [
        seen
        for seen in scenario.requests
        if seen.api != "HEARTBEAT" or seen.at_ms < START + 2_000 or seen.at_ms > START + 7_100
    ]
    scenario.heartbeat("a", 2_010, 15, answered=7_020)
    scenario.alter_last(latest_ms=START + 7_020)
    outcome = judged(scenario, "4.3")
    assert (wrong(outcome), outcome.bound["failed_write"]) == ([], 2)


@pytest.mark.parametrize(("confirmed", "waits"), [(False, True), (True, False)])
def test_a_heartbeat_waits_for_a_write_that_timed_out_before_it(
    *, confirmed: bool, waits: bool
) -> None:
    """The commit of b times out at 7003; its record is not confirmed by the end of its time."""
    scenario = commit(7_003, 15)
    scenario.requests = [
        seen
        for seen in scenario.requests
        if seen.api != "HEARTBEAT" or seen.at_ms < START + 2_000 or seen.at_ms > START + 12_200
    ]
    if confirmed:
        scenario.heartbeat("b", 7_050)
    scenario.heartbeat("a", 7_100, 15, answered=12_110)
    scenario.alter_last(latest_ms=START + 12_110)
    assert (wrong(judged(scenario, "4.3")) == []) == waits


@pytest.mark.parametrize(("release", "error"), [("2.8.1", 7), ("3.9-scala", 7), ("4.3", 15)])
def test_a_time_out_that_comes_too_late_is_wrong(release: str, error: int) -> None:
    scenario = commit(8_900, error)
    assert wrong(judged(scenario, release)) == ["OFFSET_COMMIT:b:2000"]
    held_up = [Stall("1", START + 6_900, START + 8_000)]
    line = [EpochEvent(START + 8_890, "1", AppendError.TIMED_OUT)]
    assert "OFFSET_COMMIT:b:2000" not in wrong(judged(scenario, release, held_up, line))
    assert wrong(judged(scenario, release, lines=line)) == ["OFFSET_COMMIT:b:2000"]
