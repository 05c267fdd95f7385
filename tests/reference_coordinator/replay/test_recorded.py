"""Replays the recorded evidence of real brokers, read here without Spark."""

from collections import Counter
from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.replay import replay
from reports.judgement.recording import Recording
from tests.recorded.logs import RECORDINGS
from tests.recorded.logs import observed as seen_of
from tests.reference_coordinator.replay.conftest import unexplained, wrong

REBALANCES = {
    # why each group rebalances; the last one is that everybody's session ends
    "absent": ["new_member", "new_member", "pending_sync", "new_member", "session_expired"],
    "failover": ["new_member", "leave", "new_member", "session_expired", "session_expired"],
    "fencing": ["new_member", "session_expired"],
    "forming": ["new_member", "leave", "new_member", "leave", "new_member", "session_expired"],
    "full": ["new_member", "leave", "session_expired"],
    "leading": [
        "new_member", "leader_rejoin", "member_metadata", "leave", "new_member", "pending_sync",
        "session_expired",
    ],
    "mixed": [
        "new_member", "leave", "new_member", "leave", "new_member", "new_member", "session_expired",
    ],
    "removal": ["new_member", "leave", "leave", "new_member", "session_expired"],
    "returning": ["new_member", "leader_rejoin", "static_replaced", "session_expired"],
    "sessions": ["new_member", "session_expired", "new_member", "session_expired"],
    "silent": ["new_member", "pending_sync", "new_member", "pending_sync", "session_expired"],
}  # fmt: skip


DIFFERENCES = {
    # rules in which the two coordinators differ, and the group that shows it
    "commit_to_unknown_group_v9": "pending",
    "removed_pending_timer_runs_on": "pending",
    "leave_is_one_step": "pending",
    "session_range_comes_first": "failover",
    "unserved_join_keeps_member_id": "failover",
    "sync_in_stable_restarts_session": "sessions",
}


@pytest.fixture(params=RECORDINGS)
def recording(request: pytest.FixtureRequest) -> Recording:
    return RECORDINGS[request.param]


def test_the_recorded_evidence_is_explained(recording: Recording) -> None:
    for group in recording.groups:
        evidence = recording.evidence(group)
        outcome = replay(evidence, recording.profile)
        assert outcome.violations == ()
        assert sorted(c.request for c in outcome.checked if c.explained) == sorted(
            seen.id for seen in evidence.requests
        )
        if group in REBALANCES:
            assert [row.reason for row in outcome.rows] == REBALANCES[group]


def test_the_recording_holds_every_refusal_of_the_wire_scripts(recording: Recording) -> None:
    observed = [seen_of(line.row) for line in recording.lines if line.request is not None]
    answers = {(seen.api, seen.response.get("errorCode", 0)) for seen in observed}
    refusals = {
        "JOIN_GROUP": {16, 25, 79, 81, 82},
        "SYNC_GROUP": {16, 22, 25, 27, 82},
        "HEARTBEAT": {16, 22, 25, 27, 82},
    }
    assert {(api, code) for api, codes in refusals.items() for code in codes} <= answers


@pytest.mark.parametrize("rule", DIFFERENCES)
def test_the_other_coordinator_s_rule_does_not_explain_it(rule: str, recording: Recording) -> None:
    other = PROFILES["3.9-java" if recording.profile.name == "3.9-scala" else "3.9-scala"]
    evidence = recording.evidence(DIFFERENCES[rule])
    right = replay(evidence, recording.profile)
    wrong = replay(evidence, replace(recording.profile, **{rule: getattr(other, rule)}))
    lines = Counter((line.line, line.subject) for line in right.expected_lines)
    assert wrong.violations or Counter((s.line, s.subject) for s in wrong.expected_lines) != lines


@pytest.mark.parametrize("group", ["static", "dynamic", "failover"])
def test_any_one_altered_error_is_the_one_violation(group: str, recording: Recording) -> None:
    """A lie about a heartbeat or a sync leads nowhere else.

    Where too many members come at once to try all orders, what follows stays open too.
    """
    evidence = recording.evidence(group)
    apis = ("HEARTBEAT", "SYNC_GROUP")
    places = [i for i, seen in enumerate(evidence.requests) if seen.api in apis]
    alone = 0
    for place in places[::7]:
        seen = evidence.requests[place]
        wrong_answer = replace(
            seen, response={**seen.response, "errorCode": Error.COORDINATOR_NOT_AVAILABLE}
        )
        altered = (*evidence.requests[:place], wrong_answer, *evidence.requests[place + 1 :])
        outcome = replay(replace(evidence, requests=altered), recording.profile)
        assert len(outcome.violations) == 1
        alone += wrong(outcome) == unexplained(outcome) == [seen.id]
    assert alone >= 0.9 * len(places[::7])


@pytest.mark.parametrize("group", ["dynamic", "static"])
def test_the_recorded_evidence_is_explained_without_hints(group: str, recording: Recording) -> None:
    evidence = replace(recording.evidence(group), hints=())
    assert replay(evidence, recording.profile).violations == ()
