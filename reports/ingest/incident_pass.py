"""The pass over the lines of brokers' own logs that tells what happened to each group.

Executors import this module: it needs nothing of what only the driver has.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from reports.ingest.bundle import Bundle, Rows
from reports.judgement.incident import group_incident
from reports.judgement.incident.stock_lines import Line

Json = dict[str, Any]
OF_GROUPS = Bundle(group_incident.TABLES)


def of_groups(lines: DataFrame, session_ms: float | None) -> DataFrame:
    """Return the bundle of what happened to each group."""

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = Rows(OF_GROUPS)
        every = (row for batch in batches for row in batch.to_pylist())
        for group, of_group in groupby(every, key=itemgetter("group")):
            for name, row in group_incident.rows_of_group(group, map(_line, of_group), session_ms):
                rows.add_named(name, row)
            yield from rows.batches()
        yield from rows.rest()

    about = lines.where("group IS NOT NULL").repartition("group")
    ordered = about.sortWithinPartitions("group", "at_ms", "rank", "start", "place")
    return ordered.mapInArrow(tell, OF_GROUPS.columns)


def _line(row: Json) -> Line:
    return Line(
        row["at_ms"],
        row["broker"],
        row["partition"],
        row["template"],
        row["group"],
        msgspec.json.decode(row["fields"]),
        row["line"],
    )
