"""Requests and responses for people, one line each."""

from dataclasses import replace

from reference_coordinator.event_files.request_table import short, table
from tests.reference_coordinator.replay.conftest import IDS, START, Scenario, stable


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
