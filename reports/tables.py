"""From lines to tables: the whole Spark pipeline in the order of its stages."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reference_coordinator.profiles import Profile
from reports import compare, ingest, member_lines, oracle, ownership, timeline
from reports.run_folder import RunFolder

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Tables:
    """The stored tables of a run, as Spark reads them back.

    `evidence` is what the oracle was fed, made of them; `stops` is small. Neither is stored.
    """

    evidence: DataFrame
    requests: DataFrame
    transitions: DataFrame
    observed: DataFrame
    expected: DataFrame
    comparison: DataFrame
    checked: DataFrame
    violations: DataFrame
    bound: DataFrame
    member_lines: DataFrame
    fates: DataFrame
    lost: DataFrame
    ownership: DataFrame
    stops: DataFrame


LINES = "tables/lines.parquet"
"""Where in a run folder the captured lines are."""


def build(spark: SparkSession, run: RunFolder, profile: Profile, progress: Progress) -> Tables:
    """Compute every table of a run, its lines captured before, and store it in its folder."""
    store = _Store(spark, run.path / "tables")
    grammar = run.grammar
    progress("reading the lines")
    captured = spark.read.parquet(str(run.path / LINES))
    envelopes = ingest.read_envelopes(captured, grammar, numbered=run.numbered_lines).cache()
    requests = store("requests", ingest.read_requests(envelopes))
    lines = store("transitions", ingest.read_coordinator(envelopes, grammar))
    fates = store("coverage", ingest.account(envelopes, requests, lines, grammar))
    lost = store("lost", ingest.lost_lines(envelopes, lines, grammar))
    observed = store("observed", timeline.observed(lines, grammar))
    progress("replaying every request through the reference coordinator")
    evidence = oracle.evidence_rows(
        requests,
        timeline.hints(lines, grammar),
        timeline.servings(lines, requests, fates),
    )
    output = store("replay", oracle.run(evidence, profile, run.stalls, run.outages))
    expected = store("expected", _expected(output))
    progress("comparing the timelines")
    membership = ownership.membership(spark, run.path / ownership.HISTORY)
    tables = Tables(
        evidence=evidence,
        requests=requests,
        transitions=lines,
        observed=observed,
        expected=expected,
        comparison=store("comparison", compare.compare(observed, expected)),
        checked=oracle.typed(output, "checked", oracle.CHECKED),
        violations=oracle.typed(output, "violation", oracle.VIOLATION),
        bound=oracle.typed(output, "bound", "name STRING, count INT"),
        member_lines=store(
            "member_lines",
            member_lines.compare(lines, oracle.typed(output, "said", oracle.SAID)).union(
                timeline.repeated_loads(lines)
            ),
        ),
        fates=fates,
        lost=lost,
        ownership=store("ownership", ownership.intervals(membership)),
        stops=ownership.stops(membership),
    )
    envelopes.unpersist()
    return tables


def _expected(output: DataFrame) -> DataFrame:
    """Give expected rows the observed timeline's form: null where a thing never came."""
    rows = oracle.typed(output, "row", oracle.ROW)
    never = lambda name: F.when(F.col(name) >= 0, F.col(name)).alias(name)
    return rows.select(
        "group",
        "incarnation",
        "old_generation",
        "started_ms",
        "earliest_ms",
        "latest_ms",
        "reason",
        "member_id",
        never("joined_ms"),
        never("generation"),
        never("members"),
        never("assigned_members"),
        never("static_members"),
        F.when(F.col("leader") != "", F.col("leader")).alias("leader"),
        never("assigned_ms"),
        "ended_as",
        F.when(F.col("ended_ms") >= 0, F.col("ended_ms") - F.col("started_ms")).alias(
            "duration_ms"
        ),
    )


@dataclass(frozen=True, slots=True)
class _Store:
    """Writes a table once and reads it back, so no stage is computed twice."""

    spark: SparkSession
    folder: Path

    def __call__(self, name: str, table: DataFrame) -> DataFrame:
        path = str(self.folder / name)
        table.write.mode("overwrite").parquet(path)
        return self.spark.read.parquet(path)
