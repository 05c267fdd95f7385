"""Evidence and results that are not on this machine, as far as we can tell by their URIs.

`viewfs:` is Hadoop's own file system of links to others: here, to folders of the test.
"""

import json
from errno import ENOSPC
from io import FileIO
from os import strerror
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pyspark.sql import SparkSession

from reports import EvidenceError, ExecutionError, analyse
from reports.ingest import places
from reports.ingest.failures import explained
from reports.judgement.run.run_folder import RunFolder
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import Unaltered

pytestmark = pytest.mark.spark


def test_results_that_cannot_be_written_are_named_in_one_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(FileIO):
        def write(self, content: object) -> int:
            super().write(bytes(content)[:1])  # type: ignore[call-overload]
            raise OSError(ENOSPC, strerror(ENOSPC), self.name)

    def full(file: Path, mode: str) -> Full:
        return Full(file, mode)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(ExecutionError, match="a disk is full"), explained("here"):
        places.write_texts(spark, f"file:{tmp_path}", {"verdict.json": "{}"})
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def away(spark: SparkSession, tmp_path: Path) -> str:
    """Return the URI of the test's folder, which no path of ours leads to."""
    name = tmp_path.name.replace("_", "-")
    spark.conf.set(f"fs.viewfs.mounttable.{name}.link./here", tmp_path.as_uri())
    return f"viewfs://{name}/here"


def text_of(spark: SparkSession, uri: str) -> str:
    (row,) = spark.read.text(uri, wholetext=True).collect()
    return str(row["value"])


def test_a_run_elsewhere_is_judged_as_one_here(
    spark: SparkSession, recorded: Path, away: str, tmp_path: Path, unaltered: Unaltered
) -> None:
    elsewhere = analyse(spark, f"{away}/run", f"{away}/results")
    assert json.loads(text_of(spark, f"{away}/results/verdict.json")) == elsewhere
    page = text_of(spark, f"{away}/results/report.html")
    assert page.startswith("<!DOCTYPE html>")
    ET.fromstring(text_of(spark, f"{away}/results/junit.xml"))
    assert not (recorded / "tables").exists()
    folder, here = unaltered(RECORDINGS["kafka-4.3.0"])
    assert here == elsewhere
    assert (folder / "report.html").read_text() == page.removesuffix("\n")
    for table in (folder / "tables").iterdir():
        away_too = tmp_path / "results" / "tables" / table.name
        stored, other = (spark.read.parquet(str(place)) for place in (table, away_too))
        assert stored.exceptAll(other).isEmpty(), table.name
        assert stored.count() == other.count(), table.name


def test_results_are_not_replaced_and_a_folder_that_is_no_run_is_named_by_its_uri(
    spark: SparkSession, recorded: Path, away: str, tmp_path: Path
) -> None:
    (tmp_path / "results" / "verdict.json").mkdir(parents=True)
    (tmp_path / "results" / "verdict.json" / "part-00000.txt").write_text("{}")
    with pytest.raises(EvidenceError, match=f"{away}/results/verdict.json: exists already"):
        analyse(spark, recorded, f"{away}/results")
    (recorded / "plan.json").unlink()
    missing = f"^{away}/run/plan.json: missing; {away}/run is not the folder of a run$"
    with pytest.raises(EvidenceError, match=missing):
        analyse(spark, f"{away}/run", f"{away}/others")


def test_what_stays_elsewhere_counts_as_there(tmp_path: Path) -> None:
    assert not RunFolder(tmp_path, "s3a://runs/one").has_history
    assert RunFolder(tmp_path, "s3a://runs/one", {"history.jsonl": 5}).has_history
