"""Tables as a run has them, of rows that a test gives."""

from typing import Any

from pyspark.sql import SparkSession

from kafka_protocol.coordinator_lines import JAVA
from reference_coordinator.classic.releases import NEWEST, promised_by
from reports.ingest.bundle import schema
from reports.ingest.tables import COLUMNS, Tables
from reports.judgement.coordinator_epochs import CoordinatorEpochs
from reports.judgement.group import Judge

Row = dict[str, Any]
JUDGE = Judge(JAVA, NEWEST, promised_by(NEWEST), CoordinatorEpochs(None))


def stored(spark: SparkSession, stops: list[Row] | None = None, **tables: list[Row]) -> Tables:
    """Make tables of rows; columns that a row does not have are null."""
    frames = {
        name: spark.createDataFrame(
            [tuple(row.get(field.name) for field in schema(columns)) for row in tables[name]],
            columns,
        )
        for name, columns in COLUMNS.items()
        if name in tables
    }
    return Tables(frames, [], stops or [], JUDGE, has_history=True)
