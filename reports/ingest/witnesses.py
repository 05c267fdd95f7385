"""Both witnesses of a run side by side: requests of the brokers' logs joined with those of the tap.

A request has the number that its client gave it (correlation id), on a connection that brokers and
tap name by the same two addresses. Behind a NAT, as of containers or a load balancer, they do not:
where no address of the tap's stands in a broker's log, the client alone counts. Requests with the
same key, as those that a rule sent twice, are paired in the order of their answers. A later
connection may have the addresses of one that has ended.
"""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from reports.ingest import bundle
from reports.ingest.log_files import NAMES, literal
from reports.judgement.log import broker_log
from reports.judgement.log.processes import STATUSES
from reports.judgement.run.evidence_level import Level
from reports.judgement.witnesses import Doubt, Witnesses, compared_apis, differs, judged

if TYPE_CHECKING:
    from reports.ingest.tables import Tables

ADDRESSES = r"^(.*:\d+-.*:\d+)-\d"
"""The two addresses in the name of a connection."""
KEY = ("broker", "addresses", "client", "correlation_id", "api")
"""Which request it is; behind a NAT the column `addresses` has the client, too."""
SIDE = ("line", "group", "api", "client_id", "correlation_id", "answered_ms", "request", "response")
SHOWN = 10_000
"""How many differences are read."""
ALIKE = "of_broker.request <=> of_tap.request AND of_broker.response <=> of_tap.response"
PAIR = "broker STRING, doubt STRING, of_broker STRING, of_tap STRING"


def has_tap(spark: SparkSession, source: str) -> bool:
    """Tell whether a run has logs of the tap."""
    try:
        # Spark Connect looks for the files when it is asked for what they hold
        _ = spark.read.text(f"{literal(source)}/{Level.WIRE.folder}/*/{NAMES}").schema
    except AnalysisException:
        return False
    return True


def compared(tables: "Tables", source: str, target: str) -> Witnesses | None:
    """Compare the table `requests` of a run with what its tap saw; None where it has none.

    What the tap saw is stored under `tables/wire`.
    """
    from reports.ingest.tables import store_lines  # noqa: PLC0415 (it calls this)

    spark, run = tables.spark, tables.run
    if run.level is not Level.REQUESTS or not has_tap(spark, source):
        return None
    output = f"{target}/tables/{Level.WIRE}"
    merged = store_lines(spark, run, source, run.tap_parser, output)
    seen = bundle.stored(spark, broker_log.REQUESTS, "requests", output)
    requests = tables.frame("requests")
    processes = merged.processes
    apis = compared_apis(tells_bytes=run.grammar.tells_bytes)
    sides = {"of_broker": _side(requests, apis), "of_tap": _side(seen, apis)}
    behind = _behind_nat(*sides.values())
    ours, theirs = (_numbered(side, behind, name) for name, side in sides.items())
    joined = ours.join(theirs, [*KEY, "nat", "n"], "full_outer")
    known = theirs.select("broker", "addresses").distinct().withColumn("known", F.lit(True))
    joined = joined.join(known, ["broker", "addresses"], "left")
    both, alone = (F.col("of_broker").isNotNull(), F.col("of_tap").isNull())
    kind = (
        F.when(both & ~alone & F.col("nat"), "compared_by_number")
        .when(both & ~alone, "compared")
        .when(~both, "tap_alone")
        .when(F.col("known"), "broker_alone")
        .otherwise("not_through_tap")
    )
    joined = joined.withColumn("kind", kind).withColumn("doubt", _doubt(*sides)).persist()
    try:
        kinds = _rows(joined.groupBy("kind").count())
        unequal = joined.where(f"kind != 'not_through_tap' AND NOT ({ALIKE})")
        texts = [F.to_json(name).alias(name) for name in sides]
        pairs = unequal.select("broker", "doubt", *texts)
        differing = pairs.mapInArrow(_differing(tells_bytes=run.grammar.tells_bytes), PAIR)
        found = _rows(differing.limit(SHOWN))
    finally:
        joined.unpersist()
    rows = judged(
        [{**row, **{name: _side_of(row[name]) for name in sides}} for row in found],
        (tables.places, merged.places),
        run.killed_between,
        {one["broker"]: one["last_ms"] for one in processes},
        whole=not any(one["rejected"] for one in processes) and not merged.lost,
        tells_bytes=run.grammar.tells_bytes,
    )
    counts = {row["kind"]: row["count"] for row in sorted(kinds, key=itemgetter("kind"))}
    lines = sum(one[status] for one in processes for status in STATUSES)
    return Witnesses(list(rows), {"tap_lines": lines, **counts})


def _side(requests: DataFrame, apis: Sequence[str]) -> DataFrame:
    """Return the readable requests of one witness to some APIs: KEY, `connection` and `side`."""
    mine = requests.where(F.col("readable") & F.col("api").isin(*apis))
    mine = mine.withColumn("addresses", F.regexp_extract("connection", ADDRESSES, 1))
    mine = mine.withColumn("client", F.coalesce("client_id", F.lit("")))
    return mine.select(*KEY, "connection", F.struct(*SIDE).alias("side"))


def _doubt(ours: str, theirs: str) -> Column:
    """Return why a number may belong to either of several connections; null where it does not."""
    one = [F.col(f"times_{side}").eqNullSafe(1) for side in (ours, theirs)]
    again = [F.col(f"again_{side}") for side in (ours, theirs)]
    behind_nat = F.col("nat") & ~(one[0] & one[1])
    return F.when(behind_nat, Doubt.NAT.value).when(again[0] | again[1], Doubt.AGAIN.value)


def _behind_nat(ours: DataFrame, theirs: DataFrame) -> list[str]:
    """Return the brokers whose logs have requests, but none at an address of the tap's."""
    at = [side.select("broker", "addresses").distinct() for side in (ours, theirs)]
    met = at[0].join(at[1], ["broker", "addresses"])
    logged, seen, same = (
        {row["broker"] for row in _rows(one.select("broker").distinct())} for one in (*at, met)
    )
    return sorted((logged & seen) - same)


def _numbered(side: DataFrame, behind_nat: Sequence[str], name: str) -> DataFrame:
    """Return a side as `name`, numbered (`n`) among those of its key.

    Beside it stand how many these are, and whether they are on several connections.
    """
    nat = F.col("broker").isin(*behind_nat) if behind_nat else F.lit(False)
    keyed = side.withColumn("nat", nat).withColumn(
        "addresses", F.when(nat, F.col("client")).otherwise(F.col("addresses"))
    )
    same = Window.partitionBy(*KEY)
    order = same.orderBy(F.col("side.answered_ms").asc_nulls_last(), "side.line")
    return (
        keyed.withColumn("n", F.row_number().over(order))
        .withColumn(f"times_{name}", F.count(F.lit(1)).over(same))
        .withColumn(
            f"again_{name}", F.min("connection").over(same) != F.max("connection").over(same)
        )
        .drop("connection")
        .withColumnRenamed("side", name)
    )


def _differing(*, tells_bytes: bool) -> Any:
    """Return what keeps the pairs that differ."""

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            kept = [
                row
                for row in batch.to_pylist()
                if differs(
                    _side_of(row["of_broker"]), _side_of(row["of_tap"]), tells_bytes=tells_bytes
                )
            ]
            if kept:
                yield pa.RecordBatch.from_pylist(kept, schema=batch.schema)

    return keep


def _side_of(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    found: dict[str, Any] = {**dict.fromkeys(SIDE), **msgspec.json.decode(text)}
    return found


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return found
