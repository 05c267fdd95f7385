"""Lines of a group and what excuses them: ids that no response names, stalls, and time-outs."""

from typing import Any

import pytest

from kafka_protocol.coordinator_lines import JAVA, SCALA
from reference_coordinator.replay import ExpectedLine, Outage, Stall
from reference_coordinator.replay.failed_writes import TIMED_OUT
from reports.judgement.coordinators.coordinator_epochs import Unsure
from reports.judgement.timelines import member_lines

KIND = "dynamic_given_id"
JOIN_TIMER_MS = 60_000.0
AT_MS = 3_600_000.0
FAILED = "Failed to persist metadata for group g: The request timed out."


def outcomes(*args: Any) -> list[str]:
    return [row["outcome"] for row in member_lines.compare(*args)]


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
def test_a_member_id_that_no_response_had(observed, expected, found):
    assert compared(observed, expected) == found


def line(template: str, message: str = "") -> dict[str, Any]:
    known = {"template": template, "message": message, "at_ms": AT_MS, "broker": "1", "line": 7}
    return {"member": None, "instance": None, "generation": 1, **known}


@pytest.mark.parametrize(
    ("stall", "excused"),
    [
        (Stall("1", 0.0, AT_MS - JOIN_TIMER_MS - 501), False),
        (Stall("1", 0.0, AT_MS - JOIN_TIMER_MS - 499), True),
        (Stall("1", AT_MS - 1, AT_MS + 1), True),
        (Stall("2", AT_MS - 1, AT_MS + 1), False),
        (Stall("1", AT_MS + 1, AT_MS + 2), False),
    ],
)
def test_a_join_timer_may_be_late_while_it_runs(stall, excused):
    assert outcomes([line("nobody_rejoined")], [], SCALA, (), [stall], JOIN_TIMER_MS) == (
        [] if excused else ["unexpected_line"]
    )


@pytest.mark.parametrize(
    ("answered_ms", "broker", "message", "excused"),
    [
        (AT_MS, "1", FAILED, True),
        (AT_MS + 1_000, "1", FAILED, True),
        (AT_MS - 9, "1", FAILED, True),
        (AT_MS - 11, "1", FAILED, False),
        (AT_MS + 5_011, "1", FAILED, False),
        (AT_MS - 3_500_000, "1", FAILED, False),
        (AT_MS, "2", FAILED, False),
        (AT_MS, "1", FAILED.replace("request timed out", "not the current leader"), False),
    ],
)
def test_an_answer_shows_that_a_write_timed_out_then(answered_ms, broker, message, excused):
    """Writes time out within 5 s before the answer here, by its broker and no other."""
    said = (("broker", broker),)
    shown = ExpectedLine(TIMED_OUT, "", answered_ms, answered_ms - 5_000, answered_ms, said)
    assert outcomes([line("persist_failed", message)], [shown], SCALA) == (
        [] if excused else ["doubtful_line"]
    )


@pytest.mark.parametrize(
    ("lasts_ms", "before_ms", "excused"),
    [(2_999, 0, False), (3_000, 0, True), (3_000, 9_999, True), (3_000, 10_001, False)],
)
def test_a_standstill_of_another_broker_makes_writes_fail_if_it_is_long(
    lasts_ms, before_ms, excused
):
    until_ms = AT_MS - before_ms
    stall = Stall("2", until_ms - lasts_ms, until_ms)
    assert outcomes([line("persist_failed", FAILED)], [], SCALA, (), [stall]) == (
        [] if excused else ["doubtful_line"]
    )
    outage = Outage(AT_MS - 1, AT_MS + 1)
    assert not member_lines.compare([line("persist_failed", FAILED)], [], SCALA, [outage])


@pytest.mark.parametrize(
    ("at_ms", "found"),
    [(89, ["early_line"]), (91, []), (100, []), (209, []), (211, ["late_line"])],
)
def test_a_line_is_ten_ms_at_most_beside_the_window_in_which_it_is_due(at_ms, found):
    due = ExpectedLine(KIND, "c-1", 150.0, 100.0, 200.0)
    seen = line(KIND) | {"member": "c-1", "at_ms": at_ms}
    assert outcomes([seen], [due], JAVA) == found


@pytest.mark.parametrize(("until_ms", "found"), [(99, ["missing_line"]), (100, [])])
def test_a_load_in_a_short_epoch_may_find_nothing(until_ms, found):
    due = ExpectedLine("group_loaded", "", 100.0, 100.0, 100.0)
    unsure = Unsure((), [Outage(50.0, until_ms)]).may_be_missing
    assert outcomes([], [due], SCALA, (), (), JOIN_TIMER_MS, unsure) == found
