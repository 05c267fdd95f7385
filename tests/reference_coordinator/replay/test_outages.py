"""Writes that fail while a broker is down on purpose: bound then, and only then."""

from dataclasses import replace

from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.replay import Evidence, Outage, replay
from tests.reference_coordinator.replay.conftest import IDS, PROFILE, START, Story, stable, wrong

DOWN = Outage(START + 1_900, START + 4_000)


def refused(api: str = "HEARTBEAT", error: int = 15) -> Story:
    """A request of b that waited from 2000 to 2600 and was told of a failed write."""
    story = stable()
    story.heartbeats("a", 1_500, 3_500)
    topics = [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]
    told = [{"name": "orders", "partitions": [{"partitionIndex": 0, "errorCode": error}]}]
    if api == "HEARTBEAT":
        story.heartbeat("b", 2_000, error, answered=2_600)
    else:
        body = {"generationIdOrMemberEpoch": 1, "topics": topics}
        story.ask(api, "b", 2_000, body, {"topics": told}, answered=2_600)
    story.requests = [replace(r, latest_ms=r.answered_ms) for r in story.requests]
    story.heartbeat("b", 2_800)
    return story


def test_a_write_may_fail_while_a_broker_is_down() -> None:
    story = refused("OFFSET_COMMIT")
    assert wrong(story.replay()) == ["OFFSET_COMMIT:b:2000"]
    story.outages = [DOWN]
    outcome = story.replay()
    assert outcome.violations == ()
    assert outcome.bound["failed_write"] == 1


def test_whatever_waits_for_the_write_is_told_of_it() -> None:
    story = refused()
    assert wrong(story.replay()) == ["HEARTBEAT:b:2000"]
    story.outages = [DOWN]
    assert story.replay().violations == ()


def test_no_other_error_is_excused() -> None:
    story = refused(error=25)
    story.outages = [DOWN]
    assert wrong(story.replay()) == ["HEARTBEAT:b:2000"]


def test_an_outage_that_was_over_excuses_nothing() -> None:
    story = refused()
    story.outages = [Outage(START, START + 1_990)]
    assert wrong(story.replay()) == ["HEARTBEAT:b:2000"]


def test_a_scala_coordinator_answers_heartbeats_without_waiting() -> None:
    def judged(story: Story) -> list[str]:
        evidence = Evidence("g", tuple(sorted(story.requests, key=lambda r: r.at_ms)))
        profile = PROFILES["3.9-scala"].with_settings(PROFILE.settings)
        return wrong(replay(replace(evidence, outages=(DOWN,)), profile))

    assert judged(refused()) == ["HEARTBEAT:b:2000"]
    assert judged(refused("OFFSET_COMMIT")) == []
    assert judged(refused("OFFSET_COMMIT", error=7)) == []


def test_an_assignment_that_was_not_stored_makes_the_group_rebalance() -> None:
    story = Story()
    story.join("a", 0, 1_001, members="ab")
    story.join("b", 20, 1_001)
    shares = [{"memberId": IDS[n], "assignment": f"share-{n}"} for n in "ab"]
    for who, gives in (("b", []), ("a", shares)):
        body = {"generationId": 1, "assignments": gives}
        answer = {"errorCode": 15, "assignment": ""}
        story.ask("SYNC_GROUP", who, 1_010, body, answer, answered=1_600)
    story.outages = [DOWN]
    assert wrong(story.replay())
    story.outages = [Outage(START + 1_200, START + 4_000)]
    outcome = story.replay()
    assert outcome.violations == ()
    assert outcome.rows[-1].reason == "assignment_error"
