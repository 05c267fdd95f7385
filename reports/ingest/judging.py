"""The second pass: packed rows by bucket of group in; tables, and what the verdict needs, out.

Buckets are placed on partitions by size. A partition judges them one after the other and writes its
tables; of these, few and small ones come back.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reports.ingest.reading import SUMMARY, unpacked
from reports.ingest.storing import RESULT, Files
from reports.judgement.buckets import Buckets
from reports.judgement.collector import collector_spared

ROWS_OF_PARTITION = 50_000
"""How many rows a partition has, about: some seconds of judging. Small evidence has smaller ones,
so that there is work for some cores."""
SOME = 16
"""How many partitions evidence of middle size has, at most: cores that differ end at one time."""


def placed(blobs: DataFrame, rows: Counter[int]) -> DataFrame:
    """Bring the blobs of a bucket together, in the order in which they are judged."""
    total = sum(rows.values())
    count = max(min(total // 5_000, SOME), total // ROWS_OF_PARTITION, 2)
    place = dict(_places_of(rows, count))
    places = F.lit([place.get(bucket, 0) for bucket in range(max(place, default=0) + 1)])
    of_buckets = blobs.where(F.col("bucket") != SUMMARY)
    by_place = of_buckets.repartitionById(count, F.get(places, F.col("bucket")))
    return by_place.sortWithinPartitions("bucket", "group", "since_ms", "file", "start")


def _places_of(rows: Mapping[int, int], count: int) -> Iterator[tuple[int, int]]:
    """Yield which partition each bucket goes to: the fullest first, to the emptiest partition.

    The partitions are numbered by their rows, the most first: theirs are the first tasks.
    """
    loads, of_partition = [0] * count, [list[int]() for _ in range(count)]
    for bucket in sorted(rows, key=lambda bucket: (-rows[bucket], bucket)):
        least = min(range(count), key=lambda number: (loads[number], number))
        loads[least] += rows[bucket]
        of_partition[least].append(bucket)
    ordered = sorted(range(count), key=lambda number: (-loads[number], number))
    for place, number in enumerate(ordered):
        yield from ((bucket, place) for bucket in of_partition[number])


def judged(
    blobs: DataFrame,
    buckets: Buckets,
    folder: Path | None,
    stored: Collection[str],
    kept: Collection[str],
) -> DataFrame:
    """Judge blobs that are `placed`: return what tasks tell (`RESULT`).

    They write the `stored` tables below a folder, and tell the rows of those that are `kept`.
    """

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = Files(folder, stored, kept)
        with collector_spared():
            buckets.judged(unpacked(batches), files.add)
        yield files.end()

    return blobs.mapInArrow(judge, RESULT)
