"""From lines to tables: the whole Spark pipeline in the order of its stages."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay import Evidence, Stall
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
"""Where in a run folder the captured lines are."""
COLUMNS = {**broker_log.TABLES, **group.TABLES, "ownership": ownership.OWNERSHIP}
"""The stored tables, and their columns."""


@dataclass(frozen=True)
class Tables:
    """The stored tables of a run; what is not stored is small.

    What is small, or has to be looked up in a few places, is read from here without Spark.
    """

    folder: Path
    lives: Sequence[Json]
    stops: Sequence[Json]
    judge: Judge
    standstills: Sequence[Standstill] = ()
    """When brokers stood still, proven, and by no fault of the journal."""

    def stored(self, name: str) -> ds.Dataset:
        """Return a table."""
        return parts.stored(self.folder / name, COLUMNS[name])

    def rows(self, name: str, where: ds.Expression | None = None) -> list[Json]:
        """Read rows of a table."""
        found: list[Json] = self.stored(name).to_table(filter=where).to_pylist()
        return found

    def rows_of(self, name: str, groups: Sequence[str]) -> list[Json]:
        """Read the rows of a table that are about some groups."""
        return self.rows(name, ds.field("group").isin(groups))

    def evidence(self, name: str) -> Evidence:
        """Return a group's evidence, as the oracle was given it."""
        return self.judge.evidence(name, self._told(name))

    def explained_by(self, name: str, stalls: Iterable[Stall]) -> bool:
        """Tell whether a group is explained if brokers stood still at other times, too."""
        judge = replace(self.judge, stalls=(*self.judge.stalls, *stalls))
        return judge.explains(name, self._told(name))

    def _told(self, name: str) -> list[Json]:
        mine = ds.field("group") == name
        asked = [row | {"template": None} for row in self.rows("requests", mine)]
        return [*asked, *self.rows("transitions", mine)]

    @cached_property
    def fates(self) -> Counter[str]:
        """How many lines were used, irrelevant, or rejected."""
        return Counter(
            {fate: sum(life[fate] for life in self.lives) for fate in broker_log_pass.FATES}
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
    """Compute every table of a run, its lines captured before, and store it in its folder.

    It is held to `profile`; KIP-345 has `promised` others where the release has its own `rules`.
    """
    folder = run.path / "tables"
    progress("reading the lines")
    read_back = lambda name: spark.read.schema(COLUMNS[name]).parquet(str(folder / name))
    lines = spark.read.schema(broker_log_pass.LINES).parquet(str(run.path / LINES))
    lives = broker_log_pass.read_logs(lines, captured.brokers, clocks, folder)
    all_there(folder, "coverage", captured.lines)
    progress("replaying every request through the reference coordinator")
    told = parts.stored(folder / "transitions", broker_log.TRANSITIONS)
    of_offices = told.to_table(
        list(coordinator_epochs.COLUMNS), filter=ds.field("template").isin(coordinator_epochs.LINES)
    )
    most = max((life["partition"] for life in lives if life["partition"] is not None), default=None)
    standstills = _standstills(folder, run)
    judge = Judge(
        run.grammar,
        profile,
        promised,
        coordinator_epochs.offices(
            of_offices.to_pylist(), lives, None if most is None else most + 1, run.openings
        ),
        (*run.stalls, *as_stalls(standstills)),
        run.outages,
        rules=rules,
    )
    evidence = group_pass.evidence_rows(read_back("requests"), read_back("transitions"))
    all_there(folder, "groups", group_pass.run(evidence, judge, folder))
    progress("telling who owned what")
    membership = ownership.membership(spark, run.path / ownership.HISTORY)
    owned = ownership.intervals(membership)
    owned.write.mode("overwrite").parquet(str(folder / "ownership"))
    stops = [row.asDict() for row in ownership.stops(membership).collect()]
    return Tables(folder, lives, stops, judge, standstills)


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


def all_there(folder: Path, name: str, count: int) -> None:
    """Make sure that a table has as many rows as Spark's tasks were given to write."""
    found = parts.stored(folder / name, COLUMNS[name]).count_rows()
    if found != count:
        raise EvidenceError(
            f"{folder / name}: {found} rows of {count}; Spark's workers write there themselves:"
            " let them have the run's folder on a disk that they share"
        )


def parser_of(run: RunFolder) -> Parser:
    """Return what understands the lines of a run."""
    return Parser(run.grammar, run.numbered_lines)
