"""The group pass: all rows of a group in; its timelines, comparison and checks out.

Spark adds no logic: it brings rows together by group, and `reports.judgement` does the rest.
`mapInArrow` over sorted partitions keeps one group in memory at a time.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
from pyspark.sql import DataFrame

from reports.ingest.bundle import Bundle, Rows
from reports.judgement.group import TABLES, Judge

BUNDLE = Bundle(TABLES)
"""The tables that are made of each group."""

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


def judged(evidence: DataFrame, judge: Judge, partitions: int = 4) -> DataFrame:
    """Judge every group; return the bundle `BUNDLE`."""

    def of_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        made = Rows(BUNDLE)
        for group, logged in groupby(rows, key=itemgetter("group")):
            for name, row in judge.tables(group, logged):
                made.add_named(name, {"group": group, **row})
            yield from made.batches()
        yield from made.rest()

    return (
        evidence.repartition(partitions, "group")
        .sortWithinPartitions("group")
        .mapInArrow(of_groups, BUNDLE.columns)
    )
