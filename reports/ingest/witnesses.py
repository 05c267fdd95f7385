"""What the tap saw of a run beside its brokers' logs, as rows of the evidence of groups."""

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.ingest import bundle, line_pass
from reports.ingest.log_files import NAMES, literal
from reports.judgement.log import broker_log
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.log.processes import STATUSES
from reports.judgement.run.evidence_level import Level
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.witness_pairs import ADDRESSES, Connection, Tap, hidden_by_nat
from reports.judgement.witnesses import compared_apis


class Seen(NamedTuple):
    """The table `requests` of the tap, and what is known of it over the whole run."""

    requests: DataFrame
    tap: Tap


def has_tap(spark: SparkSession, source: str) -> bool:
    """Tell whether a run has logs of the tap."""
    try:
        # Spark Connect looks for the files when it is asked for what they hold
        _ = spark.read.text(f"{literal(source)}/{Level.WIRE.folder}/*/{NAMES}").schema
    except AnalysisException:
        return False
    return True


def seen_by_tap(
    spark: SparkSession,
    run: RunFolder,
    source: str,
    target: str,
    requests: DataFrame,
    places: LogPlaces,
) -> Seen | None:
    """Read what the tap of a run saw; `requests` are those of its brokers. None where it has none.

    It is stored under `tables/wire`.
    """
    if run.level is not Level.REQUESTS or not has_tap(spark, source):
        return None
    tables = f"{target}/tables/{Level.WIRE}"
    processes, of_tap = line_pass.read_logs(spark, source, run.tap_parser, tables)
    seen = bundle.stored(spark, broker_log.REQUESTS, "requests", tables)
    apis = compared_apis(tells_bytes=run.grammar.tells_bytes)
    ours, theirs = (_connections(side, apis) for side in (requests, seen))
    lost = bundle.stored(spark, broker_log.GAPS, "lost", tables)
    tap = Tap(
        theirs,
        hidden_by_nat(ours, theirs),
        (places, of_tap),
        run.killed_between,
        {one["broker"]: one["last_ms"] for one in processes},
        whole=not any(one["rejected"] for one in processes) and lost.isEmpty(),
        tells_bytes=run.grammar.tells_bytes,
        lines=sum(one[status] for one in processes for status in STATUSES),
    )
    return Seen(seen, tap)


def _connections(requests: DataFrame, apis: Sequence[str]) -> frozenset[Connection]:
    """Return the connections of readable requests to some APIs."""
    ends = F.regexp_extract("connection", f"^{ADDRESSES.pattern}", 1)
    mine = requests.where(F.col("readable") & F.col("api").isin(*apis))
    named = mine.select("broker", F.coalesce(ends, F.lit("")), F.coalesce("client_id", F.lit("")))
    rows = named.toDF(*Connection._fields).distinct().toArrow().to_pylist()
    return frozenset(Connection(**row) for row in rows)
