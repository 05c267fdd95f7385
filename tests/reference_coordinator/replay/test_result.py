"""A replay's result, as it comes together and is taken back."""

from reference_coordinator.replay.result import Checked, Output, Replay, Violation


def violation(*, searched: bool) -> Violation:
    return Violation(1, 2, "1", "answer", "x", "y", searched)


def test_rows_after_a_mark_are_rolled_back() -> None:
    outcome = Output()
    outcome.checked.append(Checked("1", True))
    outcome.bind("order")
    mark = outcome.mark()
    outcome.checked.append(Checked("2", False))
    outcome.violations.append(violation(searched=True))
    outcome.bind("order")
    outcome.back_to(mark)
    result = outcome.result()
    assert result.checked == (Checked("1", True),)
    assert (result.violations, result.bound) == ((), {"order": 1})


def test_only_a_violation_that_was_searched_is_proven() -> None:
    proven, doubt = (Replay((), (), (violation(searched=searched),)) for searched in (True, False))
    assert proven.proven
    assert not doubt.proven
