"""Lines about members whose ids no response names: each excuses one unexpected line."""

import pytest

from kafka_protocol.coordinator_lines import JAVA
from reference_coordinator.replay import ExpectedLine
from reports.judgement import member_lines

KIND = "dynamic_given_id"


def compared(observed: list[str], expected: list[str]) -> set[tuple[str, str]]:
    """Compare lines of one kind, all of the same instant, by the ids that they name."""
    expected_lines = [ExpectedLine(KIND, subject, 5.0, 5.0, 5.0) for subject in expected]
    line = {"template": KIND, "instance": None, "at_ms": 5.0, "broker": "1", "message": ""}
    seen = [line | {"member": member, "line": n} for n, member in enumerate(observed, 1)]
    return {
        (row["outcome"], row["subject"]) for row in member_lines.compare(seen, expected_lines, JAVA)
    }


@pytest.mark.parametrize(
    ("observed", "expected", "found"),
    [
        (["c-1"], ["c-1"], set()),
        (["c-1"], [], {("unexpected_line", "c-1")}),
        (["c-1", "c-2"], ["c-1", "c-?7"], set()),
        # one line is the unnamed one's, and nobody knows which
        (
            ["c-1", "c-2", "c-3"],
            ["c-1", "c-?7"],
            {("unexpected_line", "c-2"), ("unexpected_line", "c-3")},
        ),
        (["c-2"], ["c-1", "c-?7"], {("missing_line", "c-1")}),
    ],
)
def test_a_member_id_that_no_response_had(
    observed: list[str], expected: list[str], found: set[tuple[str, str]]
) -> None:
    assert compared(observed, expected) == found


@pytest.mark.parametrize(
    ("at_ms", "outcomes"),
    [(89, ["early_line"]), (91, []), (100, []), (209, []), (211, ["late_line"])],
)
def test_a_line_is_ten_ms_at_most_beside_the_window_in_which_it_is_due(
    at_ms: float, outcomes: list[str]
) -> None:
    due = ExpectedLine(KIND, "c-1", 150.0, 100.0, 200.0)
    line = {"template": KIND, "member": "c-1", "instance": None, "at_ms": at_ms, "broker": "1",
            "line": 1, "message": ""}  # fmt: skip
    assert [row["outcome"] for row in member_lines.compare([line], [due], JAVA)] == outcomes


@pytest.mark.parametrize("timed_out", [0, 1, 2, 3])
def test_each_write_that_timed_out_may_have_a_line(timed_out: int) -> None:
    lines = [
        {"template": "persist_failed", "member": None, "instance": None, "at_ms": at_ms,
         "broker": "1", "line": at_ms, "message": ""}
        for at_ms in (1, 2)
    ]  # fmt: skip
    found = member_lines.compare(lines, [], JAVA, timed_out=timed_out)
    assert [row["outcome"] for row in found] == ["doubtful_line"] * max(0, 2 - timed_out)
