"""A write that was confirmed, and that the next coordinator does not have: whose lie is it?

The logs are those of a coordinator whose last assignment its successor never got, though it was
answered without an error. That is proven wrong, unless a fault cut the broker off about then.
"""

from dataclasses import dataclass, replace
from math import inf

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.step import step
from reference_coordinator.driving.driver import Write
from reference_coordinator.replay import Parting
from reports.judgement.findings import Finding, proven_roots
from reports.judgement.run_context import RunContext
from reports.timing import REPLICATES_MS
from selftest.mutants.log_synthesis import LogSynthesis
from selftest.mutants.synthesized_run import SynthesizedRun
from tests.recorded.logs import RECORDINGS
from tests.reports.alter import explains
from tests.reports.conftest import COORDINATORS
from tests.reports.test_unplanned_elections import GROUP, Case, epochs_until_the_end, last_sync


@dataclass
class LostWrite(LogSynthesis):
    """What one SyncGroup writes, and its broker after it, does not reach the next coordinator."""

    lost: str = ""
    loses: bool = False

    def outcome(self, broker: str, write: Write) -> tuple[Error, bool]:
        self.loses |= write.request == self.lost
        return Error.NONE, not (self.loses and broker == self.lost.partition(":")[0])


class Lost(Case):
    """The logs end some time after the partition was loaded again."""

    def parted(self, *partings: Parting) -> RunContext:
        """By the plan there was no other fault."""
        return replace(self.run.context, epochs=replace(self.epochs, partings=partings), kills=())

    def explains(self, *partings: Parting) -> bool:
        return explains(self.parted(*partings), GROUP, self.rows)

    def judged(self, *partings: Parting) -> list[Finding]:
        return self.found(self.parted(*partings))

    def cut_off(self, from_ms: float, broker: str = "") -> Parting:
        """Return a fault that began so long after the SyncGroup was answered."""
        at_ms = self.sync.answered_ms + from_ms
        return Parting(broker or self.sync.broker, at_ms - REPLICATES_MS, at_ms, inf, inf)


@pytest.fixture(scope="module", params=COORDINATORS)
def lost(request: pytest.FixtureRequest) -> Lost:
    recording = RECORDINGS[request.param]
    seen = last_sync(recording)
    lines = LostWrite(recording, GROUP, GROUP, step, lost=seen.id)
    run = SynthesizedRun(recording.folder, recording, GROUP, tuple(lines.run()))
    return Lost(run, seen, epochs_until_the_end(recording))


def test_a_confirmed_write_that_is_gone_is_proven_wrong_unless_its_broker_was_cut_off(
    lost: Lost,
) -> None:
    assert not lost.explains()
    assert proven_roots(lost.judged())
    assert lost.explains(lost.cut_off(-500.0))


def test_what_it_wrote_just_before_may_be_gone(lost: Lost) -> None:
    assert not lost.explains(lost.cut_off(500.0))
    found = lost.judged(lost.cut_off(500.0))
    assert proven_roots(found) == []
    (cause,) = {one.may_be.cause for one in found if one.may_be is not None}
    assert f"what broker {lost.sync.broker} wrote just before it was cut off" in cause


def test_what_it_wrote_long_before_or_another_one_is_not(lost: Lost) -> None:
    other = "1" if lost.sync.broker != "1" else "2"
    for parting in (lost.cut_off(REPLICATES_MS + 200.0), lost.cut_off(-500.0, other)):
        assert not lost.explains(parting)
        assert proven_roots(lost.judged(parting))
