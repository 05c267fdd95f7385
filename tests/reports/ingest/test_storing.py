"""Tables as files: only those of attempts that results name are in a table."""

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from reports.ingest import storing
from reports.ingest.storing import Files


def test_a_task_that_ran_twice_counts_once(tmp_path: Path) -> None:
    """A third attempt ended in the middle of its file."""
    attempts = []
    with storing.attempts(tmp_path):
        for _ in range(2):
            files = Files(tmp_path, ["bound", "broken"], ["bound"])
            files.add("bound", [("g", "name", 1), ("h", "name", 2)])
            files.add("digests", [("g", "{}")])
            attempts.append(files.end())
        dying = Files(tmp_path, ["bound"], [])
        dying.add("bound", [("g", "other", 1)] * storing.ROWS)
        results = pa.Table.from_batches(attempts[:1])
        storing.commit(tmp_path, ["bound", "broken"], results)
    assert {place.name for place in tmp_path.iterdir()} == {"bound", "broken"}
    stored = {
        name: ds.dataset(tmp_path / name, format="parquet").to_table().to_pylist()
        for name in ("bound", "broken")
    }
    rows = [{"group": "g", "name": "name", "count": 1}, {"group": "h", "name": "name", "count": 2}]
    assert stored == {"bound": rows, "broken": []}
    assert storing.rows_in(results) == {"bound": rows}
    assert all((tmp_path / name / storing.SUCCESS).exists() for name in stored)
