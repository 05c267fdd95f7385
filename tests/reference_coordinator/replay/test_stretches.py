"""Evidence in the likely order, cut wherever no window reaches across."""

from reference_coordinator.replay import EpochEvent, Tolerance
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.stretches import Stretches
from tests.reference_coordinator.replay.conftest import START, Scenario

TOLERANCE = Tolerance()


def heartbeats(*times: float) -> Scenario:
    scenario = Scenario()
    for at in times:
        scenario.heartbeat("a", at)
    return scenario


def times(parts: Stretches) -> list[list[float]]:
    return [[candidate.at_ms - START for candidate in part] for part in parts]


def test_stretches_end_where_no_window_reaches_across() -> None:
    parts = Stretches.of(heartbeats(0, 3, 20, 24, 40).requests, (), TOLERANCE)
    assert times(parts) == [[0, 3], [20, 24], [40]]
    assert parts.begins_ms == [START - 5, START + 15, START + 35]


def test_a_window_that_reaches_across_many_requests_keeps_them_together() -> None:
    scenario = heartbeats(0)
    scenario.alter_last(latest_ms=START + 50)
    scenario.requests += heartbeats(20, 40, 60).requests
    assert times(Stretches.of(scenario.requests, (), TOLERANCE)) == [[0, 20, 40], [60]]
    scenario.alter_last(earliest_ms=START + 50)
    assert times(Stretches.of(scenario.requests, (), TOLERANCE)) == [[0, 20, 40, 60]]


def test_epoch_events_stand_among_requests_and_the_end_comes_last() -> None:
    loads = EpochEvent(START + 30, "1", "loading"), EpochEvent(START + 40, "1", "loaded")
    end = Candidate(START + 200, START + 200, START + 200, None)
    parts = Stretches.of(heartbeats(0, 40, 60).requests, loads, TOLERANCE, end=end)
    assert times(parts) == [[0], [30, 40, 40, 60], [200]]
    loading, request, loaded, _ = parts[1]
    assert (loading.earliest_ms, loading.latest_ms) == (START + 20, START + 50)
    assert (loaded.earliest_ms, loaded.latest_ms) == (START + 20, START + 140)
    assert (loading.cause, loaded.cause) == loads
    assert request.cause == heartbeats(40).requests[0]


def test_a_request_without_response_likely_acted_when_it_was_sent() -> None:
    scenario = heartbeats(0)
    scenario.alter_last(response=None, latest_ms=START + 5_000)
    ((candidate,),) = Stretches.of(scenario.requests, (), TOLERANCE)
    assert candidate.latest_ms == START + TOLERANCE.early


def test_the_next_stretch_begins_with_its_earliest_candidate() -> None:
    scenario = heartbeats(0, 40, 42)
    scenario.alter_last(earliest_ms=START + 30)
    parts = Stretches.of(scenario.requests, (), TOLERANCE)
    assert parts.next_ms(0) == parts.next_if_any_ms(0) == START + 30
    assert parts.next_if_any_ms(1) is None
    assert [parts.followed_before(START + limit) for limit in (30, 31)] == [0, 1]


def test_what_is_skipped_is_taken_out_and_the_rest_cut_again() -> None:
    scenario = heartbeats(0, 20, 40)
    scenario.alter_last(latest_ms=START + 70)
    scenario.requests += heartbeats(60, 80).requests
    parts = Stretches.of(scenario.requests, (), TOLERANCE)
    assert times(parts) == [[0], [20], [40, 60], [80]]
    assert [at_ms - START for at_ms, _ in parts.causes_from(2)] == [40, 60, 80]
    parts.skip(1, START + 60)
    assert times(parts) == [[0], [60], [80]]
    assert parts.begins_ms == [START - 5, START + 55, START + 75]
    parts.skip(3, START + 99)
    assert times(parts) == [[0], [60], [80]]
