"""The oracle inside Spark: all evidence of a group in, its expected timeline and checks out.

Spark adds no logic: rows are grouped and sorted, and `reference_coordinator.replay` does the rest.
Source of the form: `mapInArrow` over sorted partitions, which does not hold a table of groups.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reference_coordinator.profiles import Profile
from reference_coordinator.replay import (
    Evidence,
    Hint,
    HintKind,
    Observed,
    Outage,
    Replay,
    Serving,
    Stall,
    replay,
)
from reports.grammar import GROUP_APIS

INPUT = ("group", "at_ms", "kind", "payload")
OUTPUT = "group STRING, kind STRING, payload STRING"

ROW = """
    incarnation INT, old_generation INT, started_ms DOUBLE, earliest_ms DOUBLE, latest_ms DOUBLE,
    reason STRING, member_id STRING, joined_ms DOUBLE, generation INT, members INT, leader STRING,
    assigned_ms DOUBLE, assigned_members INT, static_members INT, ended_as STRING, ended_ms DOUBLE
"""
SAID = "line STRING, subject STRING, at_ms DOUBLE, earliest_ms DOUBLE, latest_ms DOUBLE"
CHECKED = "request STRING, explained BOOLEAN"
VIOLATION = """
    at_ms DOUBLE, until_ms DOUBLE, request STRING, rule STRING, expected STRING, observed STRING,
    searched BOOLEAN
"""


def evidence_rows(requests: DataFrame, hints: DataFrame, servings: DataFrame) -> DataFrame:
    """Put everything the oracle may see of a group into one sorted table."""
    request_fields = (
        "id", "broker", "api", "api_version", "client_id", "connection",
        "earliest_ms", "at_ms", "latest_ms", "answered_ms", "request", "response", "serial",
    )  # fmt: skip
    asked = requests.where(F.col("readable") & F.col("api").isin(*GROUP_APIS))
    return (
        asked.select(
            "group",
            "at_ms",
            F.lit("request").alias("kind"),
            F.to_json(F.struct(*request_fields)).alias("payload"),
        )
        .union(
            hints.select(
                "group",
                "at_ms",
                F.lit("hint").alias("kind"),
                F.to_json(F.struct("at_ms", "kind", "subject", "generation", "broker")).alias(
                    "payload"
                ),
            )
        )
        .union(
            servings.select(
                "group",
                "at_ms",
                F.lit("serving").alias("kind"),
                F.to_json(F.struct("at_ms", "broker", "kind")).alias("payload"),
            )
        )
    )


def run(
    evidence: DataFrame,
    profile: Profile,
    stalls: Sequence[Stall] = (),
    outages: Sequence[Outage] = (),
    partitions: int = 4,
) -> DataFrame:
    """Replay every group; the result's `payload` is JSON of the kind `kind` (see `typed`).

    `stalls` are the times in which brokers are known to have stood still, `outages` those in which
    writes may have failed because one was down.
    """

    def replays(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for group, items in groupby(rows, key=lambda row: row["group"]):
            evidence = replace(
                _evidence(group, items), stalls=tuple(stalls), outages=tuple(outages)
            )
            yield _output(group, replay(evidence, profile))

    return (
        evidence.select(*INPUT)
        .repartition(partitions, "group")
        .sortWithinPartitions("group", "at_ms", "payload")
        .mapInArrow(replays, OUTPUT)
    )


def evidence_of(
    evidence: DataFrame, group: str, stalls: Sequence[Stall], outages: Sequence[Outage]
) -> Evidence:
    """Bring one group's evidence to the driver, as `run` takes it."""
    mine = evidence.where(F.col("group") == group).select(*INPUT).orderBy("at_ms", "payload")
    told = _evidence(group, (row.asDict() for row in mine.collect()))
    return replace(told, stalls=tuple(stalls), outages=tuple(outages))


def typed(output: DataFrame, kind: str, schema: str) -> DataFrame:
    """Select one kind of output rows as a table of its own."""
    return (
        output.where(F.col("kind") == kind)
        .select("group", F.from_json("payload", schema).alias("row"))
        .select("group", "row.*")
    )


def _evidence(group: str, rows: Iterable[dict[str, Any]]) -> Evidence:
    requests: list[Observed] = []
    hints: list[Hint] = []
    servings: list[Serving] = []
    for row in rows:
        item = json.loads(row["payload"])
        if row["kind"] == "request":
            item["request"] = json.loads(item["request"])
            item["response"] = json.loads(item["response"])
            requests.append(Observed(**item))
        elif row["kind"] == "hint":
            hints.append(Hint(**{**item, "kind": HintKind(item["kind"])}))
        else:
            servings.append(Serving(**item))
    return Evidence(group, tuple(requests), tuple(hints), tuple(servings))


def _output(group: str, result: Replay) -> pa.RecordBatch:
    kinds: list[str] = []
    payloads: list[str] = []
    for kind, items in (
        ("row", result.rows),
        ("checked", result.checked),
        ("violation", result.violations),
        ("said", result.said),
    ):
        kinds += [kind] * len(items)
        payloads += [json.dumps(_finite(asdict(item))) for item in items]
    for name, count in result.bound.items():
        kinds.append("bound")
        payloads.append(json.dumps({"name": name, "count": count}))
    return pa.record_batch(
        [pa.array([group] * len(kinds)), pa.array(kinds), pa.array(payloads)],
        names=["group", "kind", "payload"],
    )


def _finite(item: dict[str, Any]) -> dict[str, Any]:
    """Write "until the end" as a time that JSON has a word for."""
    return {k: 1e15 if v == float("inf") else v for k, v in item.items()}
