"""The tables of an incident: their columns, and the rows of both engines.

`lines` has every coordinator's line as it was read, also those that count once; `rejected` has the
lines that could not be read.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import json

from reports.incident.rows import Row

Json = dict[str, Any]
_LONGEST = 64 << 20
"""How many bytes a row may have as JSON."""
TABLES = {
    "lines": pa.schema({
        "file": pa.string(), "at_ms": pa.float64(), "broker": pa.string(), "partition": pa.int32(),
        "template": pa.string(), "group": pa.string(), "fields": pa.string(),
        "source": pa.string(), "line": pa.string(),
    }),
    "rejected": pa.schema({
        "file": pa.string(), "start": pa.int64(), "place": pa.int64(), "why": pa.string(),
        "line": pa.string(),
    }),
    "rebalances": pa.schema({
        "group": pa.string(), "at_ms": pa.float64(), "broker": pa.string(), "reason": pa.string(),
        "clients": pa.string(), "client_reason": pa.string(), "generation": pa.int64(),
        "stabilized_ms": pa.float64(), "ended_ms": pa.float64(), "took_ms": pa.float64(),
        "ending": pa.string(), "members": pa.int64(), "came": pa.int32(), "went": pa.int32(),
        "spared": pa.bool_(), "is_begun": pa.bool_(), "after_ms": pa.float64(),
        "line": pa.string(),
    }),
    "members": pa.schema({
        "group": pa.string(), "client": pa.string(), "static": pa.bool_(), "rebalances": pa.int32(),
        "came": pa.int32(), "went": pa.int32(), "expired": pa.int32(), "replaced": pa.int32(),
    }),
}  # fmt: skip


def table_of(rows: Iterable[Row | Json], schema: pa.Schema) -> pa.Table:
    """Return rows as a table; names that are no column are left out.

    By way of JSON: to look at lists of Python's, pyarrow imports pandas, which takes a second.
    """
    texts = b"\n".join(msgspec.json.encode(_columns(row)) for row in rows)
    if not texts:
        return pa.Table.from_batches([], schema)
    return json.read_json(
        pa.BufferReader(texts),
        json.ReadOptions(block_size=_LONGEST),
        json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    ).select(schema.names)


def _columns(row: Row | Json) -> Json:
    """Return a row of a table; `line` of a coordinator's line is its text."""
    if not isinstance(row, Row):
        return row
    fields = msgspec.json.encode(row.line.fields).decode()
    return {"file": row.file, **row.line._asdict(), "fields": fields, "line": row.line.text}
