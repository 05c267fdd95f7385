"""What rebalances cost each group: stops, moved partitions, evictions, fences, causes.

Stops and owners are told by the client history, so a run without one has none of these numbers
(null, which is not nought); the rest comes from the brokers' logs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil, fsum
from operator import attrgetter
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reports.run_folder import PHASES, RunFolder
from reports.scenes import GROUPS_DRAWN
from reports.tables import Tables

Json = dict[str, Any]
Row = Mapping[str, Any]
T = TypeVar("T")

PARTITIONS_DRAWN = 48
"""How many partitions of a topic may be drawn."""
FENCED = "82"
"""FENCED_INSTANCE_ID (KIP-345), at the top of a response or of one of its members or partitions."""
EVICTED = "session_expired"
"""The template of the coordinator's line about a member whose session ran out."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A member without partitions because all of them were taken away (see `ownership.stops`)."""

    group: str
    member: str
    kind: str
    from_ms: float
    stopped_ms: float


@dataclass(frozen=True, slots=True)
class Handover:
    """What members of a group were given at one instant.

    `moved` partitions had another owner before; `unowned_ms` adds up how long each had had none.
    """

    group: str
    at_ms: float
    moved: int
    unowned_ms: float


@dataclass(frozen=True, slots=True)
class Holding:
    """A member's ownership of a partition (see `ownership.intervals`)."""

    group: str
    partition: str
    member: str
    from_ms: float
    until_ms: float
    ended_as: str
    overlap_ms: float
    overlaps: str | None


@dataclass(frozen=True, slots=True)
class Expulsion:
    """An eviction of a member id, without an `api`; or an answer that fences a client."""

    group: str
    at_ms: float
    subject: str
    api: str = ""


@dataclass(frozen=True, slots=True)
class Costs:
    """What the driver needs of the tables, each in order of time.

    `holdings` are those drawn, and those that overlap with an earlier owner's.
    """

    stops: Sequence[Stop] = ()
    handovers: Sequence[Handover] = ()
    holdings: Sequence[Holding] = ()
    expulsions: Sequence[Expulsion] = ()

    def told(self, group: str) -> bool:
        """Whether the client history tells of a group."""
        return any(handover.group == group for handover in self.handovers)

    def of(self, group: str) -> "Costs":
        """Return what concerns one group."""
        return Costs(
            stops=[stop for stop in self.stops if stop.group == group],
            handovers=[handover for handover in self.handovers if handover.group == group],
            holdings=[holding for holding in self.holdings if holding.group == group],
            expulsions=[expulsion for expulsion in self.expulsions if expulsion.group == group],
        )

    @property
    def evictions(self) -> list[Expulsion]:
        """Members whose session ran out."""
        return [expulsion for expulsion in self.expulsions if not expulsion.api]

    @property
    def fences(self) -> list[Expulsion]:
        """Answers FENCED_INSTANCE_ID."""
        return [expulsion for expulsion in self.expulsions if expulsion.api]


def collect(run: RunFolder, tables: Tables) -> Costs:
    """Bring the costs to the driver."""
    groups = [group.name for group in run.experiment.workload.groups][:GROUPS_DRAWN]
    handovers = tables.ownership.groupBy("group", "from_ms").agg(
        F.expr("int(sum(int(moved))) AS moved"), F.expr("round(sum(unowned_ms), 1) AS unowned_ms")
    )
    number = F.expr("try_cast(substring_index(partition, '-', -1) AS INT)")
    drawn = F.col("group").isin(*groups) & (number < PARTITIONS_DRAWN)
    holdings = tables.ownership.where(drawn | (F.col("overlap_ms") > 0))
    return Costs(
        stops=_rows(Stop, tables.stops, "from_ms", "group", "member"),
        handovers=_rows(
            Handover, handovers.withColumnRenamed("from_ms", "at_ms"), "at_ms", "group"
        ),
        holdings=_rows(Holding, holdings, "from_ms", "group", "member", "partition"),
        expulsions=_rows(Expulsion, _expulsions(tables), "at_ms", "group", "subject", "api"),
    )


def _expulsions(tables: Tables) -> DataFrame:
    evictions = tables.transitions.where(F.col("template") == EVICTED).selectExpr(
        "group", "at_ms", "member AS subject", "'' AS api"
    )
    fenced = F.col("readable") & F.col("response").rlike(f'"errorCode":{FENCED}[,}}]')
    fences = tables.requests.where(fenced).select("group", "answered_ms", "client_id", "api")
    return evictions.union(fences)


def _rows(kind: type[T], table: DataFrame, *order: str) -> list[T]:
    """Bring rows to the driver, and sort them there: few as they are, Spark would take longer."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    found = [kind(*row) for row in table.select(*names).collect()]
    return sorted(found, key=attrgetter(*order))


def add(verdict: Json, costs: Costs, run: RunFolder, observed: Sequence[Row]) -> None:
    """Put the costs of each group beside what the verdict says of it."""
    for name in verdict["groups"]:
        verdict["groups"][name] |= _numbers(name, costs, run, observed)


def _numbers(name: str, costs: Costs, run: RunFolder, observed: Sequence[Row]) -> Json:
    """Count by phase; stops are those that began in the impact phase, in ms over all members."""
    mine, told = costs.of(name), costs.told(name)
    moved = dict.fromkeys(PHASES, 0)
    for handover in mine.handovers:
        moved[run.phase_at(handover.at_ms)] += handover.moved
    begun = [row for row in observed if row["group"] == name and row["started_ms"] is not None]
    return {
        "by_cause": by_cause(run, begun),
        "stop_the_world_ms": summary(impact(run, mine.stops)) if told else None,
        "partitions_moved": moved | {"total": sum(moved.values())} if told else None,
        "evictions": _by_phase(run, mine.evictions),
        "fences": _by_phase(run, mine.fences),
    }


def by_cause(run: RunFolder, rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Count rebalances that began, by phase and reason class."""
    counts = Counter((run.phase_at(row["started_ms"]), row["reason"] or "none") for row in rows)
    return {
        phase: {reason: counts[phase, reason] for at, reason in sorted(counts) if at == phase}
        for phase in PHASES
    }


def impact(run: RunFolder, stops: Iterable[Stop]) -> list[Stop]:
    """Return the stops that began while the faults went on."""
    return [stop for stop in stops if run.phase_at(stop.from_ms) == "impact"]


def summary(stops: Sequence[Stop]) -> Json:
    """Sum stops up: how many, percentiles (nearest rank), the longest, all added up, in ms."""
    lengths = sorted(stop.stopped_ms for stop in stops)
    rank = lambda share: lengths[ceil(share * len(lengths)) - 1] if lengths else 0.0
    return {
        "stops": len(lengths),
        "p50": rank(0.5),
        "p99": rank(0.99),
        "max": rank(1.0),
        "total": round(fsum(lengths), 1),
    }


def _by_phase(run: RunFolder, expulsions: Sequence[Expulsion]) -> dict[str, int]:
    phases = [run.phase_at(expulsion.at_ms) for expulsion in expulsions]
    return {phase: phases.count(phase) for phase in PHASES} | {"total": len(phases)}
