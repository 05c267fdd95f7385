"""Lies about record writes that fail: what bears a failure out, and what does not."""

from dataclasses import replace

import pytest

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error
from reference_coordinator.replay import EpochEvent, Evidence, ObservedRequest, Outage, replay
from tests.recorded.logs import RECORDINGS
from tests.reference_coordinator.replay.conftest import LOADS, START, Scenario, wrong
from tests.reference_coordinator.replay.test_outages import commit, refused, unstored

NAMES = ("kafka-3.9.1-java", "kafka-3.9.1-scala", "kafka-4.3.0")
ALWAYS = (Outage(0.0, 1e15),)
"""A broker is down all the time: so an outage alone bears nothing out."""


def recorded(name: str) -> Evidence:
    return replace(RECORDINGS[name].evidence("static"), outages=ALWAYS)


def fourth_commit(evidence: Evidence) -> ObservedRequest:
    """Return one of many commits; all were answered without an error."""
    return [s for s in evidence.requests if s.api == "OFFSET_COMMIT" and s.response][3]


def refused_as(evidence: Evidence, error: int, *which: ObservedRequest) -> Evidence:
    """Let heartbeats or commits be answered with an error."""

    def lie(seen: ObservedRequest) -> ObservedRequest:
        if seen not in which:
            return seen
        body = dict(seen.response_fields)
        if seen.api == "HEARTBEAT":
            body["errorCode"] = error
        for topic in body.get("topics", ()):
            refused = [part | {"errorCode": error} for part in topic["partitions"]]
            body["topics"] = [topic | {"partitions": refused}]
        return replace(seen, response=body)

    return replace(evidence, requests=tuple(map(lie, evidence.requests)))


def judged(name: str, evidence: Evidence, *lines: EpochEvent) -> list[str]:
    events = (*evidence.epoch_events, *lines)
    return wrong(replay(replace(evidence, epoch_events=events), RECORDINGS[name].profile))


@pytest.mark.parametrize("name", NAMES)
def test_heartbeats_are_not_refused_because_a_broker_is_down(name: str) -> None:
    evidence = recorded(name)
    beats = [s for s in evidence.requests if s.api == "HEARTBEAT" and s.response][:-4:5]
    fine = [seen for seen in beats if not seen.response_fields["errorCode"]]
    for error in (15, 16, -1, 28):
        assert {seen.id for seen in fine} & {*judged(name, refused_as(evidence, error, *fine))}


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
    seen = fourth_commit(evidence)
    lie = refused_as(evidence, too_large(name) if error is None else error, seen)

    def passes(at_ms: float, broker: str = seen.broker, what: AppendError = kind) -> bool:
        return judged(name, lie, EpochEvent(at_ms, broker, what)) == []

    assert judged(name, lie) == [seen.id]
    assert passes(seen.started_ms - 9)
    assert passes(seen.answered_ms + 9)
    assert not passes(seen.started_ms - 11)
    assert not passes(seen.answered_ms + 11)
    assert not passes(seen.answered_ms, broker="9")
    leads = kind is AppendError.NOT_LEADER
    other = AppendError.NOT_REPLICATED if leads else AppendError.NOT_LEADER
    assert not passes(seen.answered_ms, what=other)


@pytest.mark.parametrize("name", NAMES)
def test_without_an_outage_only_what_is_too_large_fails(name: str) -> None:
    evidence = replace(recorded(name), outages=())
    seen = fourth_commit(evidence)
    for error, kind, found in (
        (too_large(name), AppendError.TOO_LARGE, []),
        (16, AppendError.NOT_LEADER, [seen.id]),
    ):
        line = EpochEvent(seen.answered_ms, seen.broker, kind)
        assert judged(name, refused_as(evidence, error, seen), line) == found


@pytest.mark.parametrize("name", NAMES)
def test_an_outage_bears_out_what_was_under_way_in_it(name: str) -> None:
    """Up to the answer it begins, or it ends no sooner than the request came; or it is off."""
    evidence = recorded(name)
    seen = fourth_commit(evidence)
    lie = refused_as(evidence, 16, seen)
    line = EpochEvent(seen.answered_ms, seen.broker, AppendError.NOT_LEADER)
    for outage, found in (
        (Outage(0.0, seen.earliest_ms), []),
        (Outage(0.0, seen.earliest_ms - 1), [seen.id]),
        (Outage(seen.answered_ms, 1e15), []),
        (Outage(seen.answered_ms + 1, 1e15), [seen.id]),
    ):
        assert judged(name, replace(lie, outages=(outage,)), line) == found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["loading", "loaded", "unloaded"])
def test_who_is_not_the_coordinator_gave_the_partition_up(name: str, kind: str) -> None:
    """It unloaded it while the request was under way, or another broker had it by the answer.

    A Scala broker that unloads it may refuse the request as that of a Dead group, too. Without an
    outage no other broker takes it over.
    """
    evidence = recorded(name)
    seen = fourth_commit(evidence)
    unloads = kind == "unloaded"
    for off_ms in (-9, 11, 2_000):
        line = EpochEvent(seen.answered_ms + off_ms, seen.broker if unloads else "9", kind)
        for error, named in ((16, True), (15, unloads and "scala" in name)):
            lie = refused_as(evidence, error, seen)
            assert (seen.id not in judged(name, lie, line)) == (off_ms < 0 and named)
            assert unloads or seen.id in judged(name, replace(lie, outages=()), line)


@pytest.mark.parametrize("name", NAMES)
def test_what_no_failed_write_is_answered_with(name: str) -> None:
    evidence = recorded(name)
    seen = fourth_commit(evidence)
    lines = [EpochEvent(seen.answered_ms, seen.broker, kind) for kind in AppendError]
    for error in (27, 28, -1):
        if error != too_large(name):
            assert judged(name, refused_as(evidence, error, seen), *lines) == [seen.id]


def logged(scenario: Scenario, release: str, *lines: EpochEvent) -> list[str]:
    """Judge what has coordinator lines, while a broker is down."""
    scenario.epoch_events, scenario.outages = [*LOADS, *lines], [*ALWAYS]
    return wrong(scenario.replay(rules=release))


def not_replicated(at: float) -> EpochEvent:
    return EpochEvent(START + at, "1", AppendError.NOT_REPLICATED)


@pytest.mark.parametrize(
    ("at", "borne_out"), [(1_984, False), (1_986, True), (2_609, True), (2_611, False)]
)
def test_a_heartbeat_fails_with_the_write_that_it_waits_for(at: float, borne_out: bool) -> None:
    assert logged(refused(), "4.3") == ["HEARTBEAT:b:2000"]
    assert (logged(refused(), "4.3", not_replicated(at)) == []) == borne_out


def test_a_refusal_waits_for_no_write() -> None:
    """A member that is unknown gets its answer at once, whatever is being written."""
    scenario = refused()
    (seen,) = (seen for seen in scenario.requests if seen.id == "HEARTBEAT:b:2000")
    scenario.alter(seen.id, request={**seen.request, "memberId": "x-0000", "groupInstanceId": None})
    assert logged(scenario, "4.3", not_replicated(2_300)) == ["HEARTBEAT:b:2000"]


@pytest.mark.parametrize(("answered", "shows"), [(2_200, True), (2_295, False)])
def test_a_later_commit_shows_that_the_write_was_confirmed(answered: float, shows: bool) -> None:
    scenario = refused()
    scenario.commit("a", 2_110, answered=answered, connection="commits")
    assert (logged(scenario, "4.3", not_replicated(2_300)) != []) == shows


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
    scenario.commit("a", 2_510, before=10, answered=answered, latest=answered, connection="others")
    found = wrong(scenario.replay(rules=release))
    assert ("OFFSET_COMMIT:b:2000" in found) == shows


@pytest.mark.parametrize(
    ("kind", "at", "borne_out"),
    [("loaded", 2_590, True), ("loaded", 2_650, False), ("loading", 2_100, True)],
)
def test_a_broker_whose_partition_another_has_is_not_its_coordinator(
    kind: str, at: float, borne_out: bool
) -> None:
    scenario = refused("OFFSET_COMMIT", error=Error.NOT_COORDINATOR)
    assert logged(scenario, "4.3") == ["OFFSET_COMMIT:b:2000"]
    taken = EpochEvent(START + at, "2", kind)
    assert ("OFFSET_COMMIT:b:2000" not in logged(scenario, "4.3", taken)) == borne_out


@pytest.mark.parametrize(
    ("kind", "error"),
    [(AppendError.NOT_REPLICATED, Error.UNKNOWN_MEMBER_ID), (AppendError.APPENDED, 0)],
)
def test_what_too_few_replicas_have_is_loaded_all_the_same(kind: AppendError, error: int) -> None:
    """The assignment is the group's only record; then broker 2 takes the partition over."""
    scenario = unstored(Error.COORDINATOR_NOT_AVAILABLE, 1_600)
    scenario.heartbeat("a", 3_500, error, broker="2")
    taken = [EpochEvent(START + at, "2", k) for at, k in ((3_000, "loading"), (3_010, "loaded"))]
    for shown in (AppendError.NOT_REPLICATED, AppendError.APPENDED):
        found = logged(scenario, "3.9-scala", EpochEvent(START + 1_599, "1", shown), *taken)
        assert found == ([] if shown is kind else ["HEARTBEAT:a:3500"])


def test_why_a_failure_was_allowed_is_counted() -> None:
    scenario = refused()
    scenario.epoch_events, scenario.outages = [*LOADS, not_replicated(2_300)], [*ALWAYS]
    bound = scenario.replay().bound
    assert (bound["failed_write"], bound["failed_write_logged"]) == (1, 1)
