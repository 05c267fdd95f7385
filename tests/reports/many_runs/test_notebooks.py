"""The notebooks run from their first cell to the last, on the run tables of a judged run."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reports import analyse
from reports.many_runs import run_tables
from tests.recorded.logs import HISTORIES
from tests.reports.conftest import unpacked

NOTEBOOKS = Path(__file__).parents[3] / "docs" / "notebooks"


@pytest.mark.spark
def test_every_cell_runs(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = unpacked(HISTORIES["removal-3.9.1-java"], tmp_path / "run")
    analyse(spark, folder)
    run_tables.append(spark, *run_tables.of_run(spark, folder), tmp_path / "tables")
    monkeypatch.setenv("RUN_TABLES", str(tmp_path / "tables"))
    notebooks = sorted(NOTEBOOKS.glob("*.ipynb"))
    assert notebooks
    for notebook in notebooks:
        names: dict[str, Any] = {}
        for cell in json.loads(notebook.read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec(cell["source"], names)
        assert list(names["runs"]["run"]) == ["run"]
        shown = capsys.readouterr().out
        assert "rebalancing_ms" in shown
        assert "longest_ms" in shown
