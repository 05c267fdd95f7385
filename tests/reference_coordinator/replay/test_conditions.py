"""What stays the same for all hypotheses about one coordinator epoch."""

from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.evidence import Stall, Tolerance
from reference_coordinator.replay.lateness import Lateness
from tests.reference_coordinator.replay.conftest import PROFILE


def test_slack_is_of_timers_and_of_answers() -> None:
    conditions = Conditions(PROFILE, Tolerance(timer=500, reply=1_000))
    assert conditions.latest_expiry(100) == 600
    assert conditions.latest_answer(100) == 1_100


def test_a_stall_of_this_broker_holds_up_timers_and_one_of_any_broker_answers() -> None:
    here, anywhere = (Lateness.of([Stall("1", 0, end)]) for end in (200, 300))
    conditions = Conditions(
        PROFILE, Tolerance(timer=500, reply=1_000), lateness=here, answer_lateness=anywhere
    )
    assert conditions.latest_expiry(100) == 700
    assert conditions.latest_answer(100) == 1_300
