"""The verdict that an experiment expects, by release and coordinator, and its reason."""

from collections.abc import Callable
from typing import get_args

import pytest

from reference_coordinator.classic.releases import PROMISES
from scenarios import Experiment
from scenarios.checks import OF_NO_RULE
from scenarios.model import Promise

FAIL = "verdict: fail, because: return_is_stored, group: payments"


def judged(small: str, *verdicts: str, judge: str = "kip-345") -> str:
    lines = "".join(f"  - {{{entry}}}\n" for entry in verdicts)
    return f"{small}judge: {judge}\nverdicts:\n{lines}"


def test_every_promise_may_be_named() -> None:
    assert get_args(Promise) == tuple(PROMISES)


def test_the_last_entry_counts_that_is_about_the_release_and_its_coordinator(
    load_text: Callable[[str], Experiment], small: str
) -> None:
    experiment = load_text(
        judged(
            small,
            "since: 2.8.0, verdict: pass",
            f"since: 3.7.0, coordinator: scala, {FAIL}",
            "since: 3.7.0, coordinator: java, verdict: pass",
        )
    )

    def verdict_for(version: str, coordinator: str) -> str | None:
        chosen = [f"cluster.version={version}", f"cluster.coordinator={coordinator}"]
        expected = experiment.override(chosen).expected_verdict
        return expected and expected.verdict

    assert verdict_for("3.6.2", "scala") == "pass"
    assert verdict_for("3.9.1", "scala") == "fail"
    assert verdict_for("3.9.1", "java") == "pass"
    assert load_text(judged(small, f"since: 4.4.0, {FAIL}")).expected_verdict is None


@pytest.mark.parametrize(
    ("verdict", "trouble"),
    [
        ("since: 2.8.0, verdict: fail", "because: missing; name the promise"),
        (
            "since: 2.8.0, verdict: fail, because: return_is_stored",
            "group: missing; name the group in which it is broken",
        ),
        (
            "since: 2.8.0, verdict: fail, because: returns_are_stored, group: payments",
            "'returns_are_stored' is not known; did you mean 'return_is_stored'?",
        ),
        (
            "since: 2.8.0, verdict: fail, because: return_is_stored, group: payment",
            "there is no group 'payment'; did you mean 'payments'?",
        ),
        ("since: 2.8.0, verdict: pass, group: payments", "only applies to a fail; remove it"),
        ("since: 2.8.0, verdict: fail, because: unowned", "expect: has no `unowned`"),
    ],
)
def test_a_fail_says_why(
    problems: Callable[[str], list[str]], small: str, verdict: str, trouble: str
) -> None:
    [line] = problems(judged(small, verdict))
    assert trouble in line


def test_a_promise_needs_the_judge_kip_345(
    problems: Callable[[str], list[str]], small: str
) -> None:
    [line] = problems(judged(small, f"since: 2.8.0, {FAIL}", judge="release"))
    assert "write judge: kip-345" in line


def test_entries_are_in_order(problems: Callable[[str], list[str]], small: str) -> None:
    [line] = problems(judged(small, f"since: 3.0.0, {FAIL}", "since: 2.8.0, verdict: pass"))
    assert "verdicts.1.since: is not after 3.0.0" in line


def test_experiments_judged_by_kip_345_expect_a_verdict(library: dict[str, Experiment]) -> None:
    for experiment in library.values():
        broken = {entry.because for entry in experiment.verdicts} - {None, *OF_NO_RULE}
        assert experiment.verdicts or experiment.judge == "release"
        assert experiment.judge == "kip-345" or not broken
