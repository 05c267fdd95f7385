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
from reports.judgement.run.history import LINE, Read
from reports.judgement.run.json_form import Account

BUNDLE = Bundle({"lines": LINE, "accounts": "start LONG, account BINARY"})


def read(spark: SparkSession, uri: str, of_line: Read) -> DataFrame:
    """Return the bundle `BUNDLE` of the history at a URI."""

    def read_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = Rows(BUNDLE)
        lines = chain.from_iterable(
            zip(batch["start"].to_pylist(), batch["value"].to_pylist(), strict=True)
            for batch in batches
        )
        for start, of_split in groupby(lines, key=itemgetter(0)):
            account = Account()
            for said in account.entries(map(itemgetter(1), of_split), of_line):
                rows.add("lines", msgspec.structs.astuple(said))
                yield from rows.batches()
            rows.add("accounts", (start, msgspec.msgpack.encode(account)))
        yield from rows.rest()

    lines = log_files.bounded(spark, [log_files.literal(uri)])
    return lines.mapInArrow(read_splits, BUNDLE.columns)
