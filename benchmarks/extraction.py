"""The same fields of every completed request, by DuckDB and by Spark, in a warm process.

DuckDB takes the prefix of a line by a regular expression and each field by another, on as many
threads as Spark has cores. Spark reads the lines as a report does, and decodes them with the
project's own parser. Both only count what they extract. Rounds after the first count.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka_protocol.request_log import COMPLETED
from reports.judgement.log.parsing import Parser, parse_request
from reports.judgement.run.run_folder import RunFolder, logs_bytes

Json = dict[str, Any]
ROUNDS = 4
PREFIX = rf"^(\d+) (\d+) (\d+) (\S+) (\w+) {COMPLETED}"
FIELDS = {
    "api": r'"requestApiKeyName":"(\w+)"',
    "version": r'"requestApiVersion":(\d+)',
    "client_id": r'"clientId":"([^"]*)"',
    "correlation_id": r'"correlationId":(\d+)',
    "connection": r'"connection":"([^"]*)"',
    "group_id": r'"groupId":"([^"]*)"',
    "request": r'"request":(.*),"response":',
    "response": r'"response":(.*),"connection":',
    "error": r'"errorCode":(-?\d+)',
    "total": r'"totalTimeMs":([\d.]+)',
    "queue": r'"requestQueueTimeMs":([\d.]+)',
    "local": r'"localTimeMs":([\d.]+)',
    "remote": r'"remoteTimeMs":([\d.]+)',
    "answer_queue": r'"responseQueueTimeMs":([\d.]+)',
    "sending": r'"sendTimeMs":([\d.]+)',
}


def by_duckdb(folder: Path) -> Json:
    """Extract with DuckDB."""
    import duckdb  # noqa: PLC0415 (the other side does without)

    files = f"{folder}/brokers/*/group.log"
    columns = ", ".join(
        f"regexp_extract(line, '{regex}', 1) AS {name}" for name, regex in FIELDS.items()
    )
    lengths = " + ".join(f"sum(length({name}))" for name in FIELDS)
    names = "['sn', 'ms', 'nanos', 'thread', 'level']"
    query = f"""
        WITH lines AS (
            SELECT * FROM read_csv('{files}', columns = {{'line': 'VARCHAR'}}, delim = '\x01',
                quote = '', escape = '', header = false, max_line_size = 16000000)
            WHERE contains(line, '{COMPLETED}')
        ), fields AS (
            SELECT regexp_extract(line, '{PREFIX}', {names}) AS prefix, {columns} FROM lines
        )
        SELECT count(*), sum(length(prefix.sn) + length(prefix.nanos)), {lengths} FROM fields
    """  # noqa: S608 (nothing in it is given by others)
    with duckdb.connect(config={"threads": os.cpu_count() or 1}) as database:
        return _rounds(folder, lambda: int(database.execute(query).fetchall()[0][0]))


def by_spark(folder: Path) -> Json:
    """Extract with Spark and the project's parser."""
    import pyarrow as pa  # noqa: PLC0415

    from reports.ingest import log_files  # noqa: PLC0415
    from reports.ingest.places import uri_of  # noqa: PLC0415
    from reports.ingest.spark import SparkOptions, session  # noqa: PLC0415

    run = RunFolder(folder)
    parser = Parser(run.grammar, run.numbered_lines)

    def extract(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for *_, lines in log_files.by_split(batches):
            count = length = 0
            for text in (line.decode("utf-8", "replace") for line in lines):
                if COMPLETED in text:
                    parts = parser.split(text)
                    found = parse_request(parts.body)
                    count += 1
                    length += len(found.request or "") + len(found.response or "")
            yield pa.RecordBatch.from_pylist([{"count": count, "length": length}])

    size = logs_bytes(folder)
    with session(SparkOptions("local[*]"), size, folder / "spark.log") as spark:
        lines = log_files.lines(spark, uri_of(folder), parser.folder)
        return _rounds(
            folder,
            lambda: int(
                lines.mapInArrow(extract, "count LONG, length LONG")
                .selectExpr("sum(count)")
                .collect()[0][0]
            ),
        )


def _rounds(folder: Path, count: Any) -> Json:
    """Return MB/s of each round after the first, and how many requests were extracted."""
    size = logs_bytes(folder)
    speeds, counted = [], 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        counted = count()
        speeds.append(size / 1e6 / (time.perf_counter() - began))
    return {"mb_s": speeds[1:], "requests": counted}
