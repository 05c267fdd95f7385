"""Ingest: captured lines in; requests, coordinator lines and the account of every line out.

A broker's lines hang together (its lives, clocks and serial numbers), those of two do not: each
task reads one broker's log in its order.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reports.ingest.parts import emptied, parts, schema
from reports.judgement.broker_log import FATES, TABLES, Clocks, Log
from reports.judgement.parsing import Parser

Json = dict[str, Any]

LINES = "broker STRING, file STRING, line LONG, text STRING"
"""The captured lines."""
READ = (
    "broker STRING, life LONG, last_ms DOUBLE, partition INT, used LONG, irrelevant LONG, "
    "rejected LONG"
)
"""What is told of each life of a broker (see `reading.Life`)."""


def read_logs(lines: DataFrame, brokers: Sequence[str], clocks: Clocks, folder: Path) -> list[Json]:
    """Read the lines of brokers into the tables `TABLES` of a folder; return rows of `READ`."""
    emptied(folder, TABLES)
    grammar, numbered = clocks.parser.grammar, clocks.parser.numbered
    offsets = clocks.offsets()

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parser = Parser(grammar, numbered)
        rows = (row for batch in batches for row in _rows(batch))
        lives: list[Json] = []
        with parts(folder, TABLES) as tables:
            add = lambda name, row: tables[name].add(row)
            for broker, told in groupby(rows, key=itemgetter(0)):
                log = Log(broker, parser, offsets, add)
                for _, file, line, text in told:
                    log.read(file, line, text)
                lives += (
                    {
                        "broker": broker,
                        "life": life.number,
                        "last_ms": life.last_ms,
                        "partition": life.partition,
                        **{fate: life.fates[fate] for fate in FATES},
                    }
                    for life in log.end()
                )
        yield pa.RecordBatch.from_pylist(lives, schema=schema(READ))

    place = F.array_position(F.lit(list(brokers)), F.col("broker")) - 1
    read_lives = (
        lines.repartitionById(len(brokers), place.cast("int"))
        .sortWithinPartitions("line")
        .mapInArrow(read, READ)
    )
    return [row.asDict() for row in read_lives.collect()]


def _rows(batch: pa.RecordBatch) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)
