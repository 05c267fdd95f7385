"""Lies about record writes that fail: what bears a failure out, and what does not."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error
from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.replay import EpochEvent, Evidence, ObservedRequest, Outage, replay
from tests.recorded.logs import RECORDINGS
from tests.reference_coordinator.replay.conftest import PROFILE, START, Scenario, wrong
from tests.reference_coordinator.replay.test_outages import commit, refused, unstored

NAMES = ("kafka-3.9.1-java", "kafka-3.9.1-scala", "kafka-4.3.0")
ALWAYS = (Outage(0.0, 1e15),)
"""A broker is down all the time: so an outage alone bears nothing out."""
LOADS = (EpochEvent(START - 200, "1", "loading"), EpochEvent(START - 100, "1", "loaded"))


def recorded(name: str, group: str = "static") -> Evidence:
    return replace(RECORDINGS[name].evidence(group), outages=ALWAYS)


def refuse(seen: ObservedRequest, error: int) -> ObservedRequest:
    """Let a heartbeat or commit be answered with an error."""
    response: dict[str, Any] = dict(seen.response_fields)
    if seen.api == "HEARTBEAT":
        response["errorCode"] = error
    else:
        response["topics"] = [
            topic | {"partitions": [p | {"errorCode": error} for p in topic["partitions"]]}
            for topic in response["topics"]
        ]
    return replace(seen, response=response)


def altered(evidence: Evidence, by_id: Mapping[str, ObservedRequest]) -> Evidence:
    return replace(evidence, requests=tuple(by_id.get(s.id, s) for s in evidence.requests))


def fine(evidence: Evidence, api: str, but_last: int = 4) -> list[ObservedRequest]:
    """List the requests of an API that were answered without an error, but for the last ones."""
    found = [seen for seen in evidence.requests if seen.api == api and seen.response]
    fine = [s for s in found if '"errorCode": 0' in str(s.response).replace("'", '"')]
    return fine[: len(fine) - but_last]


def judged(name: str, evidence: Evidence, lines: Iterable[EpochEvent] = ()) -> list[str]:
    events = (*evidence.epoch_events, *lines)
    return wrong(replay(replace(evidence, epoch_events=events), RECORDINGS[name].profile))


@pytest.mark.parametrize("name", NAMES)
def test_heartbeats_are_not_refused_because_a_broker_is_down(name: str) -> None:
    evidence = recorded(name)
    for error in (15, 16, -1, 28):
        lies = {seen.id: refuse(seen, error) for seen in fine(evidence, "HEARTBEAT")[::5]}
        assert set(judged(name, altered(evidence, lies))) & lies.keys()


def too_large(name: str) -> int:
    return Error.INVALID_COMMIT_OFFSET_SIZE if "scala" in name else Error.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (AppendError.NOT_LEADER, 16),
        (AppendError.NOT_REPLICATED, 15),
        (AppendError.APPENDED, 15),
        (AppendError.TOO_LARGE, None),
        (AppendError.UNNAMED, 15),
    ],
)
def test_the_line_of_a_failed_write_stands_while_the_request_was_under_way(
    name: str, kind: AppendError, error: int | None
) -> None:
    evidence = recorded(name)
    seen = fine(evidence, "OFFSET_COMMIT")[3]
    lie = altered(evidence, {seen.id: refuse(seen, too_large(name) if error is None else error)})

    def passes(at_ms: float, broker: str = seen.broker, what: AppendError = kind) -> bool:
        return judged(name, lie, [EpochEvent(at_ms, broker, what)]) == []

    assert judged(name, evidence) == []
    assert judged(name, lie) == [seen.id]
    assert passes(seen.started_ms - 9)
    assert passes(seen.answered_ms + 9)
    assert not passes(seen.started_ms - 11)
    assert not passes(seen.answered_ms + 11)
    assert not passes(seen.answered_ms, broker="9")
    other = (
        AppendError.NOT_LEADER if kind is not AppendError.NOT_LEADER else AppendError.NOT_REPLICATED
    )
    assert not passes(seen.answered_ms, what=other)


@pytest.mark.parametrize("name", NAMES)
def test_without_an_outage_only_what_is_too_large_fails(name: str) -> None:
    evidence = replace(recorded(name), outages=())
    seen = fine(evidence, "OFFSET_COMMIT")[3]
    line = lambda kind: [EpochEvent(seen.answered_ms, seen.broker, kind)]
    large = altered(evidence, {seen.id: refuse(seen, too_large(name))})
    elsewhere = altered(evidence, {seen.id: refuse(seen, 16)})
    assert judged(name, large, line(AppendError.TOO_LARGE)) == []
    assert judged(name, elsewhere, line(AppendError.NOT_LEADER)) == [seen.id]


@pytest.mark.parametrize("name", NAMES)
def test_an_outage_bears_out_what_was_under_way_in_it(name: str) -> None:
    """Up to the answer it begins, or it ends no sooner than the request came; or it is off."""
    evidence = recorded(name)
    seen = fine(evidence, "OFFSET_COMMIT")[3]
    lie = altered(evidence, {seen.id: refuse(seen, 16)})
    line = EpochEvent(seen.answered_ms, seen.broker, AppendError.NOT_LEADER)
    for off_ms in (0, 1):
        before = Outage(0.0, seen.earliest_ms - off_ms)
        after = Outage(seen.answered_ms + off_ms, 1e15)
        for outage in (before, after):
            found = judged(name, replace(lie, outages=(outage,)), [line])
            assert found == ([seen.id] if off_ms else [])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["loading", "loaded", "unloaded"])
@pytest.mark.parametrize("off_ms", [-9, 11, 2_000])
def test_who_is_not_the_coordinator_gave_the_partition_up(
    name: str, kind: str, off_ms: int
) -> None:
    """It unloaded it while the request was under way, or another broker had it by the answer.

    A Scala broker that unloads it may refuse the request as that of a Dead group, too.
    """
    evidence = recorded(name)
    seen = fine(evidence, "OFFSET_COMMIT")[3]
    line = EpochEvent(seen.answered_ms + off_ms, seen.broker if kind == "unloaded" else "9", kind)
    for error, named in ((16, True), (15, kind == "unloaded" and "scala" in name)):
        found = judged(name, altered(evidence, {seen.id: refuse(seen, error)}), [line])
        assert (seen.id not in found) == (off_ms < 0 and named)
    if kind != "unloaded":  # without an outage no other broker takes it over
        lie = replace(altered(evidence, {seen.id: refuse(seen, 16)}), outages=())
        assert seen.id in judged(name, lie, [line])


@pytest.mark.parametrize("name", NAMES)
def test_what_no_failed_write_is_answered_with(name: str) -> None:
    evidence = recorded(name)
    seen = fine(evidence, "OFFSET_COMMIT")[3]
    lines = [EpochEvent(seen.answered_ms, seen.broker, kind) for kind in AppendError]
    for error in {27, 28, -1} - {too_large(name)}:
        lie = altered(evidence, {seen.id: refuse(seen, error)})
        assert judged(name, lie, lines) == [seen.id]


def logged(scenario: Scenario, release: str, *lines: EpochEvent) -> list[str]:
    """Judge what has coordinator lines, while a broker is down."""
    requests = tuple(sorted(scenario.requests, key=lambda seen: seen.at_ms))
    evidence = Evidence("g", requests, epoch_events=(*LOADS, *lines), outages=ALWAYS)
    return wrong(replay(evidence, PROFILES[release].with_settings(PROFILE.settings)))


@pytest.mark.parametrize(
    ("at", "borne_out"), [(1_984, False), (1_986, True), (2_609, True), (2_611, False)]
)
def test_a_heartbeat_fails_with_the_write_that_it_waits_for(at: float, borne_out: bool) -> None:
    line = EpochEvent(START + at, "1", AppendError.NOT_REPLICATED)
    assert logged(refused(), "4.3") == ["HEARTBEAT:b:2000"]
    assert (logged(refused(), "4.3", line) == []) == borne_out


def test_a_refusal_waits_for_no_write() -> None:
    """A member that is unknown gets its answer at once, whatever is being written."""
    scenario = refused()
    scenario.alter_last(id="last")
    place = next(i for i, s in enumerate(scenario.requests) if s.id == "HEARTBEAT:b:2000")
    seen = scenario.requests[place]
    unknown = {**seen.request, "memberId": "x-0000", "groupInstanceId": None}
    scenario.requests[place] = replace(seen, request=unknown)
    line = EpochEvent(START + 2_300, "1", AppendError.NOT_REPLICATED)
    assert logged(scenario, "4.3", line) == ["HEARTBEAT:b:2000"]


@pytest.mark.parametrize(("answered", "shows"), [(2_200, True), (2_295, False)])
def test_a_later_commit_shows_that_the_write_was_confirmed(answered: float, shows: bool) -> None:
    scenario = refused()
    body = {"generationIdOrMemberEpoch": 1}
    topics = {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]}
    response = {
        "topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]
    }
    scenario.ask("OFFSET_COMMIT", "a", 2_110, body | topics, response, answered=answered)
    scenario.alter_last(connection="commits")
    line = EpochEvent(START + 2_300, "1", AppendError.NOT_REPLICATED)
    assert (logged(scenario, "4.3", line) != []) == shows


@pytest.mark.parametrize("at", [1_980, 2_009, 6_990, 7_010, 7_030])
def test_scala_prints_that_a_commit_timed_out(at: float) -> None:
    line = EpochEvent(START + at, "1", AppendError.TIMED_OUT)
    borne_out = 1_985 <= at <= 7_013
    assert logged(commit(7_003, 7), "3.9-scala") == ["OFFSET_COMMIT:b:2000"]
    assert (logged(commit(7_003, 7), "3.9-scala", line) == []) == borne_out
    assert logged(commit(7_003, 15), "4.3") == [], "Java prints no line"


@pytest.mark.parametrize(("release", "error"), [("2.8.1", 7), ("3.9-java", 15), ("4.3", 15)])
@pytest.mark.parametrize(("answered", "shows"), [(2_600, True), (6_900, True), (7_001, False)])
def test_what_was_confirmed_does_not_time_out(
    release: str, error: int, answered: float, shows: bool
) -> None:
    scenario = commit(7_003, error)
    seen = next(s for s in scenario.requests if s.api == "OFFSET_COMMIT")
    other = refuse(replace(seen, id="other", connection="others"), 0)
    other = replace(
        other,
        request={**seen.request, "memberId": "a-0000", "groupInstanceId": "a"},
        earliest_ms=START + 2_500,
        at_ms=START + 2_510,
        latest_ms=START + answered,
        answered_ms=START + answered,
    )
    scenario.requests.append(other)
    requests = tuple(sorted(scenario.requests, key=lambda s: s.at_ms))
    outcome = replay(Evidence("g", requests), PROFILES[release].with_settings(PROFILE.settings))
    assert ("OFFSET_COMMIT:b:2000" in wrong(outcome)) == shows


@pytest.mark.parametrize(
    ("kind", "at", "borne_out"),
    [("loaded", 2_590, True), ("loaded", 2_650, False), ("loading", 2_100, True)],
)
def test_a_broker_whose_partition_another_has_is_not_its_coordinator(
    kind: str, at: float, borne_out: bool
) -> None:
    scenario = refused("OFFSET_COMMIT", error=Error.NOT_COORDINATOR)
    taken = EpochEvent(START + at, "2", kind)
    assert logged(scenario, "4.3") == ["OFFSET_COMMIT:b:2000"]
    assert ("OFFSET_COMMIT:b:2000" not in logged(scenario, "4.3", taken)) == borne_out


@pytest.mark.parametrize(
    ("kind", "error"),
    [(AppendError.NOT_REPLICATED, Error.UNKNOWN_MEMBER_ID), (AppendError.APPENDED, 0)],
)
def test_what_too_few_replicas_have_is_loaded_all_the_same(kind: AppendError, error: int) -> None:
    """The assignment is the group's only record; then broker 2 takes the partition over."""
    scenario = Scenario()
    scenario.requests = [*unstored(Error.COORDINATOR_NOT_AVAILABLE, 1_600).requests]
    scenario.heartbeat("a", 3_500, error, broker="2")
    taken = [EpochEvent(START + at, "2", k) for at, k in ((3_000, "loading"), (3_010, "loaded"))]
    for shown in (kind, *{AppendError.NOT_REPLICATED, AppendError.APPENDED} - {kind}):
        line = EpochEvent(START + 1_599, "1", shown)
        found = logged(scenario, "3.9-scala", line, *taken)
        assert found == ([] if shown is kind else ["HEARTBEAT:a:3500"])


def test_why_a_failure_was_allowed_is_counted() -> None:
    line = EpochEvent(START + 2_300, "1", AppendError.NOT_REPLICATED)
    requests = tuple(sorted(refused().requests, key=lambda seen: seen.at_ms))
    evidence = Evidence("g", requests, epoch_events=(*LOADS, line), outages=ALWAYS)
    bound = replay(evidence, PROFILE).bound
    assert (bound["failed_write"], bound["failed_write_logged"]) == (1, 1)
