"""What brokers logged of a group, as an event file holds it."""

import json
from dataclasses import replace

import pytest

from reference_coordinator.classic.profiles import Settings
from reference_coordinator.event_files.broker_evidence import (
    LAST_MS,
    NOTHING,
    as_logged,
    logged_of,
    logged_of_request,
    read_logged,
)
from reference_coordinator.event_files.reading import EventSequence
from reference_coordinator.replay import EpochEvent, Evidence, Hint, HintKind, Parting, Stall
from tests.reference_coordinator.replay.conftest import START, Scenario

EVIDENCE = Evidence(
    "g",
    (),
    (Hint(1.0, HintKind.JOINED, "a", 2, "1"),),
    (EpochEvent(2.0, "1", "loaded"),),
    (Stall("1", 3.0, float("inf")),),
    loading=(Stall("1", 4.0, 5.0, proven=False),),
    reconnects_ms=6.0,
    partings=(Parting("1", 7.0, float("inf"), 8.0, 9.0),),
)


BARE = EventSequence(1, 1, "4.3.0", "java", "g", Settings())


def test_written_evidence_is_read_back() -> None:
    read = read_logged(json.loads(json.dumps(logged_of(EVIDENCE))))
    for name in ("hints", "epoch_events", "stalls", "loading", "reconnects_ms", "partings"):
        assert getattr(read, name) == getattr(EVIDENCE, name)
        assert getattr(replace(BARE, logged=read).evidence, name) == getattr(EVIDENCE, name)
    assert read_logged({}) == NOTHING


def test_an_infinite_time_is_written_as_a_large_number() -> None:
    (stall,) = logged_of(EVIDENCE)["stalls"]
    assert stall["until_ms"] == LAST_MS


def test_a_request_keeps_its_window_broker_and_place() -> None:
    scenario = Scenario()
    scenario.heartbeat("a", 10)
    seen = replace(scenario.requests[0], serial=7)
    bare = replace(seen, broker="", earliest_ms=seen.at_ms, latest_ms=seen.at_ms, serial=0)
    assert as_logged(bare, logged_of_request(seen)) == seen
    with pytest.raises(ValueError, match="at_ms is not from"):
        as_logged(replace(bare, at_ms=START + 900), logged_of_request(seen))


def test_a_request_whose_line_was_written_late_keeps_its_own_time() -> None:
    scenario = Scenario()
    scenario.heartbeat("a", 10)
    (seen,) = scenario.requests
    assert "taken_ms" not in logged_of_request(seen)
    moved = replace(seen, earliest_ms=seen.earliest_ms - 6_000, taken_ms=seen.earliest_ms)
    assert as_logged(seen, logged_of_request(moved)) == moved


@pytest.mark.parametrize(
    ("logged", "problem"),
    [
        ([], "logged is not an object"),
        ({"hints": {}}, "logged.hints is not a list"),
        ({"stalls": [1]}, r"logged.stalls\[0\] is not an object"),
        ({"servings": [{"at_ms": -1, "broker": "1", "kind": "loaded"}]}, "at_ms is not a time"),
    ],
)
def test_malformed_evidence_is_refused_with_a_message(logged: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_logged(logged)
