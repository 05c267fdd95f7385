"""The comparison: observed and expected timeline, row by row.

Rows join on (group, incarnation, old generation); what is left over on both sides pairs by time
and reason, so a changed number is one difference and not two.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

EARLY_MS = 10.0
"""Reading error of a reconstructed instant."""
LATE_MS = 500.0
"""How late a coordinator may act on what is due; the oracle's own bound for timers."""
OF_ONE_MEMBER = (
    "new_member", "static_replaced", "member_metadata", "leader_rejoin", "protocol_change",
    "session_expired",
)  # fmt: skip
"""Reasons that one member gives, by its id."""
PAIR_MS = 1_000.0
"""How far apart left-overs may lie and still be the same rebalance."""

KEY = ("group", "incarnation", "old_generation")
BOTH = (
    "old_generation", "started_ms", "reason", "member_id", "joined_ms", "generation", "members",
    "assigned_members", "static_members", "leader", "assigned_ms", "ended_as",
)  # fmt: skip


def compare(observed: DataFrame, expected: DataFrame) -> DataFrame:
    """Compare the timelines; one row per rebalance that either side has."""
    o = observed.withColumn("o_id", F.struct("group", "incarnation", "row"))
    e = expected.withColumn("e_id", F.struct(*KEY, "started_ms"))
    same_key = [F.col(f"o.{name}") == F.col(f"e.{name}") for name in KEY]
    keyed = _nearest(o, e, *same_key)
    lone_o = o.join(keyed.select("o.o_id"), "o_id", "left_anti")
    lone_e = e.join(keyed.select("e.e_id"), "e_id", "left_anti")
    close = _apart() < PAIR_MS
    same_group = F.col("o.group") == F.col("e.group")
    # a row without its "Preparing" line has no reason to compare
    same_reason = F.coalesce(F.col("o.reason"), F.col("e.reason")) == F.col("e.reason")
    rescued = _nearest(lone_o, lone_e, same_group, same_reason, close)
    rest_o = lone_o.join(rescued.select("o.o_id"), "o_id", "left_anti")
    rest_e = lone_e.join(rescued.select("e.e_id"), "e_id", "left_anti")
    pairs = [
        *(_pairs(both, o, e) for both in (keyed, rescued)),
        rest_o.select(_struct(o).alias("o"), _none(e).alias("e")),
        rest_e.select(_none(o).alias("o"), _struct(e).alias("e")),
    ]
    return _judged(reduce(DataFrame.union, pairs)).orderBy(
        "group", F.coalesce("observed_started_ms", "observed_joined_ms", "expected_started_ms")
    )


def _pairs(both: DataFrame, o: DataFrame, e: DataFrame) -> DataFrame:
    return both.select(_struct(o, "o.").alias("o"), _struct(e, "e.").alias("e"))


def _struct(side: DataFrame, prefix: str = "") -> Column:
    return F.struct(*(f"{prefix}{name}" for name in side.columns))


def _none(side: DataFrame) -> Column:
    return F.lit(None).cast(side.schema)


def _apart() -> Column:
    """Say how far apart two rows lie in time, by their starts or else by their join phases."""
    started = F.abs(F.col("o.started_ms") - F.col("e.started_ms"))
    return F.coalesce(started, F.abs(F.col("o.joined_ms") - F.col("e.joined_ms")), F.lit(0.0))


def _nearest(o: DataFrame, e: DataFrame, *conditions: Column) -> DataFrame:
    """Pair each row with the nearest of those it may be, and no row twice."""
    pairs = o.alias("o").join(e.alias("e"), list(conditions))
    of_o = F.row_number().over(Window.partitionBy("o.o_id").orderBy(_apart()))
    of_e = F.row_number().over(Window.partitionBy("e.e_id").orderBy(_apart()))
    ranked = pairs.withColumn("of_o", of_o).withColumn("of_e", of_e)
    return ranked.where((F.col("of_o") == 1) & (F.col("of_e") == 1))


def _judged(pairs: DataFrame) -> DataFrame:
    """Judge each pair of an observed and an expected row, `o` and `e`; one of them may be null."""
    outcome = _outcome()
    return pairs.select(
        *(F.coalesce(f"o.{name}", f"e.{name}").alias(name) for name in KEY),
        *(F.col(f"o.{name}").alias(f"observed_{name}") for name in BOTH),
        *(F.col(f"e.{name}").alias(f"expected_{name}") for name in BOTH),
        outcome.alias("outcome"),
        _off_by().alias("off_by_ms"),
        F.col("o.broker").alias("broker"),
        _place(outcome).alias("line"),
    )


def _outcome() -> Column:
    o, e = (lambda n: F.col(f"o.{n}")), (lambda n: F.col(f"e.{n}"))
    unlike = lambda name: ~o(name).eqNullSafe(e(name))
    # a batch of leavers is named as a whole, an assignment that failed by its leader
    other_member = unlike("member_id") & e("reason").isin(*OF_ONE_MEMBER)
    unsure = e("ended_as") == "unsure"  # the replay lost the group here: the root stands elsewhere
    other_generation = (
        unlike("generation")
        | (o("assigned_generation") != e("generation"))
        | unlike("old_generation")
        | unlike("incarnation")
    )
    return (
        F.when(o("group").isNull() | (o("started_ms").isNull() & e("group").isNotNull()), "missing")
        .when(e("group").isNull() | (o("assignments") > 1), "unexpected")
        .when(unlike("reason") | other_member, "wrong_reason")
        .when(unsure, "match")
        .when(other_generation, "wrong_generation")
        .when(
            unlike("members")
            | unlike("assigned_members")
            | unlike("static_members")
            | (unlike("leader") & o("leader").isNotNull())  # before 3.0 no line names it
            | unlike("ended_as"),
            "wrong_members",
        )
        .when(_off_by() < 0, "early")
        .when(_off_by() > 0, "late")
        .otherwise("match")
    )


def _place(outcome: Column) -> Column:
    """Point to the line that differs."""
    o, e = (lambda n: F.col(f"o.{n}")), (lambda n: F.col(f"e.{n}"))
    started, joined, assigned = o("started_line"), o("joined_line"), o("assigned_line")
    generation = (
        F.when(~o("old_generation").eqNullSafe(e("old_generation")), started)
        .when(~o("generation").eqNullSafe(e("generation")), joined)
        .otherwise(assigned)
    )
    return (
        F.when(outcome == "wrong_generation", F.coalesce(generation, joined, started))
        .when(
            outcome == "wrong_members",
            F.when(~o("members").eqNullSafe(e("members")), joined).otherwise(
                F.coalesce(assigned, joined, started)
            ),
        )
        .otherwise(F.coalesce(started, joined))
    )


def _off_by() -> Column:
    """By how much the rebalance began, or its join phase ended, outside what was due; in ms."""
    started, earliest, latest = (F.col(n) for n in ("o.started_ms", "e.earliest_ms", "e.latest_ms"))
    joined = F.col("o.joined_ms") - F.col("e.joined_ms")
    assigned = F.col("o.assigned_ms") - F.col("e.assigned_ms")
    return (
        F.when(started < earliest - EARLY_MS, started - earliest)
        .when(started > latest + EARLY_MS, started - latest)
        .when(F.abs(joined) > LATE_MS, joined)
        .when(F.abs(assigned) > LATE_MS, assigned)
        .otherwise(F.lit(0.0))
    )
