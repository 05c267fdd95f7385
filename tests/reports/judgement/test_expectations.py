"""Whether an expected verdict came true: a fail does for one reason alone."""

from collections import Counter

import pytest

from reports.judgement.digest import Digest
from reports.judgement.expectations import UNOWNED, Shortfall, expected_verdict, unmet
from scenarios import named
from scenarios.model import ExpectedVerdict, Movement

FAIL = ExpectedVerdict(since="2.8.0", verdict="fail", because="return_is_stored", group="g")
PASS = ExpectedVerdict(since="2.8.0", verdict="pass")
UNOWNS = ExpectedVerdict(since="2.8.0", verdict="fail", because="unowned")
UNOWNS_IN_G = UNOWNS.model_copy(update={"group": "g"})
BROKEN = {"g": ["return_is_stored"]}


def short(group: str, what: str = "rebalances", *, too_many: bool = True) -> Shortfall:
    return Shortfall(group, "the end", what, "1", 2 if too_many else 0, too_many)


THERE, ELSEWHERE = (short("g", UNOWNED),), (short("other", UNOWNED),)
COUNT, OTHER_COUNT = (short("g"),), (short("other"),)


@pytest.mark.parametrize(
    ("expected", "verdict", "broken", "proven", "unmet", "true"),
    [
        (PASS, "pass", {}, (), (), True),
        (PASS, "unknown", {}, (), (), False),
        (PASS, "fail", BROKEN, ("g",), (), False),
        # the promise, and in the group
        (FAIL, "fail", BROKEN, ("g", "g"), (), True),
        (FAIL, "fail", BROKEN, (), COUNT, True),
        (FAIL, "fail", BROKEN, ("g",), OTHER_COUNT, False),
        (FAIL, "pass", {}, (), (), False),
        (FAIL, "unknown", BROKEN, (), (), False),
        (FAIL, "fail", {}, ("g",), (), False),
        (FAIL, "fail", {"g": ["joins_update_timeouts"]}, ("g",), (), False),
        (FAIL, "fail", {"g": ["joins_update_timeouts", "return_is_stored"]}, ("g",), (), False),
        (FAIL, "fail", {"other": ["return_is_stored"]}, ("other",), (), False),
        (FAIL, "fail", BROKEN, ("g", "other"), (), False),
        (FAIL, "fail", BROKEN, (), (), False),
        # partitions without owner: in any group, or in one
        (UNOWNS, "fail", {}, (), THERE, True),
        (UNOWNS, "fail", {}, (), ELSEWHERE, True),
        (UNOWNS, "fail", {}, (), THERE + COUNT, True),
        (UNOWNS, "fail", {}, (), THERE + OTHER_COUNT, False),
        (UNOWNS, "fail", {}, (), THERE + ELSEWHERE, True),
        (UNOWNS, "fail", {}, ("g",), THERE, False),
        (UNOWNS, "fail", {}, (), (short("g", UNOWNED, too_many=False),), False),
        (UNOWNS_IN_G, "fail", {}, (), THERE, True),
        (UNOWNS_IN_G, "fail", {}, (), ELSEWHERE, False),
        (UNOWNS_IN_G, "fail", {}, (), THERE + COUNT, True),
        (UNOWNS_IN_G, "fail", {}, (), THERE + ELSEWHERE, False),
    ],
)
def test_a_fail_comes_true_for_one_reason_alone(expected, verdict, broken, proven, unmet, true):
    found = expected_verdict(expected, verdict, broken, proven, unmet)
    assert found is not None
    assert found["came_true"] is true


def test_without_an_expected_verdict():
    assert expected_verdict(None, "fail", BROKEN, ["g"], ()) is None


@pytest.mark.parametrize(
    ("proven", "unanswered", "unmet", "true"),
    [
        (("g",), {"g"}, (), True),
        (("g",), set(), (), False),
        (("g", "other"), {"g"}, (), False),
        (("g", "other"), {"g", "other"}, (), False),
        (("g",), {"g"}, COUNT, True),
        (("g",), {"g"}, OTHER_COUNT, False),
    ],
)
def test_a_fail_for_requests_without_answer(proven, unanswered, unmet, true):
    expected = ExpectedVerdict(since="2.8.0", verdict="fail", because="unanswered", group="g")
    result = expected_verdict(expected, "fail", {}, proven, unmet, unanswered)
    assert result is not None
    assert result["came_true"] is true


@pytest.mark.parametrize(
    ("phase", "moved", "missed"),
    [
        ("impact", {"impact": 3}, None),
        ("impact", {"impact": 4}, (4, True)),
        ("impact", {"impact": 3, "recovery": 1}, None),
        (None, {"impact": 3, "recovery": 1}, (4, True)),
        (None, {}, None),
        (None, None, (0, False)),
    ],
)
def test_partitions_that_move_are_counted_where_clients_tell(phase, moved, missed):
    """What no client tells of is not known to be met."""
    wanted = [{"group": "static", "moved": {"max": 3}, "phase": phase}]
    experiment = named("gone-and-back").model_copy(
        update={"expect": tuple(map(Movement.model_validate, wanted))}
    )
    counted = None if moved is None else Counter(moved)
    found = unmet(experiment, {"static": Digest(moved=counted)}, {})
    assert [(one.observed, one.proven) for one in found] == ([] if missed is None else [missed])
