"""The comparison of two timelines: which rows pair, and what is wrong with a pair."""

from typing import Any

import pytest

from reference_coordinator.replay import Stall
from reports.judgement.timelines.compare import compare, compare_generations
from reports.timing import EARLY_MS, LINE_LATE_MS, PAIR_MS, TIMER_SLACK_MS

Json = dict[str, Any]
ROW: Json = {
    "group": "g", "incarnation": 1, "old_generation": 3, "started_ms": 1_000.0, "reason": "leave",
    "member_id": "", "joined_ms": 1_100.0, "generation": 4, "members": 2, "assigned_members": 2,
    "static_members": 0, "leader": "a", "assigned_ms": 1_200.0, "ended_as": "assigned",
}  # fmt: skip

OLD, NEW = "734961e6-064c-44ce-9cce-5af758da40e4", "c4f41b0d-17ac-4d34-8b87-b949fd04683c"


def observed(**changed: Any) -> Json:
    lines = {"started_line": 5, "joined_line": 6, "assigned_line": 7}
    more = {"assigned_generation": 4, "assignments": 1, "broker": "1"}
    return ROW | lines | more | changed


def expected(**changed: Any) -> Json:
    row = ROW | changed
    return {"earliest_ms": row["started_ms"], "latest_ms": row["started_ms"]} | row


@pytest.mark.parametrize(
    ("changed", "outcome", "line"),
    [
        ({}, "match", 5),
        ({"started_ms": 1_000.0 - EARLY_MS - 1}, "early", 5),
        ({"started_ms": 1_000.0 + EARLY_MS + 1}, "late", 5),
        ({"assigned_ms": 1_200.0 + TIMER_SLACK_MS + 1}, "late", 5),
        ({"reason": "new_member"}, "wrong_reason", 5),
        ({"generation": 5}, "wrong_generation", 6),
        ({"assigned_generation": 5}, "wrong_generation", 7),
        ({"members": 3}, "wrong_members", 6),
        ({"leader": "b"}, "wrong_members", 7),
        ({"leader": None, "members": None}, "match", 5),
        ({"ended_as": "superseded"}, "wrong_members", 7),
        ({"assignments": 2}, "unexpected", 5),
        ({"started_ms": None, "started_line": None}, "missing", 6),
    ],
)
def test_a_difference_has_an_outcome_and_a_line(changed, outcome, line):
    (row,) = compare([observed(**changed)], [expected()])
    assert (row["outcome"], row["broker"], row["line"]) == (outcome, "1", line)


@pytest.mark.parametrize(
    ("due", "seen", "outcome"),
    [
        (f"c-1-{OLD}", f"c-1-{OLD}", "match"),
        (f"c-1-{OLD}", f"c-1-{NEW}", "wrong_reason"),
        ("c-1-?2:598", f"c-1-{NEW}", "match"),
        ("c-1-?2:598", f"c-2-{NEW}", "wrong_reason"),
        ("c-?2:598", f"c-1-{NEW}", "wrong_reason"),
        ("c-1-?2:598", None, "wrong_reason"),
    ],
)
def test_an_id_that_no_response_names_is_any_id_of_its_client(due, seen, outcome):
    """The JoinGroup that created the member was answered with an error."""
    new = {"reason": "new_member"}
    (row,) = compare([observed(member_id=seen, **new)], [expected(member_id=due, **new)])
    assert row["outcome"] == outcome


@pytest.mark.parametrize(
    ("late_ms", "outcome"),
    [(400, "match"), (LINE_LATE_MS + 301, "late"), (-TIMER_SLACK_MS - 1, "late")],
)
@pytest.mark.parametrize("proven", [True, False])
def test_a_standstill_explains_as_much_lateness_of_a_line_as_it_lasts(late_ms, outcome, proven):
    """The last member joins at 1,100; its broker stands still for 300 ms after that."""
    seen = observed(joined_ms=1_100.0 + late_ms, assigned_ms=None)
    still = lambda broker: [Stall(broker, 1_150.0, 1_450.0, proven=proven)]
    judged = lambda *stalls: [row["outcome"] for row in compare([seen], [expected()], *stalls)]
    off = "early" if late_ms < 0 else "late"
    assert judged() == [off]
    assert judged(still("1")) == [off if outcome == "late" else outcome]
    assert judged([Stall("2", 1_150.0, 1_450.0, proven=False)]) == [off]


@pytest.mark.parametrize(("late_ms", "outcome"), [(300, "match"), (350, "late")])
@pytest.mark.parametrize("reason", ["assignment_error", "leave"])
def test_a_standstill_explains_the_line_that_follows_the_answer_of_a_failed_write(
    late_ms, outcome, reason
):
    """The answer shows the failure at 1,000; the thread stands still for 300 ms after that."""
    seen = observed(started_ms=1_000.0 + late_ms, reason=reason, joined_ms=None, assigned_ms=None)
    due = expected(reason=reason)
    (row,) = compare([seen], [due], [Stall("1", 1_005.0, 1_305.0)])
    assert row["outcome"] == (outcome if reason == "assignment_error" else "late")
    (row,) = compare([seen], [due])
    assert row["outcome"] == "late"


def test_a_standstill_explains_requests_that_were_logged_late():
    """The end of the phase seems to come before the request that ends it."""
    seen = observed(joined_ms=1_100.0 - TIMER_SLACK_MS - 200, assigned_ms=None)
    outcomes = [
        compare([seen], [expected()], stalls)[0]["outcome"]
        for stalls in ([], [Stall("1", 700.0, 1_000.0)])
    ]
    assert outcomes == ["early", "match"]


AT, FAR = 1_000.0, 9_000.0


@pytest.mark.parametrize(
    ("seen", "due", "outcomes"),
    [
        ([], [expected()], {None: "missing"}),
        ([observed()], [], {AT: "unexpected"}),
        # of other generations, by time and reason
        ([observed(old_generation=9, started_ms=AT + PAIR_MS - 1)], [expected()],
         {AT + PAIR_MS - 1: "wrong_generation"}),
        ([observed(old_generation=9, started_ms=AT + PAIR_MS)], [expected()],
         {None: "missing", AT + PAIR_MS: "unexpected"}),
        # with the nearest of their key
        ([observed(started_ms=FAR), observed()], [expected()], {AT: "match", FAR: "unexpected"}),
        # the second is nearer to the first that is due, which has its own
        ([observed(), observed(started_ms=AT + 50)], [expected(), expected(started_ms=FAR)],
         {AT: "match", AT + 50: "early"}),
    ],
    ids=["missing", "unexpected", "another generation", "too far apart", "nearest",
         "one for each"],
)  # fmt: skip
def test_which_rows_pair(seen, due, outcomes):
    rows = compare(seen, due)
    assert {row["observed_started_ms"]: row["outcome"] for row in rows} == outcomes
    assert len(rows) == len(outcomes)


@pytest.mark.parametrize(("late_ms", "outcome"), [(199, "match"), (221, "late")])
def test_how_late_the_line_of_the_end_of_a_phase_may_be(late_ms, outcome):
    seen = observed(joined_ms=1_100.0 + late_ms, assigned_ms=None)
    (row,) = compare([seen], [expected(assigned_ms=None)])
    assert row["outcome"] == outcome


@pytest.mark.parametrize(("certain", "outcome"), [(True, "unexpected"), (False, "match")])
def test_on_the_wire_a_generation_that_nothing_explains_is_unexpected(certain, outcome):
    unknown = {"old_generation": None, "started_ms": None, "started_line": None, "reason": None}
    seen = [observed(**unknown), observed(**unknown, generation=5, joined_ms=2_000.0)]
    due = [expected(generation=None, joined_ms=None), expected(members=3)]
    rows = compare_generations(seen, due, certain=certain)
    found = {(row["observed_generation"], row["expected_generation"]): row for row in rows}
    assert {pair: row["outcome"] for pair, row in found.items()} == {
        (4, 4): "match", (5, None): outcome, (None, None): "match",
    }  # fmt: skip
    assert (found[5, None]["line"], found[4, 4]["old_generation"]) == (6, 3)
