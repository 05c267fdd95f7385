"""Errors that are not the group's are a class of their own, no wrong answers."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import BrokerError, Error
from reference_coordinator.replay import ObservedRequest, Replay, replay
from tests.recorded.logs import RECORDINGS

NAMES = ("kafka-3.9.1-java", "kafka-3.9.1-scala", "kafka-4.3.0")
pytestmark = pytest.mark.parametrize("name", NAMES)
MOST = 4_096
FACE = "\U0001f600"
"""Two characters in Java, a pair of surrogates."""
UNKNOWN_TOPIC = BrokerError.UNKNOWN_TOPIC_OR_PARTITION
REFUSED = {"errorCode": BrokerError.GROUP_AUTHORIZATION_FAILED}


def answered(name: str, api: str) -> ObservedRequest:
    """Return one of many fine requests of a static member."""
    requests = RECORDINGS[name].evidence("static").requests
    return [s for s in requests if s.api == api and s.response][3]


def judged(name: str, *altered: ObservedRequest) -> Replay:
    evidence, lies = RECORDINGS[name].evidence("static"), {seen.id: seen for seen in altered}
    requests = tuple(lies.get(seen.id, seen) for seen in evidence.requests)
    return replay(replace(evidence, requests=requests), RECORDINGS[name].profile)


def commit(name: str, *errors: int, metadata: str = "") -> ObservedRequest:
    """Let a commit be of as many partitions as there are errors."""
    seen = answered(name, "OFFSET_COMMIT")
    asked = [{"partitionIndex": i, "committedMetadata": metadata} for i in range(len(errors))]
    given = [{"partitionIndex": i, "errorCode": error} for i, error in enumerate(errors)]
    of = lambda partitions: {"topics": [{"name": "orders", "partitions": partitions}]}
    return replace(seen, request={**seen.request, **of(asked)}, response=of(given))


def heartbeat(name: str, error: int) -> ObservedRequest:
    return replace(answered(name, "HEARTBEAT"), response={"errorCode": error})


@pytest.mark.parametrize(
    ("error", "of_commits", "of_others"),
    [
        (UNKNOWN_TOPIC, True, False),
        (BrokerError.TOPIC_AUTHORIZATION_FAILED, True, False),
        (BrokerError.UNKNOWN_TOPIC_ID, True, False),
        (BrokerError.GROUP_AUTHORIZATION_FAILED, True, True),
        (BrokerError.THROTTLING_QUOTA_EXCEEDED, True, True),
        # NOT_LEADER_OR_FOLLOWER, CORRUPT_MESSAGE, CLUSTER_AUTHORIZATION_FAILED, POLICY_VIOLATION
        *((error, False, False) for error in (6, 2, 31, 44)),
    ],
)
def test_a_broker_answers_without_its_coordinator(
    name: str, error: int, of_commits: bool, of_others: bool
) -> None:
    """Only a commit names topics."""
    lies = ((of_commits, commit(name, error, error)), (of_others, heartbeat(name, error)))
    for fine, lie in lies:
        outcome = judged(name, lie)
        bound = outcome.bound
        assert bound.get("broker_error", 0) + bound.get("not_authorized", 0) == fine
        assert bool(bound.get("not_authorized")) == (fine and error in (29, 30))
        assert [wrong.request for wrong in outcome.violations] == [lie.id] * (not fine)


def test_the_other_partitions_of_a_commit_are_compared(name: str) -> None:
    outcome = judged(name, commit(name, UNKNOWN_TOPIC, Error.NONE))
    assert (outcome.violations, outcome.bound.get("partition_error")) == ((), 1)
    assert outcome.bound["broker_error"] == 1  # a doubt
    for errors in (
        (UNKNOWN_TOPIC, Error.ILLEGAL_GENERATION),
        (UNKNOWN_TOPIC, Error.NONE, Error.FENCED_INSTANCE_ID),
        (Error.ILLEGAL_GENERATION,),
        (41,),
    ):
        lie = commit(name, *errors)
        assert [wrong.request for wrong in judged(name, lie).violations] == [lie.id]


@pytest.mark.parametrize(
    ("metadata", "fine"),
    [
        ("", False),
        ("x" * MOST, False),
        ("x" * (MOST + 1), True),
        (FACE * (MOST // 2), False),
        (FACE * (MOST // 2) + "x", True),
    ],
    ids=["none", "most", "more", "most pairs", "more pairs"],
)
def test_metadata_are_too_large_if_they_are(name: str, metadata: str, fine: bool) -> None:
    large = BrokerError.OFFSET_METADATA_TOO_LARGE
    for errors in ((large,), (large, large)):
        outcome = judged(name, commit(name, *errors, metadata=metadata))
        assert (outcome.violations == ()) == fine
        assert outcome.bound.get("partition_error", 0) == fine
        assert not outcome.bound.get("broker_error")
    assert fine or judged(name, heartbeat(name, large)).violations


def test_a_request_that_never_came_keeps_no_session_alive(name: str) -> None:
    """All heartbeats of a member are refused, and nobody commits: its session ends, none ended."""
    evidence = RECORDINGS[name].evidence("static")
    requests = tuple(
        replace(seen, response=REFUSED)
        if seen.api == "HEARTBEAT" and seen.request["groupInstanceId"] == "static-1"
        else seen
        for seen in evidence.requests
        if seen.api != "OFFSET_COMMIT"
    )
    assert replay(replace(evidence, requests=requests), RECORDINGS[name].profile).violations
