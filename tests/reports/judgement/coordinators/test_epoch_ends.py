"""What a coordinator that gives its partition up may leave undone."""

from typing import Any

import pytest

from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.replay import EpochEvent, ExpectedLine, Outage
from reports.judgement.coordinators.coordinator_epochs import (
    CoordinatorEpochs,
    Load,
    Unsure,
    short_epochs,
)

DUE_MS = 5_000.0
LATEST_MS = 5_500.0
ENDS = pytest.mark.parametrize(
    ("broker", "kind", "at_ms", "excused"),
    [
        ("1", "unloaded", 4_999, False),
        ("1", "unloaded", 5_000, True),
        ("1", "unloaded", 5_500, True),
        ("1", "unloaded", 5_501, False),
        ("1", "ended", 5_012, True),
        ("1", "loading", 5_012, False),
        ("2", "ended", 5_012, False),
    ],
    ids=["before", "at once", "just in time", "later", "down", "no end", "never a coordinator"],
)


def unsure(broker: str, kind: Any, at_ms: float) -> Unsure:
    """Return what broker 1, which loaded partition 0 long before, may have left undone."""
    epochs = CoordinatorEpochs(1)
    epochs.loads[0] = [Load("1", 1_000.0, 1, 10, 1_000.0)]
    epochs.of_partitions[0] = [EpochEvent(at_ms, broker, kind)]
    return Unsure.of(epochs, 0)


@ENDS
def test_a_timer_need_not_expire_before_its_coordinator_goes(broker, kind, at_ms, excused):
    left = unsure(broker, kind, at_ms)
    due = ExpectedLine("session_expired", "a", DUE_MS, DUE_MS, LATEST_MS, incarnation=1)
    assert left.may_be_missing(due) == excused
    row = ExpectedRebalance(1, 3, DUE_MS, DUE_MS, LATEST_MS, "session_expired", "a")
    missing = {
        "incarnation": 1,
        "expected_old_generation": 3,
        "expected_started_ms": DUE_MS,
        "outcome": "missing",
    }
    assert [*left.without([row], [missing])] == ([] if excused else [missing])
    for kept in (missing | {"outcome": "late"}, missing | {"expected_old_generation": 4}):
        assert [*left.without([row], [kept])] == [kept]


@pytest.mark.parametrize("kind", ["unloaded", "ended"])
def test_the_end_of_another_coordinator_excuses_nothing(kind):
    """Broker 2 loaded the group after broker 1, which ends, or says that it did, later."""
    epochs = CoordinatorEpochs(1)
    epochs.loads[0] = [Load(b, n * 1_000.0, n, 10, n * 1_000.0) for n, b in ((1, "1"), (2, "2"))]
    epochs.of_partitions[0] = [EpochEvent(5_012.0, "1", kind)]
    left = Unsure.of(epochs, 0)
    for incarnation, excused in ((1, True), (2, False)):
        due = ExpectedLine("left", "a", DUE_MS, DUE_MS, LATEST_MS, incarnation=incarnation)
        row = ExpectedRebalance(incarnation, 3, DUE_MS, DUE_MS, LATEST_MS, "left", "a")
        missing = {
            "incarnation": incarnation,
            "expected_old_generation": 3,
            "expected_started_ms": DUE_MS,
            "outcome": "missing",
        }
        assert left.may_be_missing(due) == excused
        assert [*left.without([row], [missing])] == ([] if excused else [missing])


@pytest.mark.parametrize("kind", ["unloaded", "ended"])
@pytest.mark.parametrize(
    ("after_ms", "scheduled_ms", "short"),
    [
        (43, -47, True),
        (1_000, -47, True),
        (1_001, -47, False),
        (43, 0, False),
        (-40, -47, True),
        (-50, -47, False),
    ],
    ids=[
        "as seen",
        "just by then",
        "later",
        "Java, which loads as it is scheduled",
        "while it waits",
        "before",
    ],
)
def test_a_load_just_before_an_end_may_give_nothing(after_ms, scheduled_ms, kind, short):
    epochs = CoordinatorEpochs(1)
    epochs.loads[0] = [Load("3", 5_000.0, 1, 10, 5_000.0 + scheduled_ms)]
    epochs.of_partitions[0] = [
        EpochEvent(4_000.0, "3", "unloaded"),
        EpochEvent(5_000.0 + after_ms, "3", kind),
        EpochEvent(5_001.0, "1", "unloaded"),
    ]
    found = [Outage(4_953.0, 5_000.0 + max(after_ms, 0))] if short else []
    assert [*short_epochs(epochs, 0)] == found


@pytest.mark.parametrize(("loaded_ms", "excused"), [(5_002.0, True), (5_040.0, False)])
def test_lines_of_a_load_that_gives_nothing_are_not_due(loaded_ms, excused):
    """It took 6 ms: it began after the earliest time by which its lines might have been printed."""
    epochs = CoordinatorEpochs(1)
    epochs.loads[0] = [Load("3", 5_002.0, 1, 10, 5_000.0)]
    epochs.of_partitions[0] = [EpochEvent(5_006.0, "3", "unloaded")]
    due = ExpectedLine("group_loaded", "", loaded_ms, loaded_ms - 10, loaded_ms + 100)
    assert Unsure.of(epochs, 0).may_be_missing(due) == excused
