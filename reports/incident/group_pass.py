"""The pass over the lines of brokers' own logs that tells what happened to each group.

Executors import this module: it needs nothing of what only the driver has.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from reports.incident.group_incident import row_about
from reports.incident.stock_lines import Line
from reports.incident.stock_logs import Json, batched

OF_REBALANCE = pa.struct({
    "group": pa.string(), "at_ms": pa.float64(), "broker": pa.string(), "reason": pa.string(),
    "clients": pa.string(), "client_reason": pa.string(), "generation": pa.int64(),
    "stabilized_ms": pa.float64(), "ended_ms": pa.float64(), "took_ms": pa.float64(),
    "ending": pa.string(), "members": pa.int64(), "came": pa.int32(), "went": pa.int32(),
    "spared": pa.bool_(), "line": pa.string(),
})  # fmt: skip
OF_MEMBER = pa.struct({
    "group": pa.string(), "client": pa.string(), "static": pa.bool_(), "rebalances": pa.int32(),
    "came": pa.int32(), "went": pa.int32(), "expired": pa.int32(), "replaced": pa.int32(),
})  # fmt: skip
OF_GROUP = pa.schema({
    "group": pa.string(), "incident": pa.binary(),
    "rebalances": pa.list_(OF_REBALANCE), "members": pa.list_(OF_MEMBER),
})  # fmt: skip
"""A row for each group; `incident` is its part of `incident.json`."""


def of_groups(lines: DataFrame, session_ms: float | None) -> DataFrame:
    """Return the rows `OF_GROUP`; `session_ms` is the session asked for, if any."""

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        every = (_line(row) for batch in batches for row in batch.to_pylist())
        by_group = groupby(every, key=attrgetter("group"))
        rows = (row_about(group, about, session_ms) for group, about in by_group)
        yield from batched(map(_packed, rows), OF_GROUP)

    about = lines.where("group IS NOT NULL").repartition("group")
    ordered = about.sortWithinPartitions("group", "at_ms", "rank", "start", "place")
    columns = ordered.withColumnRenamed("line", "text").select(*Line._fields)
    return columns.mapInArrow(tell, from_arrow_schema(OF_GROUP))


def _line(row: Json) -> Line:
    return Line(**row | {"fields": msgspec.json.decode(row["fields"])})


def _packed(row: Json) -> Json:
    return row | {"incident": msgspec.json.encode(row["incident"])}
