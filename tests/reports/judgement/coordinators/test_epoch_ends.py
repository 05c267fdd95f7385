"""What a coordinator that gives its partition up may leave undone."""

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


def of_partition(loads: list[Load], *ends: EpochEvent) -> CoordinatorEpochs:
    """Return the epochs of partition 0."""
    epochs = CoordinatorEpochs(1)
    epochs.loads[0], epochs.of_partitions[0] = loads, [*ends]
    return epochs


LOADS = [Load("1", 1_000.0, 1, 10, 1_000.0), Load("2", 2_000.0, 2, 10, 2_000.0)]


@pytest.mark.parametrize(
    ("loads", "broker", "kind", "at_ms", "incarnation", "excused"),
    [
        (LOADS[:1], "1", "unloaded", 4_999, 1, False),
        (LOADS[:1], "1", "unloaded", 5_000, 1, True),
        (LOADS[:1], "1", "unloaded", 5_500, 1, True),
        (LOADS[:1], "1", "unloaded", 5_501, 1, False),
        (LOADS[:1], "1", "ended", 5_012, 1, True),
        (LOADS[:1], "1", "loading", 5_012, 1, False),
        (LOADS[:1], "2", "ended", 5_012, 1, False),
        # broker 2 loaded the group after broker 1, which ends later, or says so then
        *((LOADS, "1", kind, 5_012, number, number == 1)
          for kind in ("unloaded", "ended") for number in (1, 2)),
    ],
    ids=["before", "at once", "just in time", "later", "down", "no end", "never a coordinator",
         "unloaded", "unloaded, of another", "down, beside another", "down, of another"],
)  # fmt: skip
def test_a_timer_need_not_expire_before_its_coordinator_goes(
    loads, broker, kind, at_ms, incarnation, excused
):
    left = Unsure.of(of_partition(loads, EpochEvent(at_ms, broker, kind)), 0)
    due = ExpectedLine("session_expired", "a", DUE_MS, DUE_MS, LATEST_MS, incarnation=incarnation)
    assert left.may_be_missing(due) == excused
    row = ExpectedRebalance(incarnation, 3, DUE_MS, DUE_MS, LATEST_MS, "session_expired", "a")
    missing = {"incarnation": incarnation, "expected_old_generation": 3,
               "expected_started_ms": DUE_MS, "outcome": "missing"}  # fmt: skip
    assert [*left.without([row], [missing])] == ([] if excused else [missing])
    for kept in (missing | {"outcome": "late"}, missing | {"expected_old_generation": 4}):
        assert [*left.without([row], [kept])] == [kept]


@pytest.mark.parametrize("kind", ["unloaded", "ended"])
@pytest.mark.parametrize(
    ("after_ms", "scheduled_ms", "short"),
    [(43, -47, True), (1_000, -47, True), (1_001, -47, False), (43, 0, False), (-40, -47, True),
     (-50, -47, False)],
    ids=["as seen", "just by then", "later", "Java, which loads as it is scheduled",
         "while it waits", "before"],
)  # fmt: skip
def test_a_load_just_before_an_end_may_give_nothing(after_ms, scheduled_ms, kind, short):
    epochs = of_partition(
        [Load("3", 5_000.0, 1, 10, 5_000.0 + scheduled_ms)],
        EpochEvent(4_000.0, "3", "unloaded"),
        EpochEvent(5_000.0 + after_ms, "3", kind),
        EpochEvent(5_001.0, "1", "unloaded"),
    )
    found = [Outage(4_953.0, 5_000.0 + max(after_ms, 0))] if short else []
    assert [*short_epochs(epochs, 0)] == found


@pytest.mark.parametrize(("loaded_ms", "excused"), [(5_002.0, True), (5_040.0, False)])
def test_lines_of_a_load_that_gives_nothing_are_not_due(loaded_ms, excused):
    """It took 6 ms: it began after the earliest time by which its lines might have been printed."""
    load = Load("3", 5_002.0, 1, 10, 5_000.0)
    epochs = of_partition([load], EpochEvent(5_006.0, "3", "unloaded"))
    due = ExpectedLine("group_loaded", "", loaded_ms, loaded_ms - 10, loaded_ms + 100)
    assert Unsure.of(epochs, 0).may_be_missing(due) == excused
