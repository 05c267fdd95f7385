"""From brokers' own logs, without a run folder, to the tables, JSON and page of an incident."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import tzinfo
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.incident import page, stock_logs
from reports.incident.log_files import log_files
from reports.incident.summary import summary
from reports.ingest import places
from reports.ingest.failures import explained

Json = dict[str, Any]
Progress = Callable[[str], None]
FILES = ("incident.json", "incident.html")
SHOWN = 100
"""How many of the longest rebalances, worst members, moves, fences and rejected lines are kept."""
DRAWN = 20_000
"""How many rebalances the page draws at most; the tables have all."""
MOVES = ("loaded", "unloaded", "load_failed")
REJECTED = ("file", "start", "place", "why", "line")


def analyse(
    spark: SparkSession,
    logs: Sequence[str],
    output: str,
    zone: tzinfo,
    session_ms: float | None = None,
    *,
    progress: Progress = lambda _: None,
) -> Json:
    """Report the incident that some logs tell, and store it; return the content of its JSON.

    `logs` and `output` are URIs. `session_ms` is the session of the estimate, if one is asked for.
    Raises EvidenceError where a place cannot be read or written, no line is a coordinator's, or the
    logs are of different clusters.
    """
    with explained(logs[0] if len(logs) == 1 else "the logs"), ExitStack() as until_stored:

        def kept(frame: DataFrame) -> DataFrame:
            until_stored.callback(frame.unpersist)
            return frame.persist()

        progress("reading the lines")
        paths = stock_logs.listed(spark, logs)
        found = kept(stock_logs.read(spark, paths, zone))
        files = log_files(paths, stock_logs.summaries(found))
        lines = kept(stock_logs.counted_once(spark, found, files))
        progress("telling what happened to each group")
        groups = kept(stock_logs.of_groups(lines.where("NOT copy"), session_ms))
        tables = {
            "lines": lines.drop("rank", "start", "place"),
            "rejected": found.where("why IS NOT NULL").select(*REJECTED),
            "rebalances": groups.select(F.inline("rebalances")).coalesce(1),
            "members": groups.select(F.inline("members")).coalesce(1),
        }
        incident = _incident(tables, groups, files, str(zone))
        progress("drawing the report")
        drawn = _first(tables["rebalances"], "at_ms", "group", most=DRAWN)
        texts = {
            "incident.json": msgspec.json.format(msgspec.json.encode(incident)).decode() + "\n",
            "incident.html": page.render(incident, drawn),
        }
        with explained(output):
            for name, table in tables.items():
                table.write.mode("overwrite").parquet(f"{output}/tables/{name}")
            places.write_texts(spark, output, texts)
    return incident


def _incident(
    tables: dict[str, DataFrame], groups: DataFrame, files: Sequence[Json], zone: str
) -> Json:
    lines, by_path = tables["lines"], {file["path"]: file for file in files}
    counts = lines.groupBy("broker", "template", "copy", "file").count().toArrow().to_pandas()
    copies = counts[counts["copy"]].groupby("file")["count"].sum().to_dict()
    once = counts[~counts["copy"]].groupby(["broker", "template"])["count"].sum().to_dict()
    for path, count in copies.items():
        by_path[path]["copies"] = count
    move = ("at_ms", "broker", "partition", "template")
    moves = lines.where(~F.col("copy") & F.col("template").isin(*MOVES)).select(*move)
    said = lambda name: F.get_json_object("fields", f"$.{name}").alias(name)
    fenced = lines.where("NOT copy AND template = 'fenced'")
    requests = fenced.groupBy(said("instance"), said("operation")).agg(
        F.expr("count(*) AS count"), F.expr("min(at_ms) AS first_ms"),
        F.expr("max(at_ms) AS last_ms"),
    )  # fmt: skip
    ended = tables["rebalances"].where("took_ms IS NOT NULL")
    worst = (F.desc("rebalances"), F.desc("expired"), "client", "group")
    shown = {
        "longest": _first(ended, F.desc("took_ms"), "at_ms", "group"),
        "worst_members": _first(tables["members"], *worst),
        "coordinator_moves": _first(moves, *move),
        "fenced": _first(requests, F.desc("count"), "instance", "operation"),
        "rejected": [
            {
                "file": by_path[row["file"]]["name"],
                "number": by_path[row["file"]]["first_lines"][row["start"]] + row["place"] + 1,
                "why": row["why"],
                "line": row["line"],
            }
            for row in _first(tables["rejected"], "file", "start", "place")
        ],
    }
    rows = groups.select("group", "incident").toArrow().to_pylist()
    by_group = {row["group"]: msgspec.json.decode(row["incident"]) for row in rows}
    return summary(files, by_group, once, shown, zone)


def _first(rows: DataFrame, *order: str | Column, most: int = SHOWN) -> list[Json]:
    found: list[Json] = rows.orderBy(*order).limit(most).toArrow().to_pylist()
    return found
