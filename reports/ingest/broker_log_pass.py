"""The broker log pass: captured lines in; requests, coordinator lines and line statuses out.

The lines of one broker depend on each other (its processes, clocks and serial numbers), those of
different brokers do not. Each Spark task reads the log of one broker in the order of its lines.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reports.ingest.parts import parts, recreate, schema
from reports.judgement.broker_log import STATUSES, TABLES, Clocks, Log
from reports.judgement.parsing import Parser

Json = dict[str, Any]

LINES = "broker STRING, file STRING, line LONG, text STRING"
"""The columns of the captured lines."""
READ = (
    "broker STRING, process LONG, last_ms DOUBLE, partition INT, used LONG, irrelevant LONG, "
    "rejected LONG"
)
"""What is known of each process of a broker (see `broker_log.BrokerProcess`)."""


def read_logs(lines: DataFrame, brokers: Sequence[str], clocks: Clocks, folder: Path) -> list[Json]:
    """Read the lines of brokers into the tables `TABLES` of a folder; return rows of `READ`."""
    recreate(folder, TABLES)
    grammar, numbered = clocks.parser.grammar, clocks.parser.numbered
    offsets = clocks.offsets()

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parser = Parser(grammar, numbered)
        rows = (row for batch in batches for row in _rows(batch))
        processes: list[Json] = []
        with parts(folder, TABLES) as tables:
            add = lambda name, row: tables[name].add(row)
            for broker, logged in groupby(rows, key=itemgetter(0)):
                log = Log(broker, parser, offsets, add)
                for _, file, line, text in logged:
                    log.read(file, line, text)
                processes += (
                    {
                        "broker": broker,
                        "process": process.number,
                        "last_ms": process.last_ms,
                        "partition": process.partition,
                        **{status: process.statuses[status] for status in STATUSES},
                    }
                    for process in log.end()
                )
        yield pa.RecordBatch.from_pylist(processes, schema=schema(READ))

    place = F.array_position(F.lit(list(brokers)), F.col("broker")) - 1
    read_processes = (
        lines.repartitionById(len(brokers), place.cast("int"))
        .sortWithinPartitions("line")
        .mapInArrow(read, READ)
    )
    return [row.asDict() for row in read_processes.collect()]


def _rows(batch: pa.RecordBatch) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)
