"""Lines about members: each that is due must stand in the log once, and no other.

The nth line of a kind about a subject is compared with the nth that the oracle expects.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from reports.compare import EARLY_MS

KINDS = (
    "static_added", "static_replaced", "dynamic_given_id", "dynamic_added", "pending_joins",
    "left", "pending_left", "session_expired", "pending_expired",
)  # fmt: skip
KEY = ("group", "kind", "subject", "nth")


def compare(coordinator: DataFrame, said: DataFrame) -> DataFrame:
    """Give the lines that are missing, unexpected, early or late; none if all is well."""
    replaced = F.col("template") == "static_replaced"
    observed = coordinator.where(F.col("template").isin(*KINDS)).select(
        "group",
        F.col("template").alias("kind"),
        F.when(replaced, F.col("instance")).otherwise(F.col("member")).alias("subject"),
        "at_ms",
        "broker",
        "line",
    )
    expected = said.withColumnRenamed("line", "kind").withColumnRenamed("at_ms", "due_ms")
    # ids that no answer told are not known to the oracle: their lines cannot be paired by name
    unnamed = F.col("subject").rlike(r"-\?[^-]*$")
    unknown = expected.where(unnamed).groupBy("group", "kind").agg(F.count("*").alias("unnamed"))
    both = _numbered(observed, "at_ms").join(
        _numbered(expected.where(~unnamed), "due_ms"), list(KEY), "full_outer"
    )
    outcome = (
        F.when(F.col("at_ms").isNull(), "missing_line")
        .when(F.col("due_ms").isNull(), "unexpected_line")
        .when(F.col("at_ms") < F.col("earliest_ms") - EARLY_MS, "early_line")
        .when(F.col("at_ms") > F.col("latest_ms") + EARLY_MS, "late_line")
    )
    unexpected = F.col("outcome") == "unexpected_line"
    of_a_kind = Window.partitionBy("group", "kind")
    return (
        both.withColumn("outcome", outcome)
        .where(F.col("outcome").isNotNull())
        .withColumn("unpaired", F.count(F.when(unexpected, True)).over(of_a_kind))
        .join(unknown, ["group", "kind"], "left")
        .where(~unexpected | F.col("unnamed").isNull() | (F.col("unpaired") > F.col("unnamed")))
        .select(*KEY, "outcome", "at_ms", "due_ms", "broker", "line")
        .orderBy("group", F.coalesce("at_ms", "due_ms"))
    )


def _numbered(lines: DataFrame, time: str) -> DataFrame:
    in_order = Window.partitionBy("group", "kind", "subject").orderBy(time)
    return lines.withColumn("nth", F.row_number().over(in_order))
