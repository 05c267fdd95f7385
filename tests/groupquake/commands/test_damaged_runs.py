"""`groupquake report` of several runs, most of them damaged; see `tests/reports` for the cases."""

import gzip
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reports.analysis import FILES
from reports.judgement.run.run_folder import HISTORY
from tests.groupquake.conftest import Command
from tests.recorded.logs import HISTORIES
from tests.reports.conftest import unpacked


@pytest.mark.spark
def test_runs_of_which_some_are_damaged(
    spark: SparkSession, groupquake: Command, tmp_path: Path
) -> None:
    """One that cannot be read does not end the others, and has no verdict left."""
    names = ("no evidence", "whole", "long", "gz", "NaN", "history")
    folders = {name: unpacked(HISTORIES["duplicate-4.3.0"], tmp_path / name) for name in names}
    os.mkfifo(folders["no evidence"] / "machine.jsonl")
    for name in FILES:
        (folders["no evidence"] / name).write_text("of an earlier report")
    log = "brokers/2/group.log"
    with (folders["long"] / log).open("ab") as lines:
        lines.write(b"x" * (100 << 20) + b"\n")
    with gzip.open(folders["gz"] / f"{log}.1.gz", "wb", 1) as packed:
        for _ in range(200):
            packed.write(bytes(1 << 20))
    text = (folders["NaN"] / log).read_text()
    (folders["NaN"] / log).write_text(re.sub(r'"totalTimeMs":[\d.]+', '"totalTimeMs":NaN', text))
    with (folders["history"] / HISTORY).open("a") as lines:
        lines.write('{"at_ms":NaN}\n')
    done = groupquake("report", *folders.values())
    assert done.code == 64, done.err
    assert f"{folders['no evidence']}/machine.jsonl: cannot be read" in done.err
    assert not any((folders["no evidence"] / name).exists() for name in FILES)
    verdicts = re.findall(r"^verdict: (\w+)", done.out, re.MULTILINE)
    assert verdicts == ["pass", *["unknown"] * 4], done.out
    doubts = {name: (folder / "junit.xml") for name, folder in folders.items()}
    for name, doubt in {
        "long": "line not understood", "gz": "line not understood", "NaN": f"{log}:",
        "history": "history.jsonl:263 not understood",
    }.items():  # fmt: skip
        assert doubt in doubts[name].read_text(), name


def no_runs(night: Path) -> None:
    (night / "night.json").touch()


def runs_that_are_a_file(night: Path) -> None:
    no_runs(night)
    (night / "runs").touch()


@pytest.mark.parametrize("make", [no_runs, runs_that_are_a_file])
def test_a_night_without_runs_is_an_error(
    make: Callable[[Path], None], groupquake: Command, tmp_path: Path
) -> None:
    make(tmp_path)
    done = groupquake("report", tmp_path)
    assert (done.code, done.err.count("\n")) == (64, 1), done.err
    assert f"{tmp_path}: no runs can be read there" in done.err


def test_a_place_that_cannot_be_is_an_error(groupquake: Command, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for place in (tmp_path / "loop", "x" * 5_000):
        done = groupquake("report", place)
        assert (done.code, done.err.count("\n")) == (64, 1), done.err
        assert f"{place}: no runs can be read there" in done.err
