"""Tables stored as a run stores them, of rows that a test gives."""

from pathlib import Path
from typing import Any

from kafka_protocol.coordinator_lines import JAVA
from reference_coordinator.classic.releases import NEWEST, promised_by
from reports.ingest import parts
from reports.ingest.tables import COLUMNS, Tables
from reports.judgement.coordinator_epochs import CoordinatorEpochs
from reports.judgement.group import Judge

Row = dict[str, Any]
JUDGE = Judge(JAVA, NEWEST, promised_by(NEWEST), CoordinatorEpochs(None))


def stored(folder: Path, stops: list[Row] | None = None, **tables: list[Row]) -> Tables:
    """Store rows by table; columns that a row does not have are null."""
    parts.recreate(folder, COLUMNS)
    with parts.parts(folder, COLUMNS) as written:
        for name, rows in tables.items():
            for row in rows:
                written[name].add([row.get(field.name) for field in parts.schema(COLUMNS[name])])
    return Tables(folder, [], stops or [], JUDGE)
