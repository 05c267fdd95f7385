"""Elections without a fault: a write that fails at one is a doubt, and proven wrong without one.

The logs are those of a coordinator that lost the group's partition just after the write of an
assignment failed, with NOT_COORDINATOR, and of the broker that loaded it then. Nothing of the
plan's faults is left.
"""

from collections import defaultdict
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from typing import Any

import pytest

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error
from reference_coordinator.classic.step import step
from reference_coordinator.driving.driver import Write
from reference_coordinator.replay import EpochEvent, ObservedRequest, Outage, Stall
from reports.judgement.coordinators import elections
from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs
from reports.judgement.disturbances import Disturbances
from reports.judgement.findings import Finding, of_group, proven_roots
from reports.judgement.group import check_rows
from reports.judgement.missing.gaps import unlogged
from reports.judgement.recording import Recording, Row
from reports.judgement.run.disturbance import Disturbance
from reports.judgement.run_context import RunContext
from selftest.mutants.log_synthesis import LogSynthesis
from selftest.mutants.synthesized_run import SynthesizedRun
from tests.recorded.logs import RECORDINGS
from tests.reports.alter import explains
from tests.reports.conftest import COORDINATORS

GROUP = "failover"
SUCCESSOR_LASTS_MS = 2_500.0
"""How long the logs go on after the partition was loaded again. Later timers run out, two of them
in the same ms on 3.9.1."""
KNOWN_MS = 1_000.0
"""How long a broker may refuse writes before its coordinator gives the partition up."""


def unplanned_elections(
    epochs: CoordinatorEpochs, partition: int, outages: Sequence[Outage] = (), *other: Any
) -> list[Disturbance]:
    return [*elections.unplanned_elections(epochs, partition, outages, *other)]


def last_sync(recording: Recording) -> ObservedRequest:
    """Return the SyncGroup by which the first coordinator's last generation got its assignment."""
    first = recording.context.epochs.loads[recording.partitions[GROUP]][0].broker
    return max(
        (
            seen
            for seen in recording.evidence(GROUP).requests
            if (seen.api, seen.broker) == ("SYNC_GROUP", first)
            and seen.response_fields.get("errorCode") == 0
            and seen.request["assignments"]
        ),
        key=lambda seen: seen.at_ms,
    )


@dataclass
class FailingWrite(LogSynthesis):
    """The write of one SyncGroup fails, and its broker unloads the partition at `unloads_ms`."""

    failing: str = ""
    unloads_ms: float | None = None

    def read(self) -> None:
        super().read()
        if self.unloads_ms is not None:
            broker = self.failing.partition(":")[0]
            self.plan(EpochEvent(self.unloads_ms, broker, "unloaded"))

    def outcome(self, broker: str, write: Write) -> tuple[Error, bool]:
        if write.request != self.failing:
            return super().outcome(broker, write)
        return Error.NOT_COORDINATOR, False


def epochs_until_the_end(recording: Recording) -> CoordinatorEpochs:
    """Copy the epochs of a recording whose logs end after the partition was loaded again."""
    epochs, partition = deepcopy(recording.context.epochs), recording.partitions[GROUP]
    end_ms = epochs.loads[partition][-1].at_ms + SUCCESSOR_LASTS_MS
    epochs.of_brokers = [replace(one, at_ms=min(one.at_ms, end_ms)) for one in epochs.of_brokers]
    of_partition = [one for one in epochs.of_partitions[partition] if one.at_ms <= end_ms]
    epochs.of_partitions[partition] = of_partition
    return epochs


@dataclass(frozen=True)
class Case:
    """The group's rows with a failed or lost write, and what brokers logged of its partition."""

    run: SynthesizedRun
    sync: ObservedRequest
    epochs: CoordinatorEpochs = field(repr=False)

    @property
    def partition(self) -> int:
        return self.run.original.partitions[GROUP]

    @property
    def rows(self) -> list[Row]:
        end_ms = self.epochs.loads[self.partition][-1].at_ms + SUCCESSOR_LASTS_MS
        last_ms = lambda row: row["at_ms"] if row["template"] else row["logged_ms"]
        return [row for row in self.run.rows_by_group[GROUP] if last_ms(row) <= end_ms]

    @property
    def context(self) -> RunContext:
        """By the plan there was no fault."""
        return replace(self.run.context, epochs=self.epochs, outages=(), kills=(), stalls=())

    def found(self, context: RunContext, *elections: Disturbance) -> list[Finding]:
        """Judge the group, with elections that no fault explains, and what no log may have."""
        tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for name, row in check_rows(context, GROUP, self.rows):
            tables[name].append({"group": GROUP, **row})
        gaps = [unlogged(row) for row in tables["unlogged"]]
        disturbances = Disturbances([*elections, *gaps], {GROUP: tables["groups"][0]})
        return disturbances.judged(of_group(tables))


@cache
def case(name: str, unloads_after_ms: float | None = 20.0) -> Case:
    """Make a run whose broker unloads the partition some time after the write, or never."""
    recording = RECORDINGS[name]
    seen, epochs = last_sync(recording), epochs_until_the_end(recording)
    unloads_ms = None if unloads_after_ms is None else seen.at_ms + unloads_after_ms
    lines = FailingWrite(recording, GROUP, GROUP, step, failing=seen.id, unloads_ms=unloads_ms)
    run = SynthesizedRun(recording.folder, recording, GROUP, tuple(lines.run()))
    of_partition = epochs.of_partitions[recording.partitions[GROUP]]
    of_partition.append(EpochEvent(seen.at_ms + 1.0, seen.broker, AppendError.NOT_LEADER))
    if unloads_ms is not None:
        of_partition.append(EpochEvent(unloads_ms, seen.broker, "unloaded"))
    return Case(run, seen, epochs)


def found_of(one: Case) -> list[Finding]:
    return one.found(one.context, *unplanned_elections(one.epochs, one.partition))


@pytest.fixture(params=COORDINATORS)
def lost(request: pytest.FixtureRequest) -> Case:
    """The write fails at an election."""
    return case(request.param)


@pytest.fixture(params=COORDINATORS)
def kept(request: pytest.FixtureRequest) -> Case:
    """The broker never gives the partition up."""
    return case(request.param, None)


def test_a_write_that_fails_at_an_election_without_a_fault_is_a_doubt(lost: Case) -> None:
    assert not explains(lost.context, GROUP, lost.rows)
    found = found_of(lost)
    assert proven_roots(found) == []
    (cause,) = {one.may_be.cause for one in found if one.may_be is not None}
    who = f"broker {lost.sync.broker} lost its leadership of __consumer_offsets-{lost.partition}"
    assert f"{who} without a fault of the plan" in cause
    assert cause.endswith(": a busy machine or a defect outside the coordinator")


def test_the_fault_of_a_plan_explains_it(lost: Case) -> None:
    judge = replace(lost.context, outages=(Outage(lost.sync.at_ms - 100, 1e15),))
    assert explains(judge, GROUP, lost.rows)
    assert unplanned_elections(lost.epochs, lost.partition, judge.outages) == []


def test_without_an_election_it_is_proven_wrong(kept: Case) -> None:
    """The broker never gave the partition up: another one loads it after its end."""
    assert unplanned_elections(kept.epochs, kept.partition, ()) == []
    assert proven_roots(found_of(kept))


@pytest.mark.parametrize(("after_ms", "may_fail"), [(20.0, True), (990.0, True), (1_010.0, False)])
def test_an_election_explains_what_fails_shortly_before(
    kept: Case, after_ms: float, *, may_fail: bool
) -> None:
    """Its broker unloads the partition so much later; others that stood still, later yet."""
    failed_ms, epochs = kept.sync.answered_ms, deepcopy(kept.epochs)
    unload = EpochEvent(failed_ms + after_ms, kept.sync.broker, "unloaded")
    epochs.of_partitions[kept.partition].append(unload)
    (election,) = unplanned_elections(epochs, kept.partition, ())
    assert election.meets(failed_ms, failed_ms) == may_fail
    stood_still = Stall(kept.sync.broker, failed_ms + 5.0, failed_ms + 45.0)
    (election,) = unplanned_elections(epochs, kept.partition, (), [stood_still])
    assert election.meets(failed_ms, failed_ms) == (after_ms < KNOWN_MS + 40.0)


def test_a_load_that_is_in_no_higher_epoch_is_no_election(lost: Case) -> None:
    """Before epochs were logged the order of times tells."""
    epochs = deepcopy(lost.epochs)
    first, second = epochs.loads[lost.partition]
    assert (first.epoch, second.epoch) == (0, 1)
    elections = []
    for known, later in ((0, 0), (0, None), (None, None)):
        epochs.loads[lost.partition] = [replace(first, epoch=known), replace(second, epoch=later)]
        elections.append([one.broker for one in unplanned_elections(epochs, lost.partition, ())])
    assert elections == [[], [], [first.broker]]


def test_brokers_that_are_shut_down_lose_their_leaderships(lost: Case) -> None:
    unloads_ms = lost.sync.at_ms + 20.0
    look = lambda until_ms: unplanned_elections(lost.epochs, lost.partition, (), (), until_ms)
    assert len(look(unloads_ms + 1.0)) == 1
    assert look(unloads_ms) == []


@pytest.mark.parametrize(("stops_after_ms", "explained"), [(15.0, True), (25.0, False)])
def test_writes_fail_as_a_run_shuts_its_brokers_down(
    lost: Case, stops_after_ms: float, *, explained: bool
) -> None:
    """The coordinator gives the partition up 20 ms after the write, before the stop or since."""
    stopped_ms = lost.sync.at_ms + stops_after_ms
    judge = replace(lost.context, grown_ms=(inf, stopped_ms))
    assert explains(judge, GROUP, lost.rows) == explained


def test_a_broker_that_gives_nothing_up_loses_no_write_as_it_is_shut_down(kept: Case) -> None:
    judge = replace(kept.context, grown_ms=(inf, kept.sync.at_ms - 1_000.0))
    assert not explains(judge, GROUP, kept.rows)
