"""From log files to tables: the Spark pipeline in the order of its stages."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay import Evidence, Stall
from reports.ingest import (
    bundle,
    group_pass,
    line_pass,
    log_files,
    ownership,
    wire_marks,
    witnesses,
)
from reports.judgement import group
from reports.judgement.case import NEVER_MS
from reports.judgement.clients.known_clients import known_clients
from reports.judgement.coordinators import coordinator_epochs, wire_epochs
from reports.judgement.digest import Digester
from reports.judgement.group import Judge
from reports.judgement.lateness.broker_activity import as_stalls, lines_of, stood_still
from reports.judgement.log import broker_log
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.log.processes import STATUSES, is_patchy
from reports.judgement.missing.gaps import ENDS_OF_GROUPS, ENDS_OF_OFFSETS, REMOVED_NONE
from reports.judgement.run import deliveries
from reports.judgement.run.deliveries import ACTED, NOTHING_HELD, Deliveries
from reports.judgement.run.evidence_level import Level
from reports.judgement.run.machine_log import Standstill
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.timelines.fenced_lines import FENCED, fenced_lines
from reports.judgement.witnesses import Witnesses

Progress = Callable[[str], None]
Where = Callable[[str], str]
"""Gives a condition on the rows of a table in SQL, its columns written after the given prefix."""
Json = dict[str, Any]
GAPS = 1_000
"""How many rejected lines, and how many rows of the table `lost`, are read."""


def every_row(_: str) -> str:
    """Give the condition that every row meets."""
    return "true"


COLUMNS = {**broker_log.TABLES, **group.TABLES, "ownership": ownership.OWNERSHIP}
"""The tables and their columns."""
STORED = tuple(name for name in COLUMNS if name != "digests")
"""The tables that are stored: all but what is counted of each group."""

ROWS_OF_FILES = 100_000
"""How many rows one file of each of these tables has together, about."""


class Rules(NamedTuple):
    """The rules that a run is judged by; those with every promise of KIP-345 kept; the release's.

    See `Judge`.
    """

    profile: Profile
    promised: Profile
    own: Profile


@dataclass(frozen=True)
class Tables:
    """The tables of a run, read through Spark, and the few results that are not stored.

    `lines` are the tables of the line pass, `judged` is the bundle of the group pass. `processes`
    are the rows of `line_pass.read_logs`.
    """

    lines: Mapping[str, DataFrame]
    judged: DataFrame
    processes: Sequence[Json]
    judge: Judge
    standstills: Sequence[Standstill] = ()
    """When brokers stood still, proven, and by no fault of the journal."""
    places: LogPlaces = field(default_factory=LogPlaces)
    witnesses: Witnesses | None = None
    """The brokers' logs compared with what the tap saw, where there are both."""

    def frame(self, name: str) -> DataFrame:
        """Return a table, with the columns that `COLUMNS` names."""
        return self.lines[name] if name in self.lines else bundle.table(self.judged, name)

    def rows(self, name: str, where: str | None = None) -> list[Json]:
        """Read rows of a table; `where` is a condition in SQL."""
        frame = self.frame(name)
        return rows_of(frame if where is None else frame.where(where))

    def several(self, wheres: Mapping[str, Where]) -> dict[str, list[Json]]:
        """Read rows of several tables that are made of groups, in one job."""
        found: dict[str, list[Json]] = {name: [] for name in wheres}
        conditions = (f"`table` = '{name}' AND {of(f'`{name}`.')}" for name, of in wheres.items())
        if wheres:
            some = self.judged.where(" OR ".join(map("({})".format, conditions)))
            for row in rows_of(some.select("table", *(f"`{name}`" for name in wheres))):
                found[row["table"]].append(row[row["table"]])
        return found

    def store(self, output: str, rows: int) -> None:
        """Store the tables that are made of groups under a URI.

        Few rows are one file a table: a task costs more than to write them.
        """
        made = self.judged.coalesce(1 + rows // ROWS_OF_FILES)
        bundle.write(made, [name for name in group.TABLES if name in STORED], output)

    @cached_property
    def rejected(self) -> list[Json]:
        """Rows of `coverage` of lines that are not understood, at most GAPS."""
        if not self.line_counts["rejected"]:
            return []
        return self._first("coverage", "status = 'rejected'", "at_ms", "broker", "line")

    @cached_property
    def lost(self) -> list[Json]:
        """Rows of `lost`, at most GAPS."""
        return self._first("lost", "true", "at_ms", "broker", "line")

    @cached_property
    def ends_of_groups(self) -> list[Json]:
        """Rows of `transitions` about groups and offsets that were deleted, at most GAPS."""
        of_groups, of_offsets = (
            among("template", ENDS_OF_GROUPS),
            among("template", ENDS_OF_OFFSETS),
        )
        some = f"{of_offsets} AND NOT message RLIKE '{REMOVED_NONE}'"
        return self._first("transitions", f"{of_groups} OR ({some})", "at_ms")

    def _first(self, name: str, where: str, *order: str) -> list[Json]:
        """Read the first rows of a table in some order, at most GAPS: by brokers and lines."""
        first = rows_of(self.lines[name].where(where).orderBy(*order).limit(GAPS))
        return sorted(first, key=itemgetter("broker", "line"))

    def rows_of(self, name: str, groups: Sequence[str]) -> list[Json]:
        """Read the rows of a table that belong to some groups."""
        return self.rows(name, among("group", groups))

    def evidence(self, name: str) -> Evidence:
        """Return a group's evidence, as the oracle was given it."""
        return self.judge.evidence(name, self.rows_of_group(name))

    def rows_of_group(self, name: str) -> list[Json]:
        """Read the rows of `requests` and `transitions` about a group, as `Judge` takes them."""
        requests = [row | {"template": None} for row in self.rows_of("requests", [name])]
        return [*requests, *self.rows_of("transitions", [name])]

    @cached_property
    def line_counts(self) -> Counter[str]:
        """How many lines were used, irrelevant and rejected."""
        return Counter({status: sum(one[status] for one in self.processes) for status in STATUSES})


def build(
    spark: SparkSession,
    run: RunFolder,
    source: str,
    target: str,
    rules: Rules,
    progress: Progress,
    history: DataFrame | None,
) -> Tables:
    """Compute every table of a run whose evidence is at `source`, and store it under `target`.

    Both are URIs. `history` are the lines of its client history, if there is one.
    """
    progress("reading the lines")
    parser = run.parser
    handed_on = _deliveries(spark, source, run)
    processes, places = line_pass.read_logs(spark, source, parser, f"{target}/tables", handed_on)
    lines = {
        name: bundle.stored(spark, columns, name, f"{target}/tables")
        for name, columns in broker_log.TABLES.items()
    }
    progress("replaying every request through the reference coordinator")
    wanted = among("template", (*coordinator_epochs.LINES, FENCED))
    of_brokers = rows_of(lines["transitions"].where(wanted).select(*coordinator_epochs.COLUMNS))
    named = (one["partition"] for one in processes if one["partition"] is not None)
    most = max(named, default=None)
    pauses, standstills = _stood_still(lines["requests"], lines["transitions"], run)
    judge = Judge(
        run.grammar,
        rules.profile,
        rules.promised,
        coordinator_epochs.coordinator_epochs(
            [row for row in of_brokers if row["template"] != FENCED],
            processes,
            None if most is None else most + 1,
            run.requests_enabled,
            run.reconnects_ms,
            run.outside.coordinated_before if run.outside else {},
            run.partings,
        ),
        (*pauses, *as_stalls(standstills)),
        run.outages,
        first_alone=is_patchy(processes),
        rules=rules.own,
        clients=known_clients(run.experiment, handed_on),
        kills=run.killed_between,
        unmeasured=run.unmeasured_kills,
        digester=Digester.of(run),
        partitions=run.first_partitions,
        absences=run.absences,
        broken_wires=run.broken_wires,
        has_history=run.has_history,
        fenced=fenced_lines(of_brokers, run.grammar),
        grown_ms=run.grown_ms,
        deleted=run.deleted,
        wire=wire_epochs.of_groups(wire_marks.rows(lines["requests"], run), run.restarts)
        if run.level is Level.WIRE
        else None,
    )
    evidence = group_pass.evidence_rows(lines["requests"], lines["transitions"])
    if history is not None:
        evidence = evidence.unionAll(group_pass.event_rows(history))
    used = sum(process["used"] for process in processes)
    judged = group_pass.judged(evidence, judge, used).persist()
    both = witnesses.compared(spark, run, source, target, lines["requests"], places)
    return Tables(lines, judged, processes, judge, standstills, places, both)


def _deliveries(spark: SparkSession, source: str, run: RunFolder) -> Deliveries:
    """Read what the tap held back of answers, if a fault of the run let it."""
    if not run.experiment.needs_tap:
        return NOTHING_HELD
    lines = log_files.lines(spark, source, Level.WIRE.folder)
    ruled = lines.select(F.col("value").cast("string")).where(F.col("value").contains(ACTED))
    return deliveries.read(row["value"] for row in ruled.toArrow().to_pylist())


def _stood_still(
    requests: DataFrame, transitions: DataFrame, run: RunFolder
) -> tuple[Sequence[Stall], list[Standstill]]:
    """Return when brokers stood still: paused by faults, and otherwise."""
    said: list[Stall | Standstill] = [*run.stalls, *run.standstills]
    if not said:
        return (), []
    from_ms, until_ms = min(s.from_ms for s in said), max(s.until_ms for s in said)
    within = lambda at: f"{at} BETWEEN {from_ms!r}D AND {min(until_ms, NEVER_MS)!r}D"
    lines = lines_of(
        rows_of(requests.where(within("logged_ms")).select("broker", "logged_ms")),
        rows_of(transitions.where(within("at_ms")).select("broker", "at_ms")),
    )
    return stood_still(run.stalls, run.standstills, lines)


def rows_of(frame: DataFrame) -> list[Json]:
    """Bring the rows of a table to the driver, in one job."""
    found: list[Json] = frame.toArrow().to_pylist()
    return found


def among(column: str, values: Iterable[str]) -> str:
    """Write the condition that a column holds one of some values, as SQL."""
    quoted = ", ".join(f"'{_escaped(value)}'" for value in values)
    return f"{column} IN ({quoted})" if quoted else "false"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
