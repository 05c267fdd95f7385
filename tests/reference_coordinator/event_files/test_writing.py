"""What is written: evidence as an event file holds it, and requests for people, one line each."""

from dataclasses import replace

from reference_coordinator.event_files.request_table import short, table
from reference_coordinator.event_files.writing import event_lines
from reference_coordinator.replay import EpochEvent, Evidence, Hint, HintKind, Parting, Stall
from tests.reference_coordinator.event_files.event_lines import one
from tests.reference_coordinator.replay.conftest import IDS, START, Scenario, stable

NEVER = float("inf")
HEADER = {"kafka": "4.3.0", "coordinator": "java", "config": {}}
EVIDENCE = Evidence(
    "g",
    (),
    (Hint(1.0, HintKind.JOINED, "a", 2, "1"),),
    (EpochEvent(2.0, "1", "loaded"), EpochEvent(2.5, "1", "unloaded", 3, 2.2, 2.7)),
    (Stall("1", 3.0, NEVER),),
    loading=(Stall("1", 4.0, 5.0, proven=False),),
    reconnects_ms=6.0,
    partings=(Parting("1", 7.0, NEVER, 8.0, 9.0),),
)


def read_back(evidence: Evidence) -> Evidence:
    return one(event_lines(HEADER, evidence)).evidence


def test_written_evidence_is_read_back() -> None:
    assert read_back(EVIDENCE) == EVIDENCE
    assert read_back(replace(EVIDENCE, reconnects_ms=NEVER)).reconnects_ms == NEVER
    assert '"until_ms":1000000000000000.0' in next(event_lines(HEADER, EVIDENCE))


def test_a_request_keeps_its_window_broker_and_place() -> None:
    """One whose line was written late keeps its own time; one without an answer has no end."""
    scenario = Scenario()
    scenario.heartbeat("a", 10)
    seen = replace(scenario.requests[0], serial=7)
    late = replace(seen, earliest_ms=seen.earliest_ms - 6_000, taken_ms=seen.earliest_ms)
    lost = replace(seen, response=None, answered_ms=NEVER, latest_ms=NEVER)
    for one_of in (seen, late, lost):
        written = replace(EVIDENCE, requests=(one_of,))
        assert read_back(written) == written
        assert ("taken_ms" in list(event_lines(HEADER, written))[1]) == (one_of is late)


def lines(scenario: Scenario, wrong: str = "") -> list[str]:
    return list(table(scenario.requests, wrong, START))


def test_each_request_is_a_line_and_the_wrong_one_is_marked() -> None:
    heading, *rows = lines(stable(), "SYNC_GROUP:a:1015")
    assert heading.split() == ["at", "ms", "answered", "member", "request", "answer"]
    assert [row.startswith(">") for row in rows] == [False, False, False, True]
    assert rows[0].split()[:5] == ["0.0", "1001.0", "a", "JOIN_GROUP", "v5"]
    assert f"leader {IDS['a']}" in rows[0]
    assert "gives 2" in rows[3]


def test_a_request_without_response_has_no_answer() -> None:
    scenario = stable()
    scenario.requests = [replace(scenario.requests[0], response=None)]
    _, row = lines(scenario)
    assert row.endswith("no answer")


def test_leave_shows_each_member_with_its_error() -> None:
    scenario = Scenario()
    scenario.leave("b", 10)
    _, row = lines(scenario)
    assert f"{IDS['b']} of b: NONE" in row


def test_a_uuid_is_cut_to_its_distinguishing_prefix() -> None:
    assert short("client-12345678-1234-1234-1234-123456789abc") == "client-1234"
    assert short(None) == ""
