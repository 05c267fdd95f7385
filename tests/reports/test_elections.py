"""One coordinator at a time: loads added to recorded evidence, and loads that no log bears out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pytest

from reference_coordinator.replay import Parting, Stall
from reference_coordinator.timing import RECONNECTS_MS
from reports.judgement.coordinators.coordinator_epochs import (
    EPOCH_TEMPLATES,
    CoordinatorEpochs,
    coordinator_epochs,
)
from reports.judgement.coordinators.elections import doubts, unexpected_loads
from reports.judgement.recording import Recording
from reports.judgement.timelines.member_lines import OF_LOADS
from tests.recorded.logs import RECORDINGS
from tests.reports.alter import compared
from tests.reports.conftest import COORDINATORS

Row = dict[str, Any]
LAST_KNOWN_MS = 1_000.0
"""Until when a coordinator may not know of its successor: `LEARNS_MS` and the slack of timers."""
LAST_LINE = 1_000_000
"""Beyond the last line of a recorded log."""
BEGIN = ("load_scheduled", "loading")
"""Templates of the lines about a load before its last one (Scala)."""


@dataclass(frozen=True)
class Group:
    """The group `static`, which one broker coordinates all the time."""

    recording: Recording

    @property
    def rows(self) -> Sequence[Any]:
        """Everything that the logs tell of the group."""
        return self.recording.rows_by_group["static"]

    @property
    def partition(self) -> int:
        """Its partition."""
        return self.recording.partitions["static"]

    @property
    def load(self) -> Row:
        """The line about the load by its coordinator."""
        loads = (
            dict(line.row)
            for line in self.recording.lines
            if (line.template, line.broker) == ("loaded", self.rows[0]["broker"])
        )
        mine = (row for row in loads if row["partition"] == self.partition)
        return max(mine, key=lambda row: row["at_ms"])

    @property
    def last_ms(self) -> float:
        """When its coordinator last took a request of it."""
        return max(row["at_ms"] for row in self.rows if row["template"] is None)

    def epochs(self, *added: Row, partings: tuple[Parting, ...] = ()) -> CoordinatorEpochs:
        """Return the coordinator epochs with some loads added."""
        lines = [line.row for line in self.recording.lines if line.template in EPOCH_TEMPLATES]
        processes = self.recording.logs.merged.processes
        partitions = self.recording.context.epochs.partitions
        in_order = sorted(added, key=lambda row: row["at_ms"])
        numbered = ({**row, "line": LAST_LINE + n} for n, row in enumerate(in_order, 1))
        return coordinator_epochs([*lines, *numbered], processes, partitions, partings=partings)

    def other_load(self, at_ms: float, epochs: int) -> Row:
        """Return the line of another broker about a load in a later (or earlier) epoch."""
        load = self.load
        other = "1" if load["broker"] != "1" else "2"
        return {**load, "broker": other, "at_ms": at_ms, "epoch": load["epoch"] + epochs}

    def slow_load(self, scheduled_ms: float, epochs: int, lasts_ms: float) -> list[Row]:
        """Return the lines of another broker (Scala) about a load that takes some time."""
        loaded = self.other_load(scheduled_ms + lasts_ms, epochs)
        begun = [{**loaded, "at_ms": scheduled_ms, "template": name} for name in BEGIN]
        return [*({**line, "epoch": None} for line in begun), loaded]

    def unload(self, at_ms: float) -> Row:
        """Return the line of its coordinator that gives the partition up."""
        return {**self.load, "template": "unload_started", "at_ms": at_ms}

    def findings(self, epochs: CoordinatorEpochs, *stalls: Stall) -> list[tuple[str, Row]]:
        """Judge the group; lines about what the added load loaded are not of interest."""
        judge = replace(self.recording.context, epochs=epochs, stalls=stalls)
        found = compared(judge, "static", self.rows)
        wrong = ((name, row) for name, row in found if row.get("outcome") != "match")
        return [(name, row) for name, row in wrong if row.get("kind") not in OF_LOADS]

    def doubted(self, *added: Row, partings: tuple[Parting, ...] = ()) -> list[str]:
        return [*doubts(self.epochs(*added, partings=partings), ())]

    def behind(self, *added: Row, partings: tuple[Parting, ...] = ()) -> list[Row]:
        """Return the loads in an epoch that was over."""
        return [*unexpected_loads(self.epochs(*added, partings=partings), self.partition, ())]


@pytest.fixture(params=COORDINATORS)
def group(request: pytest.FixtureRequest) -> Group:
    return Group(RECORDINGS[request.param])


def test_recorded_loads_follow_from_elections(group: Group) -> None:
    epochs = group.epochs()
    assert list(doubts(epochs, ())) == []
    assert group.findings(epochs) == []


@pytest.mark.parametrize("before_ms", [1.0, 980.0])
def test_a_coordinator_may_not_know_its_successor_yet(group: Group, before_ms: float) -> None:
    epochs = group.epochs(group.other_load(group.last_ms - before_ms, 1))
    assert group.findings(epochs) == []


@pytest.mark.parametrize("before_ms", [1_600.0, 10_000.0])
def test_a_coordinator_that_was_replaced_answers_no_more(group: Group, before_ms: float) -> None:
    at_ms = group.last_ms - before_ms
    epochs = group.epochs(group.other_load(at_ms, 1))
    violations = [row for name, row in group.findings(epochs) if name == "violations"]
    first = min(violations, key=lambda row: row["at_ms"])
    assert "NOT_COORDINATOR" in first["expected"]
    assert first["searched"]
    assert first["at_ms"] > at_ms + LAST_KNOWN_MS - 10.0
    taken = [row for row in group.rows if row["template"] is None]
    after = [row["answered_ms"] for row in taken if row["earliest_ms"] > at_ms + LAST_KNOWN_MS]
    assert first["at_ms"] <= min(after)


@pytest.mark.parametrize(("before_ms", "answers_on"), [(2_980.0, True), (3_600.0, False)])
def test_a_broker_that_has_to_find_its_zookeeper_again_learns_later(
    group: Group, before_ms: float, *, answers_on: bool
) -> None:
    epochs = group.epochs(group.other_load(group.last_ms - before_ms, 1))
    assert group.findings(epochs) != []
    found = group.findings(replace(epochs, reconnects_ms=RECONNECTS_MS))
    assert (found == []) == answers_on


def test_a_stall_excuses_a_replaced_coordinator(group: Group) -> None:
    at_ms = group.last_ms - 3_000.0
    epochs = group.epochs(group.other_load(at_ms, 1))
    held_up = Stall(group.load["broker"], at_ms, at_ms + 2_500.0)
    assert group.findings(epochs, held_up) == []
    elsewhere = replace(held_up, broker=group.other_load(0.0, 1)["broker"], proven=False)
    assert group.findings(epochs, elsewhere) != []


@pytest.mark.parametrize(("learns_ms", "answers_on"), [(10.0, True), (-1_600.0, False)])
def test_a_coordinator_that_is_parted_answers_until_it_can_learn(
    group: Group, learns_ms: float, *, answers_on: bool
) -> None:
    """It is replaced 3 s before its last answer; the time to catch up ends around that."""
    at_ms = group.last_ms - 3_000.0
    load, mine = group.other_load(at_ms, 1), group.load["broker"]
    parting = Parting(mine, at_ms - 9_000.0, inf, at_ms, group.last_ms + learns_ms)
    found = group.findings(group.epochs(load, partings=(parting,)))
    assert (found == []) == answers_on
    assert answers_on or any("NOT_COORDINATOR" in row["expected"] for _, row in found)
    of_another = replace(parting, broker=load["broker"])
    assert group.findings(group.epochs(load, partings=(of_another,))) != []


@pytest.mark.parametrize("late_ms", [-20.0, 600.0])
def test_a_broker_that_loads_gives_nothing_up_meanwhile(group: Group, late_ms: float) -> None:
    """A broker at a load of 2 s answers for that much longer, as it would if it stood still."""
    over_ms = group.last_ms - LAST_KNOWN_MS - 2_000.0 - late_ms
    higher = group.other_load(over_ms, 1)
    loading = [
        {**line, "broker": group.load["broker"], "partition": group.partition + 1}
        for line in group.slow_load(over_ms, 0, 2_000.0)
    ]
    scala, java = group.epochs(higher, *loading), group.epochs(higher, *loading[1:])
    assert (group.findings(scala) == []) == (late_ms < 0)
    assert group.findings(java) != []


@pytest.mark.parametrize(("after_ms", "late"), [(0.0, 0), (980.0, 0), (1_020.0, 1), (3_000.0, 1)])
def test_the_broker_before_unloads_in_time(group: Group, after_ms: float, late: int) -> None:
    load = group.other_load(group.last_ms - 10_000.0, 1)
    assert len(group.doubted(load, group.unload(load["at_ms"] + after_ms))) == late
    parted = Parting(group.load["broker"], *(load["at_ms"] + at for at in (0.0, 0.0, 2e3, 5e3)))
    afterwards = group.unload(parted.until_ms + after_ms)
    assert len(group.doubted(load, afterwards, partings=(parted,))) == late
    assert len(group.doubted(load, afterwards)) == 1


def test_a_coordinator_that_ends_may_have_been_replaced_just_before(group: Group) -> None:
    assert group.doubted(group.other_load(group.last_ms - 400.0, 1)) == []


def test_a_load_needs_an_election(group: Group) -> None:
    load, mine = group.other_load(group.last_ms - 3_000.0, 1), group.load
    (doubt,) = group.doubted(load)
    assert doubt.startswith(f"broker {load['broker']} loaded __consumer_offsets-{group.partition}")
    assert f"nothing shows that broker {mine['broker']} gave it up" in doubt
    again = {**mine, "at_ms": mine["at_ms"] + 5_000.0, "epoch": mine["epoch"] + 1}
    (doubt,) = group.doubted(again)
    assert doubt.endswith("nothing shows that it gave it up")


@pytest.mark.parametrize(("after_ms", "behind"), [(500.0, 0), (990.0, 0), (1_010.0, 1), (9e3, 1)])
def test_epochs_do_not_go_backwards(group: Group, after_ms: float, behind: int) -> None:
    """A load may last beyond a higher epoch: what counts is when it was scheduled."""
    at_ms = group.load["at_ms"] + after_ms
    load = group.other_load(at_ms, -1)
    found = group.behind(load)
    assert len(found) == behind
    for row in found:
        assert f"in epoch {load['epoch']} after epoch {group.load['epoch']}" in row["subject"]
    assert len(group.behind(*group.slow_load(at_ms, -1, lasts_ms=3_000.0))) == behind


def test_a_broker_that_was_parted_may_load_in_an_epoch_that_is_over(group: Group) -> None:
    """It learns of the elections meanwhile one after the other."""
    at_ms = group.load["at_ms"] + 5_000
    load = group.other_load(at_ms, -1)
    parting = Parting(load["broker"], at_ms - 9_000, at_ms - 8_000, at_ms - 1_000, at_ms + 1_000)
    assert group.behind(load) != []
    assert group.behind(load, partings=(parting,)) == []


def test_a_load_that_waits_behind_another_was_scheduled_first(group: Group) -> None:
    at_ms = group.load["at_ms"]
    first, second = group.slow_load(at_ms, -2, 1_500.0), group.slow_load(at_ms + 100.0, -1, 3_000.0)
    loads = group.epochs(*first, *second).loads[group.partition]
    assert [load.scheduled_ms - at_ms for load in loads[-2:]] == [0.0, 100.0]
    ignored = {**second[-1], "template": "load_ignored", "at_ms": at_ms + 200.0}
    loads = group.epochs(*first, second[0], ignored).loads[group.partition]
    assert loads[-1].scheduled_ms == at_ms


def test_epochs_of_one_broker_process_never_go_backwards(group: Group) -> None:
    load = group.load
    lower = {**load, "at_ms": load["at_ms"] + 1.0, "epoch": load["epoch"] - 1}
    assert len(group.behind(lower)) == 1


def test_a_broker_that_starts_may_know_old_metadata(group: Group) -> None:
    load = group.load
    later = load["at_ms"] + 5_000.0
    started = {**load, "at_ms": later, "template": "starting", "partition": None, "epoch": None}
    lower = {**load, "at_ms": later + 50.0, "epoch": load["epoch"] - 1}
    assert group.behind(started, lower) == []
    assert any("had begun" in doubt for doubt in group.doubted(started, lower))
