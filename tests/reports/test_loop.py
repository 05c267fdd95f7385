"""The pipeline in Spark gives the rows that a plain loop around the same functions gives."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from reference_coordinator.classic.releases import promised_by
from reports.judgement.group import TABLES, check_rows
from reports.judgement.recording import Recording
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import Judge, unpacked

pytestmark = pytest.mark.spark
STORED = [name for name in TABLES if name != "digests"]


def key(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def test_every_row_is_the_same(judge: Judge, tmp_path: Path) -> None:
    folder = unpacked(RECORDINGS["kafka-4.3.0"], tmp_path / "run")
    judge(folder)
    recording = Recording(folder)
    rules = recording.context.profile
    loop = replace(recording.context, promised=promised_by(rules), rules=rules)
    expected = {table: Counter[str]() for table in STORED}
    for group, rows in recording.rows_by_group.items():
        for table, row in check_rows(loop, group, rows):
            names = [column.split()[0] for column in TABLES[table].split(",")]
            whole = {"group": group, **row}
            expected[table][key({column: whole[column] for column in names})] += 1
    for table in STORED:
        stored = pq.read_table(folder / "tables" / table).to_pylist()
        assert Counter(map(key, stored)) == expected[table], table
    assert expected["departures"]
