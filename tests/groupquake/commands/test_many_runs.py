"""`report` of a whole night with run tables, and `compare` over them and over run folders."""

import json
from pathlib import Path

import pytest

from tests.groupquake.conftest import Command
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import unpacked


@pytest.mark.long
@pytest.mark.spark
def test_a_night_is_judged_again_and_its_runs_are_compared(
    process: Command, tmp_path: Path
) -> None:
    night = tmp_path / "night"
    (night / "runs").mkdir(parents=True)
    (night / "night.json").write_text("{}")
    names = ["first", "second"]
    for name, recording in zip(names, ("kafka-3.9.1-java", "kafka-3.9.1-scala"), strict=True):
        unpacked(RECORDINGS[recording], night / "runs" / name)
    (night / "runs" / "latest").symlink_to("second")

    tables = tmp_path / "tables"
    judged = process("report", night, "--tables", tables, timeout_s=600)
    assert judged.code == 0, judged.err
    assert judged.out.count("verdict: pass") == 2
    assert judged.err.count("starting Spark") == 1
    assert sorted(path.name for path in (tables / "runs").glob("run=*")) == [
        "run=first",
        "run=second",
    ]

    from_tables = process("compare", *names, "--tables", tables, "--json", timeout_s=600)
    assert from_tables.code == 0, from_tables.err
    of_folders = process(
        "compare", *(night / "runs" / name for name in names), "--json", timeout_s=600
    )
    assert json.loads(from_tables.out) == json.loads(of_folders.out)
    compared = json.loads(from_tables.out)
    assert [run["coordinator"] for run in compared["runs"]] == ["java", "scala"]
    for number, name in enumerate(names):
        verdict = json.loads((night / "runs" / name / "verdict.json").read_text())
        counted = {
            row["group"]: row[compared["runs"][number]["run"]]
            for row in compared["measures"]
            if row["measure"] == "rebalances" and row[name] is not None
        }
        assert counted == {
            group: about["rebalances_observed"]["impact"]
            for group, about in verdict["groups"].items()
        }


@pytest.mark.spark
def test_a_run_that_was_not_judged_cannot_be_compared(groupquake: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        unpacked(RECORDINGS["kafka-4.3.0"], tmp_path / name)
        (tmp_path / name / "verdict.json").unlink(missing_ok=True)
    done = groupquake("compare", tmp_path / "a", tmp_path / "b")
    assert done.code == 64
    assert "a/verdict.json: no verdict of a run; judge the run first" in done.err


def test_a_run_is_not_compared_with_itself(groupquake: Command) -> None:
    for runs in (("one",), ("one", "one"), ("x/one", "y/one/")):
        done = groupquake("compare", *runs)
        assert done.code == 64
        assert "give two or more runs of different names" in done.err


def test_a_spark_that_is_not_there_is_one_line(
    process: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/nonexistent")
    done = process("compare", "one", "other")
    assert done.code == 64
    assert done.err.startswith("groupquake: /nonexistent/./bin/spark-submit: no such file")
