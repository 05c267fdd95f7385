"""What it costs a run of 50 s that members note a million records that they process.

A member makes these calls for each record of librdkafka's, and writes to its history once a second
of the run. Seconds are processor time. It ends with an error unless each record was noted.
"""

import json
import statistics
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from confluent_kafka import Message

from loadtest.history import History
from loadtest.processed import Processed, producer_since

Json = dict[str, Any]
RECORDS, PARTITIONS, RUN_S, ROUNDS = 1_000_000, 16, 50, 3
EACH = RECORDS // RUN_S


def measure(folder: Path) -> Json:
    """Return the seconds of a run as a median, and the history's bytes."""
    producer = producer_since("producer-0", 0.0)
    took, path = [], folder / "history.jsonl"
    for _ in range(ROUNDS):
        path.unlink(missing_ok=True)
        with closing(History(path)) as history:
            processed, spent_s = Processed(history.write), 0.0
            for first in range(0, RECORDS, EACH):
                messages: list[Any] = [_message(producer, first + number) for number in range(EACH)]
                began_s = time.process_time()
                for one in messages:
                    partition = one.topic(), one.partition()
                    processed.record(partition, one.offset(), one.value(), 1.0)
                processed.write()
                spent_s += time.process_time() - began_s
        took.append(spent_s)
    noted = [json.loads(text)["ranges"] for text in path.read_text().splitlines()]
    every = [pair for ranges in noted for pairs in ranges.values() for pair in pairs]
    if (records := sum(last - first + 1 for first, last in every)) != RECORDS:
        raise click.ClickException(f"{records:,} records were noted, not {RECORDS:,}")
    return {"seconds": statistics.median(took), "bytes": path.stat().st_size}


def _message(producer: str, number: int) -> Message:
    offset, partition = divmod(number, PARTITIONS)
    value = f"{producer} {offset + 1}".encode()
    return Message(topic="orders", partition=partition, offset=offset, value=value)
