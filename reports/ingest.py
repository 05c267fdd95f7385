"""Ingest: numbered lines in; requests, coordinator lines and the account of every line out.

read = used + irrelevant + rejected: a line that nothing here understands is never dropped.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from reports.grammar import GROUP_APIS, KIP_848_APIS, Grammar, Template

EVENT = r"\S+ (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) (.*) \(([^()\s]+)\)$"
"""Thread, level, message, logger: what every line of the observation log ends with."""
NUMBERED = rf"^(\d+) (\d+) (\d+) {EVENT}"
"""From Kafka 4 on (log4j 2): serial number, epoch ms and nano clock come before it."""
DATED = rf"^(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,\d{{3}}) {EVENT}"
"""Before (log4j 1): the UTC time in ms."""
REQUEST_LOGGER = "kafka.request.logger"
COMPLETED = "Completed request:"

BODY = """
    requestHeader STRUCT<
        requestApiKeyName: STRING, requestApiVersion: INT, clientId: STRING, correlationId: INT
    >,
    request STRING, response STRING, connection STRING,
    totalTimeMs DOUBLE, requestQueueTimeMs DOUBLE, localTimeMs DOUBLE, remoteTimeMs DOUBLE,
    responseQueueTimeMs DOUBLE, sendTimeMs DOUBLE
"""

EARLY_MS = 40.0
"""How far a reconstructed arrival may lie too late: the line is written after the clock is read.
Measured: 20 to 35 ms on a loaded machine."""
TURN_MS = 1_000.0
"""How long a request that may be parked can wait for its turn on a busy machine."""
MAY_PARK = ("JOIN_GROUP", "SYNC_GROUP")
END_MISSING = "the log's end is missing"
"""What is said of a broker's life that does not end with the coordinator's last line."""
CLOCK_MS = 50.0
"""How far a printed time may be off the nano clock's; more is no time of this broker."""


def read_envelopes(lines: DataFrame, grammar: Grammar, *, numbered: bool) -> DataFrame:
    """Split each line into its parts, and put all brokers on fine UTC time.

    The nano clock is exact but starts anywhere: its offset to UTC is the median seen in a broker's
    life, which no single line can move; printed milliseconds are cut off, half of one on average.
    Without serial numbers and a nano clock lines are numbered as they stand, which is also their
    order within a millisecond.
    """
    form, before_event = (NUMBERED, 3) if numbered else (DATED, 1)
    part = lambda index: F.regexp_extract("text", form, index)
    logged = (
        part(2).try_cast("long")
        if numbered
        else F.unix_millis(F.try_to_timestamp(part(1), F.lit("yyyy-MM-dd HH:mm:ss,SSS")))
    )
    split = lines.select(
        "broker",
        "file",
        "line",
        "text",
        logged.alias("logged_ms"),
        (part(1) if numbered else F.lit(None)).try_cast("long").alias("printed_sn"),
        (part(3) if numbered else F.lit(None)).try_cast("long").alias("nanos"),
        *(
            part(before_event + place).alias(name)
            for place, name in enumerate(("level", "body", "logger"), 1)
        ),
    )
    by_line = Window.partitionBy("broker").orderBy("line").rowsBetween(Window.unboundedPreceding, 0)
    first = F.col("body").endswith(grammar.first_words).cast("int")
    lives = split.withColumn("life", F.sum(first).over(by_line))
    whole_life = Window.partitionBy("broker", "life").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    apart = F.col("logged_ms") - F.col("nanos") / 1e6
    offset = F.percentile_approx(apart, F.lit(0.5), F.lit(10_000)).over(whole_life) + 0.5
    within_ms = F.row_number().over(
        Window.partitionBy("broker", "life", "logged_ms").orderBy("line")
    )
    in_order = F.col("logged_ms") + 0.5 + within_ms / 1_000
    exact = F.col("nanos") / 1e6 + offset if numbered else in_order
    as_it_stands = F.row_number().over(Window.partitionBy("broker", "life").orderBy("line"))
    counted = F.when(F.col("logged_ms").isNotNull(), as_it_stands.cast("long"))
    last_known = F.last("logged_ms", ignorenulls=True).over(by_line)
    return lives.select(
        "broker",
        "file",
        "line",
        "life",
        "text",
        (F.col("printed_sn") if numbered else counted).alias("sn"),
        "logged_ms",
        F.coalesce(exact, last_known.cast("double")).alias("at_ms"),
        "level",
        "body",
        "logger",
    )


def read_requests(envelopes: DataFrame) -> DataFrame:
    """Parse the request lines: bodies, and the times a request arrived, was taken up, answered."""
    body = F.from_json(F.substring(F.col("body"), len(COMPLETED) + 1, 1 << 30), BODY)
    parsed = envelopes.where(
        (F.col("logger") == REQUEST_LOGGER) & F.col("body").startswith(COMPLETED)
    ).withColumn("json", body)
    times = parsed.select(
        "broker",
        "file",
        "line",
        "at_ms",
        F.col("json.requestHeader.requestApiKeyName").alias("api"),
        F.col("json.requestHeader.requestApiVersion").alias("api_version"),
        F.col("json.requestHeader.clientId").alias("client_id"),
        F.col("json.requestHeader.correlationId").alias("correlation_id"),
        "life",
        F.col("json.connection").alias("connection"),
        F.col("json.request").alias("request"),
        F.col("json.response").alias("response"),
        F.get_json_object("json.request", "$.groupId").alias("group"),
        (F.col("at_ms") - F.col("json.totalTimeMs")).alias("arrived_ms"),
        *(
            F.col(f"json.{name}TimeMs").alias(name)
            for name in ("total", "requestQueue", "local", "remote", "responseQueue", "send")
        ),
    )
    taken = F.col("arrived_ms") + F.col("requestQueue")
    done = taken + F.col("local")
    answered = done + F.col("remote")
    turn = F.when(F.col("api").isin(*MAY_PARK), done + TURN_MS)
    again = Window.partitionBy("broker", "life", "connection", "correlation_id").orderBy("line")
    return times.withColumn("nth", F.row_number().over(again)).select(
        F.concat_ws(":", "broker", "line").alias("id"),
        "broker",
        "file",
        "line",
        "group",
        "api",
        "api_version",
        "client_id",
        "connection",
        F.col("correlation_id").alias("serial"),
        "arrived_ms",
        (taken - EARLY_MS).alias("earliest_ms"),
        (taken + F.col("local") / 2).alias("at_ms"),
        F.least(answered, turn).alias("latest_ms"),
        answered.alias("answered_ms"),
        F.col("at_ms").alias("logged_ms"),
        F.get_json_object("response", "$.errorCode").cast("int").alias("error_code"),
        "request",
        "response",
        _readable().alias("readable"),
    )


def _readable() -> Column:
    """Tell a whole request line: every part there, once, and its time the sum of its parts."""
    parts = sum(
        (F.col(n) for n in ("requestQueue", "local", "remote", "responseQueue", "send")), F.lit(0.0)
    )
    needed = (
        "group", "api", "api_version", "client_id", "correlation_id", "connection",
        "request", "response",
    )  # fmt: skip
    result = F.coalesce(
        F.get_json_object("response", "$.errorCode"), F.get_json_object("response", "$.topics")
    )
    whole = reduce(lambda a, b: a & b, (F.col(name).isNotNull() for name in needed))
    return F.coalesce(
        whole
        & F.col("api").isin(*GROUP_APIS, *KIP_848_APIS)
        & (F.abs(F.col("total") - parts) < 1.0)
        & F.get_json_object("request", "$").isNotNull()
        & result.isNotNull()
        & (F.col("nth") == 1),  # a client numbers its requests: the same twice is one too many
        F.lit(False),
    )


def read_coordinator(envelopes: DataFrame, grammar: Grammar) -> DataFrame:
    """Match the coordinator's lines against the table of templates; `template` is null if none."""
    part = lambda index: F.regexp_extract("body", grammar.prefix, index)
    own = (part(1) == F.col("broker")) | (
        (part(1) == "") & F.col("logger").isin(*grammar.loggers_without_prefix)
    )
    lines = (
        envelopes.where(F.col("logger").startswith(grammar.loggers))
        .where(~F.col("logger").isin(*grammar.irrelevant_loggers))
        .withColumn("message", F.when(own, part(3)).otherwise(""))
        .withColumn("shard", part(2).try_cast("int"))
    )
    _field = lambda name: _extract(name, grammar.templates)
    matched = lines.withColumn("template", _template(grammar.templates))
    return matched.select(
        "broker",
        "file",
        "line",
        "life",
        "sn",
        "at_ms",
        "level",
        "template",
        F.coalesce("shard", _field("partition").try_cast("int")).alias("partition"),
        _field("group").alias("group"),
        _field("member").alias("member"),
        _field("instance").alias("instance"),
        _field("generation").try_cast("int").alias("generation"),
        _field("members").try_cast("int").alias("members"),
        _field("static_members").try_cast("int").alias("static_members"),
        _field("reason").alias("reason"),
        _field("epoch").try_cast("int").alias("epoch"),
        "message",
    )


def _template(templates: Sequence[Template]) -> Column:
    """Name the template that a line matches. One SQL text: a call per branch costs seconds."""
    branches = (
        f"WHEN logger IN ({', '.join(repr(logger) for logger in template.loggers)}) "
        f'AND message RLIKE r"{template.regex}" THEN "{template.name}"'
        for template in templates
    )
    return F.expr(f"CASE {' '.join(branches)} END")


def _extract(name: str, templates: Sequence[Template]) -> Column:
    """Extract a field wherever the matched template has it."""
    branches = (
        f'WHEN "{template.name}" '
        f'THEN regexp_extract(message, r"{template.regex}", {template.fields.index(name) + 1})'
        for template in templates
        if name in template.fields
    )
    return F.expr(f"CASE template {' '.join(branches)} END")


def account(
    envelopes: DataFrame, requests: DataFrame, coordinator: DataFrame, grammar: Grammar
) -> DataFrame:
    """Say of every line what became of it: used, irrelevant or rejected."""
    fates = requests.select(
        "broker", "line", F.when(F.col("readable"), "used").otherwise("rejected").alias("fate")
    ).union(
        coordinator.select(
            "broker",
            "line",
            F.when(F.col("template").isNotNull(), "used").otherwise("rejected").alias("fate"),
        )
    )
    irrelevant = F.col("logger").isin(*grammar.irrelevant_loggers)
    return envelopes.join(fates, ["broker", "line"], "left").select(
        "broker",
        "file",
        "line",
        "life",
        "sn",
        "at_ms",
        F.coalesce("fate", F.when(irrelevant, "irrelevant").otherwise("rejected")).alias("fate"),
        F.substring("text", 1, 300).alias("text"),
    )


def lost_lines(envelopes: DataFrame, coordinator: DataFrame, grammar: Grammar) -> DataFrame:
    """Find where a broker's log has holes: serial numbers missing, a start or an end cut off.

    Returns broker, life, at_ms, line, what, in words. The serial number counts every line written.
    """
    in_order = Window.partitionBy("broker", "life").orderBy("sn")
    numbered = envelopes.where(F.col("sn").isNotNull()).withColumn(
        "step", F.col("sn") - F.lag("sn").over(in_order)
    )
    holes = numbered.where(F.col("step") != 1).select(
        "broker",
        "life",
        "at_ms",
        "line",
        F.when(F.col("step") == 0, F.format_string("serial number %d stands twice", "sn"))
        .otherwise(
            F.format_string("%d lines missing before serial number %d", F.col("step") - 1, "sn")
        )
        .alias("what"),
    )
    first = (
        numbered.groupBy("broker", "life")
        .agg(F.min("sn").alias("sn"), F.min("at_ms").alias("at_ms"), F.min("line").alias("line"))
        .where((F.col("sn") != 1) | (F.col("life") == 0))
        .select(
            "broker", "life", "at_ms", "line", F.lit("the log's start is missing").alias("what")
        )
    )
    ended = (
        coordinator.where(F.col("template") == grammar.last_template)
        .select("broker", "life")
        .distinct()
    )
    last = (
        numbered.groupBy("broker", "life")
        .agg(F.max("at_ms").alias("at_ms"), F.max("line").alias("line"))
        .join(ended, ["broker", "life"], "left_anti")
        .select("broker", "life", "at_ms", "line", F.lit(END_MISSING).alias("what"))
    )
    off = numbered.where(F.abs(F.col("logged_ms") - F.col("at_ms")) > CLOCK_MS).select(
        "broker",
        "life",
        "at_ms",
        "line",
        F.lit("the time it shows is not its broker's").alias("what"),
    )
    return holes.union(first).union(last).union(off)
