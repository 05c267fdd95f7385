"""A write that was confirmed, and that the next coordinator does not have: whose lie is it?

The logs are those of a coordinator whose last assignment its successor never got, though it was
answered without an error. That is proven wrong, unless a fault cut the broker off about then.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.step import step
from reference_coordinator.driving.driver import Write
from reference_coordinator.replay import ObservedRequest, Parting
from reports.judgement.disturbances import Disturbances
from reports.judgement.findings import Finding, of_group, proven_roots
from reports.judgement.group import check_rows
from reports.judgement.missing.gaps import unlogged
from reports.judgement.recording import Row
from reports.judgement.run_context import RunContext
from reports.timing import REPLICATES_MS
from selftest.mutants.log_synthesis import LogSynthesis
from selftest.mutants.synthesized_run import SynthesizedRun
from tests.recorded.logs import RECORDINGS
from tests.reports.alter import explains
from tests.reports.conftest import COORDINATORS
from tests.reports.test_unplanned_elections import GROUP, SUCCESSOR_LASTS_MS, last_sync


@dataclass
class LostWrite(LogSynthesis):
    """What one SyncGroup writes, and its broker after it, does not reach the next coordinator."""

    lost: str = ""
    loses: bool = False

    def outcome(self, broker: str, write: Write) -> tuple[Error, bool]:
        self.loses |= write.request == self.lost
        return Error.NONE, not (self.loses and broker == self.lost.partition(":")[0])


@dataclass(frozen=True)
class Case:
    """The logs end `SUCCESSOR_LASTS_MS` after the partition was loaded again."""

    run: SynthesizedRun
    seen: ObservedRequest

    @property
    def end_ms(self) -> float:
        loads = self.run.context.epochs.loads[self.run.original.partitions[GROUP]]
        return loads[-1].at_ms + SUCCESSOR_LASTS_MS

    @property
    def rows(self) -> list[Row]:
        last_ms = lambda row: row["at_ms"] if row["template"] else row["logged_ms"]
        return [row for row in self.run.rows_by_group[GROUP] if last_ms(row) <= self.end_ms]

    def context(self, *partings: Parting) -> RunContext:
        """By the plan there was no other fault."""
        epochs = self.run.context.epochs
        ends = [replace(one, at_ms=min(one.at_ms, self.end_ms)) for one in epochs.of_brokers]
        partition = self.run.original.partitions[GROUP]
        events = [one for one in epochs.of_partitions[partition] if one.at_ms <= self.end_ms]
        mine = replace(
            epochs, partings=partings, of_brokers=ends, of_partitions={partition: events}
        )
        return replace(self.run.context, epochs=mine, kills=())

    def explains(self, *partings: Parting) -> bool:
        return explains(self.context(*partings), GROUP, self.rows)

    def found(self, *partings: Parting) -> list[Finding]:
        """Judge the group, with what no log may have of it."""
        tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for name, row in check_rows(self.context(*partings), GROUP, self.rows):
            tables[name].append({"group": GROUP, **row})
        gaps = [unlogged(row) for row in tables["unlogged"]]
        groups = {GROUP: tables["groups"][0]}
        disturbances = Disturbances(gaps, groups)
        return disturbances.judged(of_group(tables))

    def cut_off(self, from_ms: float, broker: str = "") -> Parting:
        """Return a fault that began so long after the SyncGroup was answered."""
        at_ms = self.seen.answered_ms + from_ms
        return Parting(broker or self.seen.broker, at_ms - REPLICATES_MS, at_ms, inf, inf)


@cache
def case(name: str) -> Case:
    recording = RECORDINGS[name]
    seen = last_sync(recording)
    lines = LostWrite(recording, GROUP, GROUP, step, lost=seen.id)
    return Case(SynthesizedRun(recording.folder, recording, GROUP, tuple(lines.run())), seen)


@pytest.mark.parametrize("name", COORDINATORS)
def test_a_confirmed_write_that_is_gone_is_proven_wrong(name: str) -> None:
    lost = case(name)
    assert not lost.explains()
    assert proven_roots(lost.found())


@pytest.mark.parametrize("name", COORDINATORS)
def test_what_a_broker_wrote_while_it_was_cut_off_is_gone(name: str) -> None:
    assert case(name).explains(case(name).cut_off(-500.0))


@pytest.mark.parametrize("name", COORDINATORS)
def test_what_it_wrote_just_before_may_be_gone(name: str) -> None:
    lost = case(name)
    assert not lost.explains(lost.cut_off(500.0))
    found = lost.found(lost.cut_off(500.0))
    assert proven_roots(found) == []
    (cause,) = {one.may_be.cause for one in found if one.may_be is not None}
    assert f"what broker {lost.seen.broker} wrote just before it was cut off" in cause


@pytest.mark.parametrize("name", COORDINATORS)
def test_what_it_wrote_long_before_or_another_one_is_not(name: str) -> None:
    lost = case(name)
    other = "1" if lost.seen.broker != "1" else "2"
    for parting in (lost.cut_off(REPLICATES_MS + 200.0), lost.cut_off(-500.0, other)):
        assert not lost.explains(parting)
        assert proven_roots(lost.found(parting))
