"""What a replay makes of a short scenario with one thing wrong in it."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import EpochEvent
from tests.reference_coordinator.replay.conftest import (
    IDS,
    START,
    Scenario,
    rejoin,
    stable,
    unexplained,
    wrong,
)


def test_correct_evidence_is_explained() -> None:
    scenario = stable()
    scenario.heartbeats("a", 1_500, 4_500)
    scenario.heartbeats("b", 1_510, 4_510)
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert {c.request for c in outcome.checked} == {seen.id for seen in scenario.requests}
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
    scenario = stable()
    scenario.heartbeats("a", 1_500, 6_500)
    scenario.heartbeats("b", 1_510, 6_510)
    scenario.change("HEARTBEAT:b:3010", errorCode=error)
    outcome = scenario.replay()
    assert wrong(outcome) == unexplained(outcome) == ["HEARTBEAT:b:3010"]
    assert len(outcome.checked) == len(scenario.requests)
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
    scenario = stable()
    scenario.heartbeats("a", 1_500, 3_500)
    scenario.heartbeats("b", 1_510, 3_510)
    scenario.change(request_id, **change)
    assert wrong(scenario.replay()) == [request_id]


def test_many_wrong_responses_are_one_derailment_until_the_census() -> None:
    scenario = stable()
    # b receives REBALANCE_IN_PROGRESS without any change of members, and the broker repeats it
    scenario.heartbeats("a", 1_500, 3_500, error=Error.REBALANCE_IN_PROGRESS)
    scenario.heartbeats("b", 1_510, 3_510, error=Error.REBALANCE_IN_PROGRESS)
    rejoin(scenario, 4_000, 2)
    resumed = [seen.id for seen in scenario.requests if seen.api == "SYNC_GROUP"][2:]
    outcome = scenario.replay()
    assert wrong(outcome) == ["HEARTBEAT:a:1500"]
    assert outcome.bound["census"] == 1
    assert outcome.violations[0].until_ms == START + 4_042
    explained = {c.request for c in outcome.checked if c.explained}
    assert {*resumed} <= explained
    assert not any("HEARTBEAT" in request for request in explained)
    assert len(outcome.checked) == len(scenario.requests)


def test_a_few_wrong_responses_are_separate_violations_without_a_census() -> None:
    scenario = stable()
    scenario.heartbeats("a", 1_500, 4_500)
    scenario.heartbeats("b", 1_510, 4_510)
    wrong_answers = ["HEARTBEAT:a:2000", "HEARTBEAT:b:2510", "HEARTBEAT:a:3500"]
    for wrong_answer in wrong_answers:
        scenario.change(wrong_answer, errorCode=Error.UNKNOWN_MEMBER_ID)
    outcome = scenario.replay()
    assert wrong(outcome) == unexplained(outcome) == wrong_answers
    assert "census" not in outcome.bound


def test_after_a_derailment_the_group_is_watched_again() -> None:
    scenario = stable()
    scenario.heartbeats("a", 1_500, 3_500, error=Error.REBALANCE_IN_PROGRESS)
    scenario.heartbeats("b", 1_510, 3_510, error=Error.REBALANCE_IN_PROGRESS)
    rejoin(scenario, 4_000, 2)
    scenario.change("SYNC_GROUP:b:4060", assignment="share-a")
    outcome = scenario.replay()
    assert wrong(outcome) == ["HEARTBEAT:a:1500", "SYNC_GROUP:b:4060"]


def test_a_response_before_the_oracle_completes_the_request_is_early() -> None:
    scenario = Scenario()
    scenario.join("a", 0, 300, members="a")  # the initial delay runs for 500 ms
    outcome = scenario.replay()
    assert [v.rule for v in outcome.violations] == ["answered_early"]


def test_an_answer_long_after_it_was_due_is_late() -> None:
    scenario = stable()
    scenario.heartbeat("a", 1_500, answered=4_000)
    scenario.heartbeat("b", 2_500)  # no write was under way, or this had waited, too
    outcome = scenario.replay()
    assert [(v.rule, v.request) for v in outcome.violations] == [
        ("answered_late", "HEARTBEAT:a:1500")
    ]


@pytest.mark.parametrize(("answered", "late"), [(7_400, 0), (7_600, 1)])
def test_an_answer_waits_for_a_write_no_longer_than_that_may_take(answered: int, late: int) -> None:
    scenario = stable()
    scenario.heartbeat("a", 1_500, answered=answered)  # Java: behind another group's write, 5 s
    rules = [v.rule for v in scenario.replay().violations if v.request == "HEARTBEAT:a:1500"]
    assert rules == ["answered_late"] * late


class TestAnotherBroker:
    def served(self) -> Scenario:
        scenario = stable()
        scenario.epoch_events = [
            EpochEvent(START - 300, "1", "loading"),
            EpochEvent(START - 200, "1", "loaded"),
        ]
        return scenario

    def test_answers_joins_with_not_coordinator(self) -> None:
        scenario = self.served()
        scenario.join("c", -50, -49, error=Error.NOT_COORDINATOR, broker="2")
        scenario.join("c", 1_600, 1_601, error=Error.NOT_COORDINATOR, broker="2")
        assert scenario.replay().violations == ()

    def test_has_no_answer_of_its_own(self) -> None:
        scenario = self.served()
        wrong_answer = scenario.heartbeat("b", 1_600, broker="2")
        outcome = scenario.replay()
        assert wrong(outcome) == unexplained(outcome) == [wrong_answer]
        assert outcome.violations[0].expected == "error=NOT_COORDINATOR"

    def test_keeps_no_session_alive(self) -> None:
        scenario = self.served()
        scenario.heartbeats("a", 1_500, 5_500)
        for at in (2_000, 2_500, 3_000, 3_500):
            scenario.heartbeat("b", at, error=Error.NOT_COORDINATOR, broker="2")
        # the last sign of b is its SyncGroup, answered at 1018: its session ends at 4018
        for at in (4_500, 5_000, 5_500):
            scenario.change(f"HEARTBEAT:a:{at}", errorCode=Error.REBALANCE_IN_PROGRESS)
        outcome = scenario.replay()
        assert outcome.violations == ()
        assert outcome.rows[-1].reason == "session_expired"


def test_a_violation_with_consequences_leaves_the_responses_before_it_explained() -> None:
    scenario = stable()
    for who in "ab":
        scenario.heartbeats(who, 1_500, 6_000)
    asked = {seen.id for seen in scenario.requests}
    for at in range(4_000, 6_001, 500):  # more than may be wrong one by one
        scenario.change(f"HEARTBEAT:a:{at}", errorCode=Error.FENCED_INSTANCE_ID)
    outcome = scenario.replay()
    assert {checked.request for checked in outcome.checked} == asked
    assert len(outcome.checked) == len(asked)
    assert not {f"HEARTBEAT:b:{at}" for at in range(1_500, 4_000, 500)} & {*unexplained(outcome)}
