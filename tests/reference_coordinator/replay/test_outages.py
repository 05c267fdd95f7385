"""Writes that fail while a broker is down on purpose: bound then, and only then."""

from dataclasses import replace

from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.replay import Evidence, Outage, replay
from tests.reference_coordinator.replay.conftest import IDS, PROFILE, START, Scenario, stable, wrong

DOWN = Outage(START + 1_900, START + 4_000)


def refused(api: str = "HEARTBEAT", error: int = 15) -> Scenario:
    """A request of b that waited from 2000 to 2600 and was told of a failed write."""
    scenario = stable()
    scenario.heartbeats("a", 1_500, 3_500)
    topics = [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]
    told = [{"name": "orders", "partitions": [{"partitionIndex": 0, "errorCode": error}]}]
    if api == "HEARTBEAT":
        scenario.heartbeat("b", 2_000, error, answered=2_600)
    else:
        body = {"generationIdOrMemberEpoch": 1, "topics": topics}
        scenario.ask(api, "b", 2_000, body, {"topics": told}, answered=2_600)
    scenario.requests = [replace(r, latest_ms=r.answered_ms) for r in scenario.requests]
    scenario.heartbeat("b", 2_800)
    return scenario


def test_a_write_may_fail_while_a_broker_is_down() -> None:
    scenario = refused("OFFSET_COMMIT")
    assert wrong(scenario.replay()) == ["OFFSET_COMMIT:b:2000"]
    scenario.outages = [DOWN]
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert outcome.bound["failed_write"] == 1


def test_whatever_waits_for_the_write_is_told_of_it() -> None:
    scenario = refused()
    assert wrong(scenario.replay()) == ["HEARTBEAT:b:2000"]
    scenario.outages = [DOWN]
    assert scenario.replay().violations == ()


def test_no_other_error_is_excused() -> None:
    scenario = refused(error=25)
    scenario.outages = [DOWN]
    assert wrong(scenario.replay()) == ["HEARTBEAT:b:2000"]


def test_an_outage_that_was_over_excuses_nothing() -> None:
    scenario = refused()
    scenario.outages = [Outage(START, START + 1_990)]
    assert wrong(scenario.replay()) == ["HEARTBEAT:b:2000"]


def test_a_scala_coordinator_answers_heartbeats_without_waiting() -> None:
    def judged(scenario: Scenario) -> list[str]:
        evidence = Evidence("g", tuple(sorted(scenario.requests, key=lambda r: r.at_ms)))
        profile = PROFILES["3.9-scala"].with_settings(PROFILE.settings)
        return wrong(replay(replace(evidence, outages=(DOWN,)), profile))

    assert judged(refused()) == ["HEARTBEAT:b:2000"]
    assert judged(refused("OFFSET_COMMIT")) == []
    assert judged(refused("OFFSET_COMMIT", error=7)) == []


def test_an_assignment_that_was_not_stored_makes_the_group_rebalance() -> None:
    scenario = Scenario()
    scenario.join("a", 0, 1_001, members="ab")
    scenario.join("b", 20, 1_001)
    shares = [{"memberId": IDS[n], "assignment": f"share-{n}"} for n in "ab"]
    for who, gives in (("b", []), ("a", shares)):
        body = {"generationId": 1, "assignments": gives}
        answer = {"errorCode": 15, "assignment": ""}
        scenario.ask("SYNC_GROUP", who, 1_010, body, answer, answered=1_600)
    scenario.outages = [DOWN]
    assert wrong(scenario.replay())
    scenario.outages = [Outage(START + 1_200, START + 4_000)]
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert outcome.rows[-1].reason == "assignment_error"
