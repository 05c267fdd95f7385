"""Record writes under way, and how they end."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.evidence import ObservedRequest, Outage, Tolerance
from reference_coordinator.replay.failed_writes import STORED, PendingWrites, outcome_of
from tests.reference_coordinator.replay.conftest import PROFILE, START, Scenario

ALWAYS = (Outage(0, 1e12),)


def sync(error: int = 0, at: float = 10) -> ObservedRequest:
    scenario = Scenario()
    request = scenario.sync("a", at, at + 20, gives="a")
    scenario.change(request, errorCode=error)
    return scenario.requests[0]


def conditions(*, waits: bool = True, outages: tuple[Outage, ...] = ALWAYS) -> Conditions:
    profile = replace(PROFILE, answers_wait_for_writes=waits)
    return Conditions(profile, Tolerance(), outages=outages)


def test_a_write_is_done_by_the_answer_that_waits_for_it() -> None:
    seen, writes = sync(), PendingWrites()
    writes.start(seen, Clock(START, START + 10, START + 12), conditions())
    _, due = writes[seen.id]
    assert (due.earliest_ms, due.at_ms) == (START, seen.answered_ms)
    assert due.latest_ms == seen.answered_ms + Tolerance().early


def test_a_write_that_no_answer_waits_for_is_done_soon() -> None:
    seen = replace(sync(), response=None)
    writes = PendingWrites()
    writes.start(seen, Clock(START, START + 10, START + 12), conditions())
    _, due = writes[seen.id]
    assert (due.at_ms, due.latest_ms) == (START + 10, START + 12 + Tolerance().reply)


@pytest.mark.parametrize("error", [Error.NONE, Error.COORDINATOR_NOT_AVAILABLE])
def test_writes_are_done_in_order_but_for_those_that_fail(error: Error) -> None:
    first, second = sync(at=10), sync(int(error), at=20)
    writes = PendingWrites()
    for seen in (first, second):
        writes.start(seen, Clock(), conditions())
    fails = [second.id] if error is not Error.NONE else []
    assert writes.next_done(conditions()) == [first.id, *fails]
    assert writes.next_done(conditions(waits=False)) == [first.id, second.id]


def test_a_write_fails_only_during_an_outage() -> None:
    seen = sync(int(Error.COORDINATOR_NOT_AVAILABLE))
    assert outcome_of(seen, conditions()).error is Error.COORDINATOR_NOT_AVAILABLE
    assert outcome_of(seen, conditions(outages=())) is STORED
    assert outcome_of(sync(27), conditions()) is STORED


def test_a_fork_goes_on_by_itself() -> None:
    writes = PendingWrites()
    writes.start(sync(), Clock(), conditions())
    forked = writes.fork()
    forked.clear()
    assert len(writes) == 1
