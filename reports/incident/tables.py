"""The tables of an incident: their columns, and the rows of both engines.

`lines` has every coordinator's line as it was read, also those that count once; `rejected` has the
lines that could not be read.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import json

from reports.incident.lines.reader import Line
from reports.incident.rows import Row

Json = dict[str, Any]
_PLACE = {"file": pa.string(), "start": pa.int64(), "place": pa.int64()}
_LINE = {
    "at_ms": pa.float64(), "broker": pa.string(), "partition": pa.int32(),
    "template": pa.string(), "group": pa.string(), "fields": pa.string(), "source": pa.string(),
    "line": pa.string(),
}  # fmt: skip
_LONGEST = 64 << 20
"""How many bytes a row may have as JSON."""
_WHY = {"why": pa.string()}
FOUND = pa.schema({**_PLACE, **_LINE, **_WHY, "summary": pa.string()})
"""Rows of three kinds: a coordinator's line has a template, a rejected line says why, and there is
one with the summary of each split."""
OWNED = pa.schema({**_PLACE, **_LINE, "key": pa.string()})
"""Coordinator's lines with their brokers, and the keys that they are brought together by."""
LINES = pa.schema({"file": pa.string(), **_LINE})
REJECTED = pa.schema({**_PLACE, **_WHY, "line": pa.string()})
REBALANCES = pa.schema({
    "group": pa.string(), "at_ms": pa.float64(), "broker": pa.string(), "reason": pa.string(),
    "clients": pa.string(), "client_reason": pa.string(), "generation": pa.int64(),
    "stabilized_ms": pa.float64(), "ended_ms": pa.float64(), "took_ms": pa.float64(),
    "ending": pa.string(), "members": pa.int64(), "came": pa.int32(), "went": pa.int32(),
    "spared": pa.bool_(), "is_begun": pa.bool_(), "after_ms": pa.float64(), "line": pa.string(),
})  # fmt: skip
MEMBERS = pa.schema({
    "group": pa.string(), "client": pa.string(), "static": pa.bool_(), "rebalances": pa.int32(),
    "came": pa.int32(), "went": pa.int32(), "expired": pa.int32(), "replaced": pa.int32(),
})  # fmt: skip
OF_KEY = pa.schema({
    "about": pa.binary(),
    "rebalances": pa.list_(pa.struct(list(REBALANCES))),
    "members": pa.list_(pa.struct(list(MEMBERS))),
})  # fmt: skip
"""What `rows.about` tells of a key."""
TABLES = {"lines": LINES, "rejected": REJECTED, "rebalances": REBALANCES, "members": MEMBERS}


def table_of(rows: Iterable[Json], schema: pa.Schema) -> pa.Table:
    """Return rows as a table; names that are no column are left out.

    By way of JSON: to look at lists of Python's, pyarrow imports pandas, which takes a second.
    """
    texts = b"\n".join(map(msgspec.json.encode, rows))
    if not texts:
        return pa.Table.from_batches([], schema)
    return json.read_json(
        pa.BufferReader(texts),
        json.ReadOptions(block_size=_LONGEST),
        json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    ).select(schema.names)


def as_columns(row: Row) -> Json:
    """Return a coordinator's line as a row of a table; `line` is its text."""
    line = row.line._asdict()
    fields = msgspec.json.encode(row.line.fields).decode()
    return {**row._asdict(), **line, "fields": fields, "line": line.pop("text")}


def row_of(columns: Json) -> Row:
    """Return the coordinator's line that a row of a table is."""
    fields = msgspec.json.decode(columns["fields"])
    line = {name: columns[name] for name in Line._fields if name in columns}
    text = Line(**line | {"fields": fields, "text": columns["line"]})
    return Row(columns["file"], columns["start"], columns["place"], text)
