"""What a replay makes of a short scenario with one thing wrong in it."""

from typing import Any

import pytest

from kafka_protocol.errors import Error
from tests.reference_coordinator.replay.conftest import (
    IDS,
    LOADS,
    START,
    Scenario,
    beating,
    rejoin,
    stable,
    unexplained,
    wrong,
)

AGAIN = Error.REBALANCE_IN_PROGRESS


def test_correct_evidence_is_explained() -> None:
    scenario = beating(4_500)
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert {c.request for c in outcome.checked} == {seen.id for seen in scenario.requests}
    assert unexplained(outcome) == []
    (row,) = outcome.rows
    assert (row.reason, row.generation, row.members) == ("new_member", 1, 2)
    assert (row.leader, row.ended_as) == (IDS["a"], "assigned")
    assert row.joined_ms == pytest.approx(START + 1_000)


@pytest.mark.parametrize(
    ("request_id", "change"),
    [
        *(("HEARTBEAT:b:3010", {"errorCode": error}) for error in (22, 25, 27, 82)),
        ("JOIN_GROUP:a:0", {"generationId": 2}),
        ("JOIN_GROUP:b:20", {"leader": IDS["b"]}),
        ("JOIN_GROUP:b:20", {"protocolName": "roundrobin"}),
        ("JOIN_GROUP:a:0", {"members": []}),
        ("SYNC_GROUP:b:1010", {"assignment": "share-a"}),
        ("SYNC_GROUP:a:1015", {"assignment": ""}),
    ],
)
def test_every_field_of_an_answer_counts(request_id: str, change: dict[str, Any]) -> None:
    """A lie about a heartbeat leads nowhere else; after one about a join all may be otherwise."""
    scenario = beating(6_500)
    scenario.change(request_id, **change)
    outcome = scenario.replay()
    (violation,) = outcome.violations
    assert violation.request == request_id
    assert violation.searched
    assert len(outcome.checked) == len(scenario.requests)
    if "HEARTBEAT" in request_id:
        assert violation.expected == "error=NONE"
        assert unexplained(outcome) == [request_id]


def test_many_wrong_responses_are_one_derailment_until_the_census() -> None:
    """The members receive REBALANCE_IN_PROGRESS again and again, and nothing changed."""
    scenario = beating(3_500, AGAIN)
    rejoin(scenario, 4_000, 2)
    resumed = {seen.id for seen in scenario.requests if seen.api == "SYNC_GROUP"} - {
        "SYNC_GROUP:a:1015",
        "SYNC_GROUP:b:1010",
    }
    outcome = scenario.replay()
    assert wrong(outcome) == ["HEARTBEAT:a:1500"]
    assert outcome.bound["census"] == 1
    assert outcome.violations[0].until_ms == START + 4_042
    explained = {c.request for c in outcome.checked if c.explained}
    assert resumed <= explained
    assert not any("HEARTBEAT" in request for request in explained)
    assert len(outcome.checked) == len(scenario.requests)
    scenario.change("SYNC_GROUP:b:4060", assignment="share-a")  # the group is watched again
    assert wrong(scenario.replay()) == ["HEARTBEAT:a:1500", "SYNC_GROUP:b:4060"]


def test_a_few_wrong_responses_are_separate_violations_without_a_census() -> None:
    scenario = beating(4_500)
    wrong_answers = ["HEARTBEAT:a:2000", "HEARTBEAT:b:2510", "HEARTBEAT:a:3500"]
    for wrong_answer in wrong_answers:
        scenario.change(wrong_answer, errorCode=Error.UNKNOWN_MEMBER_ID)
    outcome = scenario.replay()
    assert wrong(outcome) == unexplained(outcome) == wrong_answers
    assert "census" not in outcome.bound


def test_a_violation_with_consequences_leaves_the_responses_before_it_explained() -> None:
    scenario = beating(6_000)
    for at in range(4_000, 6_001, 500):  # more than may be wrong one by one
        scenario.change(f"HEARTBEAT:a:{at}", errorCode=Error.FENCED_INSTANCE_ID)
    outcome = scenario.replay()
    assert sorted(c.request for c in outcome.checked) == sorted(s.id for s in scenario.requests)
    assert not {f"HEARTBEAT:b:{at}" for at in range(1_510, 4_000, 500)} & {*unexplained(outcome)}


def test_a_response_before_the_oracle_completes_the_request_is_early() -> None:
    scenario = Scenario()
    scenario.join("a", 0, 300, members="a")  # the initial delay runs for 500 ms
    assert [v.rule for v in scenario.replay().violations] == ["answered_early"]


@pytest.mark.parametrize(
    ("answered", "others", "late"), [(4_000, [2_500], 1), (7_400, [], 0), (7_600, [], 1)]
)
def test_an_answer_waits_for_a_write_no_longer_than_that_may_take(
    answered: int, others: list[int], late: int
) -> None:
    """Java: behind another group's write, 5 s; not where a later heartbeat did not wait."""
    scenario = stable()
    scenario.heartbeat("a", 1_500, answered=answered)
    for at in others:
        scenario.heartbeat("b", at)
    rules = [v.rule for v in scenario.replay().violations if v.request == "HEARTBEAT:a:1500"]
    assert rules == ["answered_late"] * late


class TestAnotherBroker:
    def served(self) -> Scenario:
        scenario = stable()
        scenario.epoch_events = [*LOADS]
        return scenario

    def test_answers_with_not_coordinator_and_has_no_answer_of_its_own(self) -> None:
        scenario = self.served()
        for at in (-50, 1_600):
            scenario.join("c", at, at + 1, error=Error.NOT_COORDINATOR, broker="2")
        assert scenario.replay().violations == ()
        wrong_answer = scenario.heartbeat("b", 1_700, broker="2")
        outcome = scenario.replay()
        assert wrong(outcome) == unexplained(outcome) == [wrong_answer]
        assert outcome.violations[0].expected == "error=NOT_COORDINATOR"

    def test_keeps_no_session_alive(self) -> None:
        """The last sign of b is its SyncGroup, answered at 1018: its session ends at 4018."""
        scenario = self.served()
        scenario.heartbeats("a", 1_500, 5_500, AGAIN, error_from=4_500)
        scenario.heartbeats("b", 2_000, 3_500, Error.NOT_COORDINATOR, broker="2")
        outcome = scenario.replay()
        assert outcome.violations == ()
        assert outcome.rows[-1].reason == "session_expired"
