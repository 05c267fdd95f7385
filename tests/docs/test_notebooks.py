"""The notebooks run from their first cell to the last, on run tables of two judged runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reports import analyse
from reports.many_runs import run_tables
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import unpacked

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.spark
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_every_cell_runs(
    notebook: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    folder = unpacked(RECORDINGS["kafka-4.3.0"], tmp_path / "run")
    analyse(spark, folder)
    run_tables.append(spark, *run_tables.of_run(spark, folder), tmp_path / "tables")
    monkeypatch.setenv("RUN_TABLES", str(tmp_path / "tables"))
    names: dict[str, Any] = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(cell["source"], names)
    assert list(names["runs"]["run"]) == ["run"]
    shown = capsys.readouterr().out
    assert "rebalancing_ms" in shown
    assert "longest_ms" in shown
