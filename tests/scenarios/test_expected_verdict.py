"""The verdict that an experiment expects, by release and coordinator, and its reason."""

from typing import get_args

import pytest

from reference_coordinator.classic.releases import PROMISES
from scenarios import Experiment
from scenarios.checks import OF_NO_RULE
from scenarios.model import Promise
from tests.scenarios.conftest import SMALL, Load, Problems

FAIL = "verdict: fail, because: return_is_stored, group: payments"


def judged(*verdicts: str, judge: str = "kip-345") -> str:
    lines = "".join(f"  - {{{entry}}}\n" for entry in verdicts)
    return f"{SMALL}judge: {judge}\nverdicts:\n{lines}"


def test_every_promise_may_be_named() -> None:
    assert get_args(Promise) == tuple(PROMISES)


def test_the_last_entry_counts_that_is_about_the_release_and_its_coordinator(
    load_text: Load,
) -> None:
    text = judged(
        "since: 2.8.0, verdict: pass",
        f"since: 3.7.0, coordinator: scala, {FAIL}",
        "since: 3.7.0, coordinator: java, verdict: pass",
    )
    for version, coordinator, verdict in (
        ("3.6.2", "scala", "pass"),
        ("3.9.1", "scala", "fail"),
        ("3.9.1", "java", "pass"),
    ):
        chosen = [f"cluster.version={version}", f"cluster.coordinator={coordinator}"]
        expected = load_text(text).override(chosen).expected_verdict
        assert expected is not None
        assert expected.verdict == verdict
    assert load_text(judged(f"since: 4.4.0, {FAIL}")).expected_verdict is None


@pytest.mark.parametrize(
    ("verdicts", "judge", "trouble"),
    [
        (["since: 2.8.0, verdict: fail"], "kip-345", "because: missing; name the promise"),
        (["since: 2.8.0, verdict: fail, because: return_is_stored"], "kip-345",
         "group: missing; name the group in which it is broken"),
        (["since: 2.8.0, verdict: fail, because: returns_are_stored, group: payments"], "kip-345",
         "'returns_are_stored' is not known; did you mean 'return_is_stored'?"),
        (["since: 2.8.0, verdict: fail, because: return_is_stored, group: payment"], "kip-345",
         "there is no group 'payment'; did you mean 'payments'?"),
        (["since: 2.8.0, verdict: pass, group: payments"], "kip-345",
         "only applies to a fail; remove it"),
        (["since: 2.8.0, verdict: fail, because: unowned"], "kip-345",
         "expect: has no `unowned`"),
        ([f"since: 2.8.0, {FAIL}"], "release", "write judge: kip-345"),
        ([f"since: 2.8.0, {FAIL}", "since: 2.8.0, verdict: pass"], "kip-345",
         "verdicts.1.since: is not after 2.8.0"),
        ([f"since: 3.0.0, {FAIL}", "since: 2.8.0, verdict: pass"], "kip-345",
         "verdicts.1.since: is not after 3.0.0"),
    ],
)  # fmt: skip
def test_a_fail_says_why_and_entries_are_in_order(
    problems: Problems, verdicts: list[str], judge: str, trouble: str
) -> None:
    [line] = problems(judged(*verdicts, judge=judge))
    assert trouble in line


def test_experiments_judged_by_kip_345_expect_a_verdict(library: dict[str, Experiment]) -> None:
    for experiment in library.values():
        broken = {entry.because for entry in experiment.verdicts} - {None, *OF_NO_RULE}
        assert bool(experiment.verdicts) <= (experiment.never_shipped is None)
        assert experiment.verdicts or experiment.judge != "kip-345"
        assert experiment.judge == "kip-345" or not broken
