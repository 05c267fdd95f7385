"""The client history as Spark reads it: `history.jsonl` in; what lines say, and their account, out.

A line that is not understood is no row: it is counted, and the first one named.
"""

from collections.abc import Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reports.ingest import bundle, log_files
from reports.ingest.bundle import Bundle, Rows
from reports.judgement.run.history import LINE, Reader
from reports.judgement.run.json_form import Account

BUNDLE = Bundle({"lines": LINE, "accounts": "start LONG, account BINARY"})
_NAMES = BUNDLE.schemas["lines"].names


def read(spark: SparkSession, uri: str, reader: Reader) -> DataFrame:
    """Return the bundle `BUNDLE` of the history at a URI."""

    def read_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = Rows(BUNDLE)
        for split, of_split in groupby(log_files.parts(batches), key=itemgetter(0)):
            account = Account()
            lines = chain.from_iterable(values.to_pylist() for _, values in of_split)
            for said in account.entries(lines, reader):
                rows.add("lines", [*map(said.get, _NAMES)])
                yield from rows.batches()
            rows.add("accounts", (split.start, msgspec.msgpack.encode(account)))
        yield from rows.rest()

    return log_files.bounded(spark, [log_files.literal(uri)]).mapInArrow(
        read_splits, BUNDLE.columns
    )


def account(history: DataFrame) -> Account:
    """Return the account of all lines, of the bundle."""
    whole = Account()
    splits: list[dict[str, Any]] = bundle.table(history, "accounts").toArrow().to_pylist()
    for split in sorted(splits, key=itemgetter("start")):
        whole.merge(msgspec.msgpack.decode(split["account"], type=Account))
    return whole
