"""An instance returns twice while the write of its first return is under way, on 3.9.1 Scala.

The write answers the second JoinGroup with the first one's member id
(`Profile.store_answers_latest_return`), so no response gives the second's own id. Only the leader's
field, or a description, shows it; it is one that no JoinGroup was given.
"""

import json
from dataclasses import replace
from uuid import UUID

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest, Replay, replay
from tests.reference_coordinator.replay.conftest import renamed
from tests.reference_coordinator.replay.test_sequences import recorded

LEADER, FOLLOWER = (
    f"3.9.1-scala-a-{who}-returns-twice-while-a-write-is-under-way"
    for who in ("leader", "follower")
)
FRESH = str(UUID(int=7))


def requests_of(name: str) -> list[ObservedRequest]:
    sequence, _ = recorded(name)
    return list(sequence.evidence.requests)


def judged(name: str, requests: list[ObservedRequest]) -> Replay:
    sequence, profile = recorded(name)
    return replay(replace(sequence.evidence, requests=tuple(requests)), profile)


def returns(requests: list[ObservedRequest]) -> tuple[ObservedRequest, ObservedRequest]:
    """Return the first and the second return of the instance: the first is fenced."""
    fenced = Error.FENCED_INSTANCE_ID
    joins = (s for s in requests if s.api == "JOIN_GROUP")
    first = next(s for s in joins if s.response_fields["errorCode"] == fenced)
    return first, requests[requests.index(first) + 1]


def ids_of(name: str) -> dict[str, str]:
    """Return the ids that play a part: of the instance before, of its two returns, of the other."""
    requests = requests_of(name)
    first, _ = returns(requests)
    instance = first.request["groupInstanceId"]
    joins = {seen.request["groupInstanceId"]: seen for seen in requests[:2]}
    described = json.dumps(requests[-1].response)
    (other,) = (seen for key, seen in joins.items() if key != instance)
    return {
        "former": joins[instance].response_fields["memberId"],
        "first": first.response_fields["memberId"],
        "second": described[described.index(f"{instance}-") :][: len(instance) + 37],
        "other": other.response_fields["memberId"],
        "fresh": f"{instance}-{FRESH}",
        "fresh of the other": f"{other.request['groupInstanceId']}-{FRESH}",
        "of no form": FRESH,
    }


@pytest.mark.parametrize("name", [LEADER, FOLLOWER])
def test_the_second_return_is_told_the_id_of_the_first(name: str) -> None:
    requests = requests_of(name)
    first, second = returns(requests)
    assert first.response_fields["memberId"] == second.response_fields["memberId"]
    assert judged(name, requests).violations == ()


def test_the_leaders_field_alone_gives_the_second_id() -> None:
    requests = [seen for seen in requests_of(LEADER) if seen.api != "DESCRIBE_GROUPS"]
    _, second = returns(requests)
    assert second.response_fields["leader"] == ids_of(LEADER)["second"]
    assert judged(LEADER, requests).violations == ()


@pytest.mark.parametrize(
    ("name", "field", "lies", "later"),
    [
        (LEADER, "leader", ("former", "first", "other", "fresh of the other", "of no form"), ""),
        (LEADER, "leader", ("fresh",), "DESCRIBE_GROUPS"),  # an id that only the lie has
        (LEADER, "memberId", ("former", "other", "fresh", "of no form"), ""),
        (FOLLOWER, "memberId", ("former", "other", "of no form"), ""),
        (FOLLOWER, "memberId", ("fresh",), "DESCRIBE_GROUPS"),
    ],
)
def test_the_response_to_the_second_return_gives_no_other_id(
    name: str, field: str, lies: tuple[str, ...], later: str
) -> None:
    """A fresh one is found where the group is described.

    The second return may get its own id: the threads that end the two writes may swap them.
    """
    for lie in lies:
        requests = requests_of(name)
        _, second = returns(requests)
        place = requests.index(second)
        response = second.response_fields | {field: ids_of(name)[lie]}
        requests[place] = replace(second, response=response)
        (violation, *_) = judged(name, requests).violations
        (found,) = (seen for seen in requests if seen.id == violation.request)
        assert violation.searched
        assert found.api == later or (not later and found.id == second.id), lie


@pytest.mark.parametrize("name", [LEADER, FOLLOWER])
@pytest.mark.parametrize("described", ["former", "first", "other"])
def test_a_description_names_an_id_that_nobody_else_was_given(name: str, described: str) -> None:
    ids = ids_of(name)
    lie = [
        renamed(seen, ids["second"], ids[described]) if seen.api == "DESCRIBE_GROUPS" else seen
        for seen in requests_of(name)
    ]
    assert judged(name, lie).violations


def test_an_id_that_was_told_before_is_not_told_again() -> None:
    """The same responses, but the first return was answered NONE before the second came."""
    requests = requests_of(FOLLOWER)
    first, second = returns(requests)
    at_ms = first.at_ms + 20
    before = replace(first, response=second.response, answered_ms=at_ms, latest_ms=at_ms)
    outcome = judged(FOLLOWER, [before if seen is first else seen for seen in requests])
    assert outcome.violations[0].searched
    assert outcome.violations[0].request == second.id
