"""What a replay makes of a small course of events with one thing wrong in it."""

import pytest

from reference_coordinator.replay import Serving
from tests.reference_coordinator.replay.conftest import (
    IDS,
    START,
    Story,
    rejoin,
    stable,
    unexplained,
    wrong,
)


def test_a_true_course_of_events_is_explained() -> None:
    story = stable()
    story.heartbeats("a", 1_500, 4_500)
    story.heartbeats("b", 1_510, 4_510)
    outcome = story.replay()
    assert outcome.violations == ()
    assert {c.request for c in outcome.checked} == {seen.id for seen in story.requests}
    assert unexplained(outcome) == []
    row = outcome.rows[0]
    assert (row.reason, row.generation, row.members, row.leader, row.ended_as) == (
        "new_member",
        1,
        2,
        IDS["a"],
        "assigned",
    )
    assert row.joined_ms == pytest.approx(START + 1_000)


@pytest.mark.parametrize("error", [22, 25, 27, 82])
def test_one_altered_answer_is_one_violation_and_the_rest_explained(error: int) -> None:
    story = stable()
    story.heartbeats("a", 1_500, 6_500)
    story.heartbeats("b", 1_510, 6_510)
    story.change("HEARTBEAT:b:3010", errorCode=error)
    outcome = story.replay()
    assert wrong(outcome) == unexplained(outcome) == ["HEARTBEAT:b:3010"]
    assert len(outcome.checked) == len(story.requests)
    assert outcome.violations[0].searched
    assert outcome.violations[0].expected == "error=NONE"


@pytest.mark.parametrize(
    ("request_id", "change"),
    [
        ("JOIN_GROUP:a:0", {"generationId": 2}),
        ("JOIN_GROUP:b:20", {"leader": IDS["b"]}),
        ("JOIN_GROUP:b:20", {"protocolName": "roundrobin"}),
        ("JOIN_GROUP:a:0", {"members": []}),
        ("SYNC_GROUP:b:1010", {"assignment": "share-a"}),
        ("SYNC_GROUP:a:1015", {"assignment": ""}),
    ],
)
def test_every_field_of_an_answer_counts(request_id: str, change: dict[str, object]) -> None:
    story = stable()
    story.heartbeats("a", 1_500, 3_500)
    story.heartbeats("b", 1_510, 3_510)
    story.change(request_id, **change)
    assert wrong(story.replay()) == [request_id]


def test_more_wrong_answers_than_separate_lies_are_one_derailment_until_the_census() -> None:
    story = stable()
    # b is told to come again though nobody came or went, and the broker stays with it
    story.heartbeats("a", 1_500, 3_500, error=27)
    story.heartbeats("b", 1_510, 3_510, error=27)
    rejoin(story, 4_000, 2)
    resumed = [seen.id for seen in story.requests if seen.api == "SYNC_GROUP"][2:]
    outcome = story.replay()
    assert wrong(outcome) == ["HEARTBEAT:a:1500"]
    assert outcome.bound["census"] == 1
    assert outcome.violations[0].until_ms == START + 4_042
    explained = {c.request for c in outcome.checked if c.explained}
    assert {*resumed} <= explained
    assert not any("HEARTBEAT" in request for request in explained)
    assert len(outcome.checked) == len(story.requests)


def test_a_few_wrong_answers_are_as_many_lies_without_a_census() -> None:
    story = stable()
    story.heartbeats("a", 1_500, 4_500)
    story.heartbeats("b", 1_510, 4_510)
    lies = ["HEARTBEAT:a:2000", "HEARTBEAT:b:2510", "HEARTBEAT:a:3500"]
    for lie in lies:
        story.change(lie, errorCode=25)
    outcome = story.replay()
    assert wrong(outcome) == unexplained(outcome) == lies
    assert "census" not in outcome.bound


def test_after_a_derailment_the_group_is_watched_again() -> None:
    story = stable()
    story.heartbeats("a", 1_500, 3_500, error=27)
    story.heartbeats("b", 1_510, 3_510, error=27)
    rejoin(story, 4_000, 2)
    story.change("SYNC_GROUP:b:4060", assignment="share-a")
    outcome = story.replay()
    assert wrong(outcome) == ["HEARTBEAT:a:1500", "SYNC_GROUP:b:4060"]


def test_a_request_never_let_go_on_is_answered_early() -> None:
    story = Story()
    story.join("a", 0, 300, members="a")  # the initial delay runs for 500 ms
    outcome = story.replay()
    assert [v.rule for v in outcome.violations] == ["answered_early"]


def test_an_answer_long_after_it_was_due_is_late() -> None:
    story = stable()
    story.heartbeat("a", 1_500, answered=4_000)
    outcome = story.replay()
    assert [(v.rule, v.request) for v in outcome.violations] == [
        ("answered_late", "HEARTBEAT:a:1500")
    ]


class TestAnotherBroker:
    def served(self) -> Story:
        story = stable()
        story.servings = [Serving(START - 300, "1", "loading"), Serving(START - 200, "1", "loaded")]
        return story

    def test_sends_members_on(self) -> None:
        story = self.served()
        story.join("c", -50, -49, error=16, broker="2")
        story.join("c", 1_600, 1_601, error=16, broker="2")
        assert story.replay().violations == ()

    def test_has_no_answer_of_its_own(self) -> None:
        story = self.served()
        lie = story.heartbeat("b", 1_600, broker="2")
        outcome = story.replay()
        assert wrong(outcome) == unexplained(outcome) == [lie]
        assert outcome.violations[0].expected == "error=NOT_COORDINATOR"

    def test_keeps_no_session_alive(self) -> None:
        story = self.served()
        story.heartbeats("a", 1_500, 5_500)
        for at in (2_000, 2_500, 3_000, 3_500):
            story.heartbeat("b", at, error=16, broker="2")
        # the last sign of b is its SyncGroup, answered at 1018: its session ends at 4018
        for at in (4_500, 5_000, 5_500):
            story.change(f"HEARTBEAT:a:{at}", errorCode=27)
        outcome = story.replay()
        assert outcome.violations == ()
        assert outcome.rows[-1].reason == "session_expired"
