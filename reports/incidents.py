"""From brokers' own logs, without a run folder, to the tables, JSON and page of an incident."""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.ingest import bundle, incident_pass, places, stock_logs
from reports.ingest.failures import explained
from reports.ingest.tables import among, rows_of
from reports.judgement.incident.group_incident import GroupIncident
from reports.judgement.incident.log_files import LogFile, log_files
from reports.judgement.incident.summary import Incident, summary
from reports.page import incident as page

Json = dict[str, Any]
Progress = Callable[[str], None]
FILES = ("incident.json", "incident.html")
SHOWN = 100
"""How many of the longest rebalances, worst members, moves, fences and rejected lines are kept."""
DRAWN = 20_000
"""How many rebalances the page draws at most; the tables have all."""
MOVES = ("loaded", "unloaded", "load_failed")


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
    with explained(logs[0] if len(logs) == 1 else "the logs"):
        progress("reading the lines")
        files = stock_logs.listed(spark, logs)
        read = stock_logs.read(spark, files, zone).persist()
        made: list[DataFrame] = [read]
        try:
            known = log_files([file.path for file in files], stock_logs.summaries(read))
            lines = _lines(spark, read, known).persist()
            made.append(lines)
            progress("telling what happened to each group")
            by_group = incident_pass.of_groups(lines.where("NOT copy"), session_ms).persist()
            made.append(by_group)
            found = _incident(read, lines, by_group, known, str(zone))
            incident = summary(found)
            progress("drawing the report")
            drawn = _first(by_group, "rebalances", "true", "at_ms", DRAWN)
            texts = {
                "incident.json": msgspec.json.format(msgspec.json.encode(incident)).decode() + "\n",
                "incident.html": page.render(incident, drawn),
            }
            with explained(output):
                _store(read, lines, by_group, f"{output}/tables")
                places.write_texts(spark, output, texts)
        finally:
            for frame in made:
                frame.unpersist()
    return incident


def _lines(spark: SparkSession, read: DataFrame, files: Sequence[LogFile]) -> DataFrame:
    """Return the table `lines` with brokers, ranks of files, and whether a line is a copy."""
    rows = [(file.path, file.broker, rank) for rank, file in enumerate(files)]
    known = spark.createDataFrame(rows, "file STRING, of_file STRING, rank INT")
    return stock_logs.counted_once(bundle.table(read, "lines"), known)


def _incident(
    read: DataFrame, lines: DataFrame, by_group: DataFrame, files: Sequence[LogFile], zone: str
) -> Incident:
    decode = msgspec.msgpack.Decoder(GroupIncident).decode
    counts = lines.groupBy("broker", "template", "copy", "file").count()
    rows = rows_of(counts)
    copies: dict[str, int] = {}
    templates: dict[tuple[str, str], int] = {}
    for row in rows:
        if row["copy"]:
            copies[row["file"]] = copies.get(row["file"], 0) + row["count"]
        else:
            key = (row["broker"], row["template"])
            templates[key] = templates.get(key, 0) + row["count"]
    once = lines.where("NOT copy")
    moves = once.where(among("template", MOVES)).orderBy("at_ms").limit(SHOWN)
    fenced = (
        once.where("template = 'fenced'")
        .select(
            F.get_json_object("fields", "$.instance").alias("instance"),
            F.get_json_object("fields", "$.operation").alias("operation"),
            "at_ms",
        )
        .groupBy("instance", "operation")
        .agg(F.count("*").alias("count"), F.min("at_ms").alias("first_ms"),
             F.max("at_ms").alias("last_ms"))
        .orderBy(F.desc("count"), "instance", "operation")
        .limit(SHOWN)
    )  # fmt: skip
    by_path = {file.path: file for file in files}
    return Incident(
        files,
        copies,
        {r["group"]: decode(r["incident"]) for r in rows_of(bundle.table(by_group, "groups"))},
        templates,
        _first(by_group, "rebalances", "took_ms IS NOT NULL", "took_ms DESC, at_ms"),
        _first(by_group, "members", "true", "rebalances DESC, expired DESC, client"),
        rows_of(moves.select("at_ms", "broker", "partition", "template")),
        rows_of(fenced),
        [
            {**_place(row, by_path), "why": row["why"], "line": row["line"]}
            for row in _first(read, "rejected", "true", "file, start, place")
        ],
        zone,
    )


def _place(row: Json, files: dict[str, LogFile]) -> Json:
    file = files[row["file"]]
    return {"file": file.name, "number": file.first_lines[row["start"]] + row["place"] + 1}


def _first(frame: DataFrame, name: str, where: str, order: str, most: int = SHOWN) -> list[Json]:
    wanted = bundle.table(frame, name).where(where)
    return rows_of(wanted.orderBy(*map(_order, order.split(", "))).limit(most))


def _order(column: str) -> Any:
    name, _, way = column.partition(" ")
    return F.desc(name) if way else F.asc(name)


def _store(read: DataFrame, lines: DataFrame, by_group: DataFrame, output: str) -> None:
    bundle.write_table(lines.drop("rank", "start", "place"), "lines", output)
    bundle.write_table(bundle.table(read, "rejected"), "rejected", output)
    bundle.write(by_group.coalesce(1), ["rebalances", "members"], output)
