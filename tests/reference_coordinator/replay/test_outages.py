"""Writes that fail while a broker is down on purpose: bound then, and only then."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.replay import Evidence, Outage, replay
from reference_coordinator.replay.failed_writes import TIMED_OUT
from tests.reference_coordinator.replay.conftest import IDS, PROFILE, START, Scenario, stable, wrong

DOWN = Outage(START + 1_900, START + 4_000)


def refused(api: str = "HEARTBEAT", error: int = 15) -> Scenario:
    """A request of b, pending from 2000 to 2600, whose response reports a failed write."""
    scenario = stable()
    scenario.heartbeats("a", 1_500, 3_500)
    topics = [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]
    topics = [{"name": "orders", "partitions": [{"partitionIndex": 0, "errorCode": error}]}]
    if api == "HEARTBEAT":
        scenario.heartbeat("b", 2_000, error, answered=2_600)
    else:
        body = {"generationIdOrMemberEpoch": 1, "topics": topics}
        scenario.ask(api, "b", 2_000, body, {"topics": topics}, answered=2_600)
    scenario.requests = [replace(r, latest_ms=r.answered_ms) for r in scenario.requests]
    scenario.heartbeat("b", 2_800)
    return scenario


def test_a_write_may_fail_while_a_broker_is_down() -> None:
    """Every request that waits for it gets its error, and no other error."""
    for api, error, excused in (
        ("OFFSET_COMMIT", Error.COORDINATOR_NOT_AVAILABLE, True),
        ("HEARTBEAT", Error.COORDINATOR_NOT_AVAILABLE, True),
        ("HEARTBEAT", Error.UNKNOWN_MEMBER_ID, False),
    ):
        scenario = refused(api, error)
        assert wrong(scenario.replay()) == [f"{api}:b:2000"]
        scenario.outages = [Outage(START, START + 1_990)]  # it was over
        assert wrong(scenario.replay()) == [f"{api}:b:2000"]
        scenario.outages = [DOWN]
        outcome = scenario.replay()
        assert (outcome.violations == ()) == excused
        assert outcome.bound.get("failed_write", 0) == excused


def test_a_scala_coordinator_answers_heartbeats_without_waiting() -> None:
    def judged(scenario: Scenario) -> list[str]:
        evidence = Evidence("g", tuple(sorted(scenario.requests, key=lambda r: r.at_ms)))
        profile = PROFILES["3.9-scala"].with_settings(PROFILE.settings)
        return wrong(replay(replace(evidence, outages=(DOWN,)), profile))

    assert judged(refused()) == ["HEARTBEAT:b:2000"]
    assert judged(refused("OFFSET_COMMIT")) == []
    assert judged(refused("OFFSET_COMMIT", error=Error.REQUEST_TIMED_OUT)) == [
        "OFFSET_COMMIT:b:2000"
    ]  # too soon


def commit(answered: float, error: int) -> Scenario:
    """A commit of b from 2000 on; both members stay, and send heartbeats."""
    scenario = stable()
    for who in "ab":
        for at in range(1_500, 9_000, 500):
            scenario.heartbeat(who, at + (who == "b"))
    topics = [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]
    topics = [{"name": "orders", "partitions": [{"partitionIndex": 0, "errorCode": error}]}]
    body = {"generationIdOrMemberEpoch": 1, "topics": topics}
    where = {"answered": answered, "broker": "1"}
    scenario.ask("OFFSET_COMMIT", "b", 2_000, body, {"topics": topics}, **where)
    last = scenario.requests[-1]
    scenario.requests[-1] = replace(last, connection="commits", latest_ms=last.answered_ms)
    return scenario


@pytest.mark.parametrize(
    ("release", "error"),
    [("2.6.0", 7), ("2.8.1", 7), ("3.9-scala", 7), ("3.9-java", 15), ("4.3", 15)],
)
@pytest.mark.parametrize(
    ("answered", "timed_out"), [(2_010, False), (6_980, False), (6_990, True), (7_003, True)]
)
def test_a_commit_times_out_after_its_time(
    release: str, error: int, answered: float, timed_out: bool
) -> None:
    """Seen on 2.6.0: error 7, remoteTimeMs 5003. No fault is needed for it, only its time."""
    evidence = commit(answered, error)
    evidence = Evidence("g", tuple(sorted(evidence.requests, key=lambda r: r.at_ms)))
    result = replay(evidence, PROFILES[release].with_settings(PROFILE.settings))
    assert wrong(result) == ([] if timed_out else ["OFFSET_COMMIT:b:2000"])
    assert result.bound.get("failed_write", 0) == timed_out
    shown = [due.latest_ms - START for due in result.expected_lines if due.line == TIMED_OUT]
    assert shown == ([answered] if timed_out else [])


def test_the_time_of_a_write_is_a_setting() -> None:
    settings = replace(PROFILE.settings, commit_timeout_ms=500)
    requests = commit(2_503, 15).requests
    evidence = Evidence("g", tuple(sorted(requests, key=lambda r: r.at_ms)))
    assert wrong(replay(evidence, PROFILE)) == ["OFFSET_COMMIT:b:2000"]
    assert wrong(replay(evidence, PROFILE.with_settings(settings))) == []


@pytest.mark.parametrize(
    ("release", "error"), [("2.8.1", 15), ("3.9-scala", 27), ("3.9-java", 7), ("4.3", 7)]
)
def test_a_commit_that_times_out_has_its_own_error(release: str, error: int) -> None:
    """What group records are answered with, or the other coordinator's commits, is wrong here."""
    requests = commit(7_003, error).requests
    evidence = Evidence("g", tuple(sorted(requests, key=lambda r: r.at_ms)))
    result = replay(evidence, PROFILES[release].with_settings(PROFILE.settings))
    assert wrong(result) == ["OFFSET_COMMIT:b:2000"]


def unstored(error: int, answered: float) -> Evidence:
    """An assignment that is not confirmed: both SyncGroups are answered with an error."""
    scenario = Scenario()
    scenario.join("a", 0, 1_001, members="ab")
    scenario.join("b", 20, 1_001)
    shares = [{"memberId": IDS[n], "assignment": f"share-{n}"} for n in "ab"]
    for who, gives in (("b", []), ("a", shares)):
        body = {"generationId": 1, "assignments": gives}
        answer = {"errorCode": error, "assignment": ""}
        scenario.ask("SYNC_GROUP", who, 1_010, body, answer, answered=answered)
    requests = [
        replace(r, request={**r.request, "sessionTimeoutMs": 30_000})
        if r.api == "JOIN_GROUP"
        else r
        for r in scenario.requests
    ]
    return Evidence("g", tuple(requests))


@pytest.mark.parametrize(("release", "error"), [("3.9-scala", 27), ("4.3", 15)])
@pytest.mark.parametrize(("answered", "timed_out"), [(1_600, False), (6_020, True)])
def test_an_assignment_times_out_after_its_time(
    release: str, error: int, answered: float, timed_out: bool
) -> None:
    profile = PROFILES[release].with_settings(PROFILE.settings)
    outcome = replay(unstored(error, answered), profile)
    assert (outcome.violations == ()) == timed_out
    if timed_out:
        assert outcome.rows[-1].reason == "assignment_error"


def test_an_assignment_that_was_not_stored_makes_the_group_rebalance() -> None:
    evidence = unstored(Error.COORDINATOR_NOT_AVAILABLE, 1_600)
    assert wrong(replay(replace(evidence, outages=(DOWN,)), PROFILE))
    down = Outage(START + 1_200, START + 4_000)
    outcome = replay(replace(evidence, outages=(down,)), PROFILE)
    assert outcome.violations == ()
    assert outcome.rows[-1].reason == "assignment_error"
