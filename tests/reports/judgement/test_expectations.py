"""Whether an expected verdict came true: a fail does for one reason alone."""

import pytest

from reports.judgement.expectations import UNOWNED, Shortfall, expected_verdict
from scenarios.model import ExpectedVerdict

FAIL = ExpectedVerdict(since="2.8.0", verdict="fail", because="return_is_stored", group="g")
PASS = ExpectedVerdict(since="2.8.0", verdict="pass")
BROKEN = {"g": ["return_is_stored"]}


def short(group: str, what: str = "rebalances", *, too_many: bool = True) -> Shortfall:
    return Shortfall(group, "the end", what, "1", 2 if too_many else 0, too_many)


def came_true(
    expected: ExpectedVerdict,
    verdict: str,
    broken: dict[str, list[str]],
    *proven: str,
    unmet: tuple[Shortfall, ...] = (),
) -> bool:
    found = expected_verdict(expected, verdict, broken, proven, unmet)
    assert found is not None
    return bool(found["came_true"])


def test_without_an_expected_verdict() -> None:
    assert expected_verdict(None, "fail", BROKEN, ["g"], ()) is None


def test_a_pass_is_a_pass() -> None:
    assert came_true(PASS, "pass", {})
    assert not came_true(PASS, "unknown", {})
    assert not came_true(PASS, "fail", BROKEN, "g")


def test_a_fail_breaks_the_promise_in_the_expected_group() -> None:
    assert came_true(FAIL, "fail", BROKEN, "g", "g")
    assert came_true(FAIL, "fail", BROKEN, unmet=(short("g"),))
    assert not came_true(FAIL, "fail", BROKEN, "g", unmet=(short("other"),))


@pytest.mark.parametrize(
    ("proven", "unmet", "somewhere", "there"),
    [
        ((), (short("g", UNOWNED),), True, True),
        ((), (short("other", UNOWNED),), True, False),
        ((), (short("g", UNOWNED), short("g")), True, True),
        ((), (short("g", UNOWNED), short("other")), False, False),
        ((), (short("g", UNOWNED), short("other", UNOWNED)), True, False),
        (("g",), (short("g", UNOWNED),), False, False),
        ((), (short("g", UNOWNED, too_many=False),), False, False),
    ],
)
def test_a_fail_for_partitions_without_owner(
    proven: tuple[str, ...], unmet: tuple[Shortfall, ...], somewhere: bool, there: bool
) -> None:
    expected = ExpectedVerdict(since="2.8.0", verdict="fail", because="unowned")
    assert came_true(expected, "fail", {}, *proven, unmet=unmet) is somewhere
    expected = expected.model_copy(update={"group": "g"})
    assert came_true(expected, "fail", {}, *proven, unmet=unmet) is there


@pytest.mark.parametrize(
    ("proven", "unanswered", "unmet", "true"),
    [
        (("g",), {"g"}, (), True),
        (("g",), set(), (), False),
        (("g", "other"), {"g"}, (), False),
        (("g", "other"), {"g", "other"}, (), False),
        (("g",), {"g"}, (short("g"),), True),
        (("g",), {"g"}, (short("other"),), False),
    ],
)
def test_a_fail_for_requests_without_answer(
    proven: tuple[str, ...], unanswered: set[str], unmet: tuple[Shortfall, ...], true: bool
) -> None:
    expected = ExpectedVerdict(since="2.8.0", verdict="fail", because="unanswered", group="g")
    result = expected_verdict(expected, "fail", {}, proven, unmet, unanswered)
    assert result is not None
    assert result["came_true"] is true


@pytest.mark.parametrize(
    ("verdict", "broken", "wrong"),
    [
        ("pass", {}, []),
        ("unknown", BROKEN, []),
        ("fail", {}, ["g"]),
        ("fail", {"g": ["joins_update_timeouts"]}, ["g"]),
        ("fail", {"g": ["joins_update_timeouts", "return_is_stored"]}, ["g"]),
        ("fail", {"other": ["return_is_stored"]}, ["other"]),
        ("fail", BROKEN, ["g", "other"]),
        ("fail", BROKEN, []),
    ],
)
def test_a_fail_for_another_reason_does_not_count(
    verdict: str, broken: dict[str, list[str]], wrong: list[str]
) -> None:
    assert not came_true(FAIL, verdict, broken, *wrong)
