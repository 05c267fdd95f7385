"""The observed timeline: one row per rebalance, from coordinator lines alone.

One partition has one thread, so the lines of a group stand in the order of what was done to it:
a rebalance begins with its "Preparing" line and owns what follows up to the next.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from reports.grammar import Grammar


def incarnations(coordinator: DataFrame) -> DataFrame:
    """Number the loads of each offsets partition over all brokers: 1, 2, … in order of time."""
    loads = coordinator.where(F.col("template") == "loaded")
    in_time = Window.partitionBy("partition").orderBy("at_ms", "broker")
    return loads.select(
        "partition", "broker", "at_ms", F.row_number().over(in_time).alias("incarnation")
    )


def partitions_of(coordinator: DataFrame) -> DataFrame:
    """Say which offsets partition holds a group (it never changes)."""
    return (
        coordinator.where(F.col("group").isNotNull() & F.col("partition").isNotNull())
        .groupBy("group")
        .agg(F.min("partition").alias("partition"))
    )


SERVINGS = {
    "loading": "loading",
    "loaded": "loaded",
    "load_failed": "unloaded",
    "unload_started": "unloaded",
}
"""Templates that tell of a broker taking a partition up or giving it up."""


JAVA_HASH = """
    aggregate(
        transform(sequence(1, length(group)), place -> ascii(substring(group, place, 1))),
        0L,
        (hash, character) -> (31 * hash + character) % 4294967296L,
        hash -> abs(if(hash < 2147483648L, hash, hash - 4294967296L))
    )
"""
"""`Utils.abs(group.hashCode())`: by this, Kafka chooses the partition that holds a group."""


def _placed(requests: DataFrame, coordinator: DataFrame) -> DataFrame:
    """Say which offsets partition holds a group, also one of which no line tells it.

    A broker tells of every partition, those that it does not load too: the last gives their number.
    """
    known = partitions_of(coordinator)
    count = coordinator.agg((F.max("partition") + 1).alias("count")).where("count IS NOT NULL")
    others = requests.where("group != ''").select("group").distinct()
    return known.union(
        others.join(known, "group", "left_anti")
        .crossJoin(count)
        .select("group", F.expr(f"int({JAVA_HASH} % count)"))
    )


def servings(coordinator: DataFrame, requests: DataFrame, lines: DataFrame) -> DataFrame:
    """List, for every group, when which broker started, loaded or gave up its partition, or ended.

    A broker ends as it begins to shut down, or with the last of all `lines` of that life.
    """
    groups = _placed(requests, coordinator)
    pairs = (F.lit(word) for pair in SERVINGS.items() for word in pair)
    # Java says that it is about to load before it looks whether it has to
    in_order = Window.partitionBy("broker", "partition").orderBy("line")
    in_vain = (F.col("template") == "loading") & (
        F.lead("template").over(in_order).eqNullSafe("load_ignored")
    )
    loads = (
        coordinator.where(F.col("template").isin(*SERVINGS, "load_scheduled", "load_ignored"))
        .withColumn("in_vain", in_vain)
        .where(F.col("template").isin(*SERVINGS) & ~F.col("in_vain"))
        .drop("group")
        .join(groups, "partition")
        .select("group", "at_ms", "broker", F.create_map(*pairs)[F.col("template")].alias("kind"))
    )
    starts = coordinator.where(F.col("template") == "starting")
    shut_downs = coordinator.where(F.col("template") == "shutting_down")
    ends = (
        lines.groupBy("broker", "life")
        .agg(F.max("at_ms").alias("at_ms"))
        .union(shut_downs.select("broker", "life", "at_ms"))
        .groupBy("broker", "life")
        .agg(F.min("at_ms").alias("at_ms"))
    )
    for turns, kind in ((starts, "started"), (ends, "ended")):
        loads = loads.union(
            turns.select("at_ms", "broker")
            .crossJoin(groups)
            .select("group", "at_ms", "broker", F.lit(kind))
        )
    return loads


def repeated_loads(coordinator: DataFrame) -> DataFrame:
    """List the loads that nobody asked for, as unexpected lines (see `member_lines.compare`).

    A leader epoch (KIP-101) is one broker's, and that loads once. Whether one that was restarted
    may have kept its epoch is left open.
    """
    loads = coordinator.where(F.col("template") == "loaded").drop("group")
    in_time = Window.partitionBy("partition", "epoch").orderBy("at_ms", "broker")
    first = lambda name: F.first(name).over(in_time)
    restarted = (first("broker") == F.col("broker")) & (first("life") != F.col("life"))
    return (
        loads.withColumn("nth", F.row_number().over(in_time))
        .withColumn("restarted", restarted)
        .where((F.col("nth") > 1) & ~F.col("restarted"))
        .join(partitions_of(coordinator), "partition")
        .select(
            "group",
            F.lit("loaded").alias("kind"),
            F.format_string("__consumer_offsets-%d in epoch %d", "partition", "epoch").alias(
                "subject"
            ),
            "nth",
            F.lit("unexpected_line").alias("outcome"),
            "at_ms",
            F.lit(None).cast("double").alias("due_ms"),
            "broker",
            "line",
        )
    )


HINTS = {
    "session_expired": "session_expired",
    "pending_expired": "session_expired",
    "stabilized": "join_phase_ended",
    "empty": "join_phase_ended",
    "static_added": "joined",
    "dynamic_given_id": "joined",
    "dynamic_added": "joined",
    "pending_joins": "pending_joined",
    "static_replaced": "replaced",
    "left": "left",
    "pending_left": "left",
    "assignment": "assigned",
}
"""Templates that mark an instant, and the oracle's name for what they mark."""


def hints(coordinator: DataFrame, grammar: Grammar) -> DataFrame:
    """List the lines that mark the instant of a timer, or of acting on a request."""
    pairs = (F.lit(word) for pair in HINTS.items() for word in pair)
    expired_sync = (F.col("template") == "preparing") & (_reason_class(grammar) == "pending_sync")
    kind = F.when(expired_sync, "sync_expired").otherwise(F.create_map(*pairs)[F.col("template")])
    subject = F.when(F.col("template") == "static_replaced", F.col("instance")).otherwise(
        F.col("member")
    )
    return coordinator.select(
        "group",
        "at_ms",
        kind.alias("kind"),
        F.coalesce(subject, F.lit("")).alias("subject"),
        F.coalesce("generation", F.lit(-1)).alias("generation"),
        "broker",
    ).where(F.col("kind").isNotNull() & F.col("group").isNotNull())


def observed(coordinator: DataFrame, grammar: Grammar) -> DataFrame:
    """Build the observed timeline; `row` numbers a group's rebalances in an incarnation.

    The end of a join phase that no "Preparing" line came before stands in a row of its own.
    """
    steps = ("preparing", "stabilized", "assignment", "empty")
    lines = _with_incarnation(coordinator.where(F.col("template").isin(*steps)), coordinator)
    in_order = Window.partitionBy("group", "incarnation").orderBy("at_ms", "line")
    template = F.col("template")
    begins = (template == "preparing") | (
        template.isin("stabilized", "empty")
        & ~F.lag("template", 1, "none").over(in_order).eqNullSafe("preparing")
    )
    placed = lines.withColumn("row", F.sum(begins.cast("int")).over(in_order))
    rows = placed.groupBy("group", "incarnation", "row").agg(
        F.first("broker").alias("broker"),
        _of("preparing", F.col("generation")).alias("prepared_generation"),
        _at("preparing").alias("started_ms"),
        _of("preparing", _reason_class(grammar)).alias("reason"),
        _of("preparing", _reason_member(grammar)).alias("member_id"),
        F.coalesce(_at("stabilized"), _at("empty")).alias("joined_ms"),
        F.coalesce(_of("stabilized", F.col("generation")), _of("empty", F.col("generation"))).alias(
            "generation"
        ),
        F.coalesce(_of("stabilized", F.col("members")), _of("empty", F.lit(0))).alias("members"),
        _of("assignment", F.col("members")).alias("assigned_members"),
        _of("assignment", F.col("static_members")).alias("static_members"),
        _of("assignment", F.col("member")).alias("leader"),
        _of("assignment", F.col("generation")).alias("assigned_generation"),
        _at("assignment").alias("assigned_ms"),
        F.coalesce(_of("assignment", F.lit("assigned")), _of("empty", F.lit("empty"))).alias(
            "ended_as"
        ),
        _line("preparing").alias("started_line"),
        F.coalesce(_line("stabilized"), _line("empty")).alias("joined_line"),
        _line("assignment").alias("assigned_line"),
        F.count(F.when(template == "assignment", 1)).alias("assignments"),
    )
    following = Window.partitionBy("group", "incarnation").orderBy("row")
    next_start = F.lead("started_ms").over(following)
    ended_as = F.coalesce(
        "ended_as", F.when(next_start.isNotNull(), "superseded").otherwise("open")
    )
    ended_ms = F.coalesce(
        "assigned_ms", F.when(F.col("ended_as") == "empty", F.col("joined_ms")), next_start
    )
    return rows.select(
        "group",
        "incarnation",
        F.coalesce("prepared_generation", F.col("generation") - 1).alias("old_generation"),
        "row",
        "started_ms",
        "reason",
        "member_id",
        "joined_ms",
        "generation",
        "members",
        "assigned_members",
        "static_members",
        "leader",
        "assigned_generation",
        "assignments",
        "assigned_ms",
        ended_as.alias("ended_as"),
        (ended_ms - F.coalesce("started_ms", "joined_ms")).alias("duration_ms"),
        "broker",
        "started_line",
        "joined_line",
        "assigned_line",
    )


def _with_incarnation(lines: DataFrame, coordinator: DataFrame) -> DataFrame:
    """Give each line the number of the load that its own broker last finished before it.

    By broker, since one that was paused may go on for a while after it was replaced.
    """
    loads = incarnations(coordinator).select(
        "partition", "broker", F.col("at_ms").alias("loaded_ms"), "incarnation"
    )
    before = loads.withColumnRenamed("incarnation", "number").join(
        partitions_of(coordinator), "partition"
    )
    return (
        lines.join(before.drop("partition"), ["group", "broker"], "left")
        .groupBy(*lines.columns)
        .agg(
            F.coalesce(
                F.max(F.when(F.col("loaded_ms") <= F.col("at_ms"), F.col("number"))), F.lit(0)
            ).alias("incarnation")
        )
    )


def _of(template: str, value: Column) -> Column:
    return F.min(F.when(F.col("template") == template, value))


def _at(template: str) -> Column:
    return _of(template, F.col("at_ms"))


def _line(template: str) -> Column:
    return _of(template, F.col("line"))


def _reason_class(grammar: Grammar) -> Column:
    """Class the text of a reason; text of no class keeps standing as it is."""
    classes = [F.when(F.col("reason").rlike(regex), F.lit(name)) for name, regex in grammar.reasons]
    return F.coalesce(*classes, "reason")


def _reason_member(grammar: Grammar) -> Column:
    members = [
        F.when(F.col("reason").rlike(regex), F.regexp_extract("reason", regex, 1))
        for _, regex in grammar.reasons
    ]
    return F.coalesce(*members, F.lit(""))
