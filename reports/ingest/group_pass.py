"""The group pass: all rows of a group in; its timelines, comparison and checks out.

Spark adds no logic: it brings rows together by group, and `reports.judgement` does the rest.
`mapInArrow` over sorted partitions keeps one group in memory at a time.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from reports.ingest.parts import parts, recreate
from reports.judgement.group import TABLES, Judge

EVIDENCE = """
SELECT
    group, broker, file, line, at_ms, NULL AS template, NULL AS partition, NULL AS member,
    NULL AS instance, NULL AS generation, NULL AS members, NULL AS static_members, NULL AS reason,
    id, api, api_version, client_id, connection, correlation_id, arrived_ms, earliest_ms, latest_ms,
    answered_ms, error_code, request, response, readable
FROM {requests} WHERE group IS NOT NULL
UNION ALL SELECT
    group, broker, file, line, at_ms, template, partition, member, instance, generation, members,
    static_members, reason, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL
FROM {lines} WHERE group IS NOT NULL
"""


def evidence_rows(requests: DataFrame, lines: DataFrame) -> DataFrame:
    """Unite the requests and the coordinator lines of all groups in one table."""
    return requests.sparkSession.sql(EVIDENCE, requests=requests, lines=lines)


def run(evidence: DataFrame, judge: Judge, folder: Path, partitions: int = 4) -> int:
    """Judge every group; write the tables `TABLES` into a folder; return the number of groups."""
    recreate(folder, TABLES)

    def judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        count = 0
        with parts(folder, TABLES) as tables:
            for group, logged in groupby(rows, key=itemgetter("group")):
                for name, row in judge.tables(group, logged):
                    tables[name].add_named({"group": group, **row})
                count += 1
        yield pa.record_batch([pa.array([count], pa.int64())], names=["groups"])

    judged_of_each = (
        evidence.repartition(partitions, "group")
        .sortWithinPartitions("group")
        .mapInArrow(judged, "groups LONG")
    )
    return sum(row["groups"] for row in judged_of_each.collect())
