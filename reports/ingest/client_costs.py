"""What rebalances cost as clients saw it: the client history in; stops, handovers and owners out.

Nothing of it depends on the brokers' logs, so that it may be computed beside them.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from math import inf
from operator import attrgetter
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.ingest import ownership
from reports.ingest.log_files import literal
from reports.ingest.tables import among, rows_of
from reports.judgement.costs import Costs, Expulsion, Handover, Holding, HubGaps, Stop

Row = Mapping[str, Any]
T = TypeVar("T")


def client_costs(
    spark: SparkSession,
    history: DataFrame | None,
    table: str,
    groups: Sequence[str],
    partitions: int,
) -> Costs:
    """Compute what clients saw by the lines of a history; store the table `ownership` at a URI.

    Of holdings those of `groups` in the first `partitions` of each topic are given, and those that
    overlap with an earlier owner's, of every group. Without a history there are none.
    """
    if history is None:
        spark.createDataFrame([], ownership.OWNERSHIP).write.mode("overwrite").parquet(table)
        return Costs()
    membership = ownership.membership(history)
    with ThreadPoolExecutor(2) as beside:
        stops = beside.submit(lambda: rows_of(ownership.stops(membership)))
        gaps = beside.submit(hub_gaps, history)
        ownership.intervals(membership).write.mode("overwrite").parquet(table)
        owned = spark.read.schema(ownership.OWNERSHIP).parquet(literal(table))
        found = costs(owned, stops.result(), groups, partitions)
        return replace(found, hub_gaps=gaps.result())


def hub_gaps(history: DataFrame) -> HubGaps | None:
    """Sum up how late gevent's hub ran, by the lines of a history; None if no line tells."""
    late = history.where("event = 'hub_lag' AND max_ms >= 0")
    (row,) = rows_of(
        late.select(
            F.count("*").alias("seconds"),
            F.percentile("max_ms", F.lit(0.99)).alias("p99_ms"),
            F.max("max_ms").alias("longest_ms"),
        )
    )
    if not row["seconds"]:
        return None
    return HubGaps(row["seconds"], round(row["p99_ms"], 1), row["longest_ms"])


def costs(owned: DataFrame, stops: Iterable[Row], groups: Sequence[str], partitions: int) -> Costs:
    """Give what is asked for of the owners of partitions, and stops."""
    asked = F.expr(f"{among('group', groups)} OR overlap_ms > 0")
    held = F.when(asked, F.struct(*(field.name for field in fields(Holding))))
    given = owned.groupBy("group", "from_ms").agg(
        F.sum(F.col("moved").cast("long")).alias("moved"),
        F.sum("unowned_ms").alias("unowned_ms"),
        F.collect_list(held).alias("held"),  # one job for both; it leaves out what is null
    )
    handovers = rows_of(given)
    holdings = (holding for row in handovers for holding in row["held"])
    return Costs(
        stops=in_order(Stop, stops, "from_ms", "group", "member"),
        handovers=sorted(
            (
                Handover(r["group"], r["from_ms"], r["moved"], round(r["unowned_ms"], 1))
                for r in handovers
            ),
            key=attrgetter("at_ms", "group"),
        ),
        holdings=in_order(
            Holding,
            (r for r in holdings if r["overlap_ms"] > 0 or _number(r["partition"]) < partitions),
            "from_ms", "group", "member", "partition",
        ),
    )  # fmt: skip


def expulsions(rows: Iterable[Row]) -> list[Expulsion]:
    """Return rows of the table `expulsions` in order of time."""
    return in_order(Expulsion, rows, "at_ms", "group", "subject", "api")


def in_order(kind: type[T], rows: Iterable[Row], *order: str) -> list[T]:
    """Make objects of rows, ordered by some of their fields."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return sorted((kind(*map(row.get, names)) for row in rows), key=attrgetter(*order))


def _number(partition: str) -> float:
    """Return the number of a partition that is named `topic-number`; without one, infinity."""
    number = partition.rpartition("-")[2]
    return int(number) if number.isdecimal() else inf
