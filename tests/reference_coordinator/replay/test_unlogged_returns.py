"""Ids that a killed coordinator stored and no response gave: a doubt; other unknown ids: wrong."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import EpochEvent, Evidence, Replay, replay
from reference_coordinator.replay.member_ids import AS_MEMBER
from tests.recorded.logs import RECORDINGS
from tests.reference_coordinator.replay.conftest import renamed as with_text

NAMES = ("kafka-3.9.1-java", "kafka-3.9.1-scala", "kafka-4.3.0")
pytestmark = pytest.mark.parametrize("name", NAMES)
NEW_ID = "b-00000000-1111-2222-3333-444444444444"


def recorded(name: str) -> tuple[Evidence, float, str]:
    """Return a group whose coordinator is killed, when it is, and the id of b from then on."""
    evidence = RECORDINGS[name].evidence_with_faults("failover")
    killed_ms = min(e.at_ms for e in evidence.epoch_events if e.kind == "ended")
    ids = (
        seen.request["memberId"]
        for seen in evidence.requests
        if seen.request.get("groupInstanceId") == "b" and seen.at_ms > killed_ms
    )
    return evidence, killed_ms, next(ids)


def renamed(evidence: Evidence, old: str, new: str, from_ms: float) -> Evidence:
    """Give a member another id from a time on."""
    requests = tuple(
        with_text(seen, old, new) if seen.at_ms >= from_ms else seen for seen in evidence.requests
    )
    hints = tuple(
        replace(hint, subject=new) if hint.subject == old and hint.at_ms >= from_ms else hint
        for hint in evidence.hints
    )
    return replace(evidence, requests=requests, hints=hints)


def judged(name: str, evidence: Evidence) -> Replay:
    return replay(evidence, RECORDINGS[name].profile)


def test_a_successor_knows_an_id_that_no_response_gave(name: str) -> None:
    evidence, killed_ms, old = recorded(name)
    assert "unlogged_return" not in judged(name, evidence).bound
    outcome = judged(name, renamed(evidence, old, NEW_ID, killed_ms))
    assert (outcome.violations, outcome.bound["unlogged_return"]) == ((), 1)


@pytest.mark.parametrize(
    ("after_ms", "api", "is_explained"),
    [(-5.0, "HEARTBEAT", True), (-5.0, "SYNC_GROUP", False), (110.0, "HEARTBEAT", False)],
)
def test_an_answer_while_the_group_loads_shows_no_member(
    name: str, after_ms: float, api: str, *, is_explained: bool
) -> None:
    """The old process of an instance goes on with its old id, which the record has no more."""
    evidence, killed_ms, old = recorded(name)
    lie = renamed(evidence, old, NEW_ID, killed_ms)
    loaded_ms = next(e.at_ms for e in lie.epoch_events if e.kind == "loaded" and e.epoch == 1)
    like = next(s for s in evidence.requests if s.api == api and s.request.get("memberId") == old)
    after = next(s for s in lie.requests if s.at_ms > loaded_ms)
    at_ms = loaded_ms + after_ms
    early = replace(
        like, id="early", connection="early", broker=after.broker,
        response={"errorCode": Error.NONE},
        earliest_ms=at_ms, at_ms=at_ms, latest_ms=at_ms, answered_ms=at_ms,
    )  # fmt: skip
    requests = sorted((*lie.requests, early), key=lambda seen: seen.at_ms)
    outcome = judged(name, replace(lie, requests=tuple(requests)))
    assert (not outcome.violations) == is_explained


@pytest.mark.parametrize(
    "new", ["b-0", "b-00000000-1111-2222-3333-4444444444445", NEW_ID.replace("b-", "z-")]
)
def test_an_id_has_the_form_of_its_instance(name: str, new: str) -> None:
    evidence, killed_ms, old = recorded(name)
    outcome = judged(name, renamed(evidence, old, new, killed_ms))
    assert outcome.violations
    assert "unlogged_return" not in outcome.bound


def test_a_coordinator_that_gave_the_group_up_has_logged_its_responses(name: str) -> None:
    evidence, killed_ms, old = recorded(name)
    broker = next(e.broker for e in evidence.epoch_events if e.at_ms == killed_ms)
    unloaded = EpochEvent(killed_ms - 1, broker, "unloaded")
    lie = renamed(evidence, old, NEW_ID, killed_ms)
    events = (*evidence.epoch_events, unloaded)
    assert judged(name, replace(evidence, epoch_events=events)).violations == ()
    outcome = judged(name, replace(lie, epoch_events=events))
    assert outcome.violations
    assert "unlogged_return" not in outcome.bound


def test_an_id_that_another_response_gave_is_no_new_one(name: str) -> None:
    """The member has the id of one that came before, in another process of its instance."""
    evidence, killed_ms, old = recorded(name)
    lie = renamed(evidence, old, NEW_ID, killed_ms)
    first = next(s for s in lie.requests if s.api == "JOIN_GROUP" and not s.request["memberId"])
    given = replace(
        first,
        id="another",
        connection="another",
        request={**first.request, "groupId": "failover", "groupInstanceId": "z"},
        response={**first.response_fields, "memberId": NEW_ID},
    )
    outcome = judged(name, replace(lie, requests=(*lie.requests, given)))
    assert "unlogged_return" not in outcome.bound


def test_no_id_appears_long_after_the_load(name: str) -> None:
    """The successor first knows the old id, then the new one: no response gave it."""
    evidence, killed_ms, old = recorded(name)
    mine = [
        seen.at_ms
        for seen in evidence.requests
        if seen.at_ms > killed_ms and seen.request.get("memberId") == old
        if seen.response_fields.get("errorCode") in AS_MEMBER
    ]
    assert judged(name, renamed(evidence, old, NEW_ID, mine[1])).violations
