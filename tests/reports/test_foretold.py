"""Whether what was foretold came true: a fail does for one reason alone."""

import pytest

from reports.foretold import told
from scenarios.model import Foretold

FAIL = Foretold(since="2.8.0", verdict="fail", because="return_is_stored", group="g")
PASS = Foretold(since="2.8.0", verdict="pass")
BROKEN = {"g": ["return_is_stored"]}


def came_true(foretold: Foretold, verdict: str, broken: dict[str, list[str]], *wrong: str) -> bool:
    found = told(foretold, verdict, broken, wrong)
    assert found is not None
    return bool(found["came_true"])


def test_nothing_was_foretold() -> None:
    assert told(None, "fail", BROKEN, ["g"]) is None


def test_a_pass_is_a_pass() -> None:
    assert came_true(PASS, "pass", {})
    assert not came_true(PASS, "unknown", {})
    assert not came_true(PASS, "fail", BROKEN, "g")


def test_a_fail_breaks_the_promise_where_it_was_told() -> None:
    assert came_true(FAIL, "fail", BROKEN, "g", "g")


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
