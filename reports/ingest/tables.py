"""From captured lines to tables: the Spark pipeline in the order of its stages."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay import Evidence
from reports.ingest import broker_log_pass, group_pass, ownership, parts
from reports.ingest.capture import Captured
from reports.judgement import broker_log, coordinator_epochs, group
from reports.judgement.broker_activity import as_stalls, lines_of, proven, unjournalled
from reports.judgement.broker_log import Clocks
from reports.judgement.errors import EvidenceError
from reports.judgement.group import Judge
from reports.judgement.machine_log import Standstill
from reports.judgement.parsing import Parser
from reports.judgement.run_folder import RunFolder

Progress = Callable[[str], None]
Json = dict[str, Any]

LINES = "tables/lines.parquet"
"""The captured lines, in a run folder."""
COLUMNS = {**broker_log.TABLES, **group.TABLES, "ownership": ownership.OWNERSHIP}
"""The stored tables, and their columns."""


@dataclass(frozen=True)
class Tables:
    """The stored tables of a run, read without Spark, and the few results that are not stored.

    `processes` are rows of `broker_log_pass.READ`, `stops` rows of `ownership.stops`.
    """

    folder: Path
    processes: Sequence[Json]
    stops: Sequence[Json]
    judge: Judge
    standstills: Sequence[Standstill] = ()
    """When brokers stood still, proven, and by no fault of the journal."""

    def stored(self, name: str) -> ds.Dataset:
        """Return a stored table."""
        return parts.stored(self.folder / name, COLUMNS[name])

    def rows(self, name: str, where: ds.Expression | None = None) -> list[Json]:
        """Read rows of a table."""
        found: list[Json] = self.stored(name).to_table(filter=where).to_pylist()
        return found

    def rows_of(self, name: str, groups: Sequence[str]) -> list[Json]:
        """Read the rows of a table that belong to some groups."""
        return self.rows(name, ds.field("group").isin(groups))

    def evidence(self, name: str) -> Evidence:
        """Return a group's evidence, as the oracle was given it."""
        return self.judge.evidence(name, self.rows_of_group(name))

    def rows_of_group(self, name: str) -> list[Json]:
        """Read the rows of `requests` and `transitions` about a group, as `Judge` takes them."""
        mine = ds.field("group") == name
        requests = [row | {"template": None} for row in self.rows("requests", mine)]
        return [*requests, *self.rows("transitions", mine)]

    @cached_property
    def line_counts(self) -> Counter[str]:
        """How many lines were used, irrelevant and rejected."""
        return Counter(
            {status: sum(one[status] for one in self.processes) for status in broker_log.STATUSES}
        )


def build(
    spark: SparkSession,
    run: RunFolder,
    captured: Captured,
    clocks: Clocks,
    profile: Profile,
    promised: Profile,
    rules: Profile,
    progress: Progress,
) -> Tables:
    """Compute every table of a run from its captured lines, and store it in the run folder.

    The run is judged by `profile`. `rules` are the release's own, `promised` those with every
    promise of KIP-345 kept.
    """
    folder = run.path / "tables"
    progress("reading the lines")
    read_back = lambda name: spark.read.schema(COLUMNS[name]).parquet(str(folder / name))
    lines = spark.read.schema(broker_log_pass.LINES).parquet(str(run.path / LINES))
    processes = broker_log_pass.read_logs(lines, captured.brokers, clocks, folder)
    check_row_count(folder, "coverage", captured.lines)
    progress("replaying every request through the reference coordinator")
    lines_read = parts.stored(folder / "transitions", broker_log.TRANSITIONS)
    epoch_lines = lines_read.to_table(
        list(coordinator_epochs.COLUMNS), filter=ds.field("template").isin(coordinator_epochs.LINES)
    )
    named = (one["partition"] for one in processes if one["partition"] is not None)
    most = max(named, default=None)
    standstills = _standstills(folder, run)
    judge = Judge(
        run.grammar,
        profile,
        promised,
        coordinator_epochs.coordinator_epochs(
            epoch_lines.to_pylist(),
            processes,
            None if most is None else most + 1,
            run.requests_enabled,
        ),
        (*run.stalls, *as_stalls(standstills)),
        run.outages,
        rules=rules,
    )
    evidence = group_pass.evidence_rows(read_back("requests"), read_back("transitions"))
    check_row_count(folder, "groups", group_pass.run(evidence, judge, folder))
    progress("computing the owners of partitions")
    membership = ownership.membership(spark, run.path / ownership.HISTORY)
    owned = ownership.intervals(membership)
    owned.write.mode("overwrite").parquet(str(folder / "ownership"))
    stops = [row.asDict() for row in ownership.stops(membership).collect()]
    return Tables(folder, processes, stops, judge, standstills)


ACTIVITY = ("broker", "arrived_ms", "earliest_ms", "at_ms", "answered_ms", "logged_ms")
"""The columns of the table `requests` that tell when brokers worked."""


def _standstills(folder: Path, run: RunFolder) -> list[Standstill]:
    """Return when brokers stood still: sources say so, and the brokers' logs do not contradict."""
    claimed = unjournalled(run.standstills, run.stalls)
    if not claimed:
        return []
    from_ms, until_ms = min(c.from_ms for c in claimed), max(c.until_ms for c in claimed)
    return proven(claimed, lines_of(*activity(folder, from_ms, until_ms)))


def activity(folder: Path, from_ms: float, until_ms: float) -> tuple[list[Json], list[Json]]:
    """Read what brokers did in a time: rows of `requests` (some columns) and of `transitions`."""
    found = []
    for name, at, columns in (
        ("requests", "logged_ms", ACTIVITY),
        ("transitions", "at_ms", ("broker", "at_ms")),
    ):
        within = (ds.field(at) >= from_ms) & (ds.field(at) <= until_ms)
        stored = parts.stored(folder / name, COLUMNS[name])
        found.append(stored.to_table(list(columns), filter=within).to_pylist())
    return found[0], found[1]


def check_row_count(folder: Path, name: str, count: int) -> None:
    """Raise EvidenceError unless a table has as many rows as Spark's tasks had to write."""
    found = parts.stored(folder / name, COLUMNS[name]).count_rows()
    if found != count:
        raise EvidenceError(
            f"{folder / name}: {found} rows of {count}; Spark's workers write this folder:"
            " put the run's folder on a disk that they share"
        )


def parser_of(run: RunFolder) -> Parser:
    """Return the parser of a run's lines."""
    return Parser(run.grammar, run.numbered_lines)
