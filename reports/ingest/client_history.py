"""The client history as Spark reads it: `history.jsonl` in; events of members, and an account, out.

A line that is not understood is no row: it is counted, and the first one named. How late gevent's
hub ran is counted, too.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reports.ingest import bundle, log_files
from reports.ingest.bundle import Bundle, Rows
from reports.judgement.costs import HubGaps
from reports.judgement.run.history import EVENTS, HUB_LAG, LINE, Read
from reports.judgement.run.json_form import Account

BUNDLE = Bundle({"lines": LINE, "accounts": "start LONG, account BINARY, late_ms BINARY"})


def read(spark: SparkSession, uri: str, of_line: Read) -> DataFrame:
    """Return the bundle `BUNDLE` of the history at a URI."""

    def read_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = Rows(BUNDLE)
        lines = chain.from_iterable(
            zip(batch["start"].to_pylist(), batch["value"].to_pylist(), strict=True)
            for batch in batches
        )
        for start, of_split in groupby(lines, key=itemgetter(0)):
            account, late_ms = Account(), Counter[float]()
            for said in account.entries(map(itemgetter(1), of_split), of_line):
                if said.event == HUB_LAG and said.max_ms is not None:
                    late_ms[said.max_ms] += 1
                elif said.event in EVENTS and said.group is not None:
                    rows.add("lines", msgspec.structs.astuple(said))
                    yield from rows.batches()
            rows.add("accounts", (start, *map(msgspec.msgpack.encode, (account, late_ms))))
        yield from rows.rest()

    lines = log_files.bounded(spark, [log_files.literal(uri)])
    return lines.mapInArrow(read_splits, BUNDLE.columns)


def doubts(history: DataFrame, name: str) -> tuple[list[str], HubGaps | None]:
    """Say what of a history is not understood, and how late the hub ran; given as the bundle."""
    whole, late_ms = Account(), Counter[float]()
    splits: list[dict[str, Any]] = bundle.table(history, "accounts").toArrow().to_pylist()
    for split in sorted(splits, key=itemgetter("start")):
        whole.merge(msgspec.msgpack.decode(split["account"], type=Account))
        late_ms.update(msgspec.msgpack.decode(split["late_ms"], type=dict[float, int]))
    return whole.doubts(name), HubGaps.of(late_ms)
