"""Capture: log files in, one table of numbered lines out.

Line numbers are added here, before Spark reads the text: a split of a file has no line numbers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reports.judgement.errors import EvidenceError

LINES = pa.schema(
    [
        ("broker", pa.string()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("text", pa.string()),
    ]
)
BATCH = 50_000


Look = Callable[[str, str], None]
"""Gets broker (id) and text of every line."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The number of captured lines, and the brokers (ids) they come from."""

    lines: int
    brokers: tuple[str, ...]


def capture(folder: Path, target: Path, look: Look) -> Captured:
    """Copy the lines of `folder`/brokers/<id>/group.log into a Parquet file.

    Bytes that are not UTF-8 become replacement characters. `look` gets the lines of each broker in
    their order. Raises EvidenceError where there is no log, all are empty, or one cannot be read.
    """
    logs = sorted((folder / "brokers").glob("*/group.log"))
    if not logs:
        raise EvidenceError(
            f"{folder}: no brokers/<id>/group.log; give the folder of a run, such as runs/latest"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with pq.ParquetWriter(target, LINES) as writer:
        for log in logs:
            for batch in _batches(log, log.relative_to(folder), look):
                writer.write_batch(batch)
                count += batch.num_rows
    if count == 0:
        raise EvidenceError(
            f"{folder}: every group.log is empty; read brokers/*/stdout.log for the reason"
        )
    return Captured(count, tuple(log.parent.name for log in logs))


def _batches(log: Path, name: Path, look: Look) -> Iterator[pa.RecordBatch]:
    broker = log.parent.name
    texts: list[str] = []
    first = 1
    try:
        with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for line in lines:
                text = line.rstrip("\r\n")
                look(broker, text)
                texts.append(text)
                if len(texts) == BATCH:
                    yield _batch(broker, name, first, texts)
                    first += len(texts)
                    texts = []
    except OSError as error:
        raise EvidenceError(
            f"{log}: cannot be read ({error.strerror}); check the file and its permissions"
        ) from error
    if texts:
        yield _batch(broker, name, first, texts)


def _batch(broker: str, name: Path, first: int, texts: list[str]) -> pa.RecordBatch:
    count = len(texts)
    return pa.record_batch(
        [
            pa.array([broker] * count),
            pa.array([str(name)] * count),
            pa.array(range(first, first + count), pa.int64()),
            pa.array(texts),
        ],
        schema=LINES,
    )
