"""The order of overlapping requests: the likely one first, then any that the windows allow."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Hint, HintKind, Tolerance
from tests.reference_coordinator.replay.conftest import IDS, START, Scenario, stable, wrong

AGAIN = Error.REBALANCE_IN_PROGRESS


def overlap(*, who: str = "a", error: int = AGAIN) -> Scenario:
    """A heartbeat whose response reflects b's leave, though it likely arrived before it."""
    scenario = stable()
    scenario.heartbeat(who, 3_000, error, answered=3_040, before=20)
    scenario.leave("b", 3_020, answered=3_041, before=30)
    return scenario


@pytest.mark.parametrize(
    ("left_by_line", "searched"), [([], 1), ([2_995], 0), ([3_039], 1)],
    ids=["no line", "a line gives the order", "a line that misleads"],
)  # fmt: skip
def test_another_order_is_found_by_search(left_by_line: list[int], searched: int) -> None:
    scenario = overlap()
    scenario.hints = [Hint(START + at, HintKind.LEFT, IDS["b"]) for at in left_by_line]
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert outcome.bound["order"] == searched
    assert outcome.rows[-1].reason == "leave"


def test_no_order_is_found_where_windows_do_not_allow_it() -> None:
    scenario = stable()
    early = scenario.heartbeat("a", 3_000, AGAIN, answered=3_001)
    scenario.leave("b", 3_020)
    outcome = scenario.replay()
    assert wrong(outcome) == [early]
    assert outcome.violations[0].searched


def test_one_connection_keeps_its_order() -> None:
    """It is unknown, as b would be on any other connection after its leave."""
    outcome = overlap(who="b", error=Error.UNKNOWN_MEMBER_ID).replay()
    assert wrong(outcome) == ["HEARTBEAT:b:3000"]


@pytest.mark.parametrize(("budget", "searched"), [(8, False), (5_000, True)])
def test_a_spent_budget_proves_nothing(budget: int, *, searched: bool) -> None:
    scenario = stable()
    for at in range(3_000, 3_005):
        scenario.heartbeat("a", at, answered=at + 0.5, before=20)
    scenario.leave("b", 3_010, answered=3_041, before=30)
    for number in range(3):  # new members, each gets an id, in any order
        scenario.newcomer(f"c-{number}", 3_012 + number, answered=3_043, before=30)
    scenario.change("HEARTBEAT:a:3004", errorCode=Error.FENCED_INSTANCE_ID)
    outcome = scenario.replay(Tolerance(search=budget))
    assert wrong(outcome)[0] == "HEARTBEAT:a:3004"
    assert outcome.violations[0].searched is searched


def test_the_fast_path_spends_no_budget() -> None:
    scenario = stable()
    for index in range(40):
        scenario.heartbeat("ab"[index % 2], 1_500 + index / 2)
    assert scenario.replay(Tolerance(search=20)).violations == ()


def test_a_refused_assignment_without_a_line_comes_after_the_cause_of_its_refusal() -> None:
    scenario = stable()
    del scenario.requests[2:]
    scenario.sync("a", 1_010, 1_030, gives="a", error=AGAIN)
    scenario.leave("b", 1_015, answered=1_029)
    scenario.hints = [Hint(START + 1_020, HintKind.LEFT, IDS["b"])]
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert outcome.rows[0].ended_as == "superseded"
