"""Spark on a cluster computes the same tables and verdict as Spark on this machine.

The cluster's workers have none of our packages, and they are given them by an archive.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import groupquake
from chaos.clusters.ports import free_ports
from groupquake.exits import OF_VERDICT, Exit
from tests.clusters.conftest import DRIVER, SPLIT, Report
from tests.clusters.s3 import S3, s3_server
from tests.clusters.standalone import (
    HOST,
    SPARK_HOME,
    ConnectServer,
    Standalone,
    Worker,
    awaited,
    conf_options,
    read_json,
)
from tests.groupquake.conftest import Done, arguments
from tests.recorded.same_results import differences
from tests.reports.incident.incident_here import incident_of, recorded

pytestmark = [pytest.mark.spark, pytest.mark.long]
SMALL_SPLITS = {"spark.sql.files.maxPartitionBytes": "8192"}
CODES = {int(code) for code in OF_VERDICT.values()}


def assert_same(expected: Path, folder: Path, done: Done) -> None:
    assert done.code in CODES, done.err
    assert list(differences(expected, folder, {})) == []


def assert_whole(names: list[str]) -> None:
    """Every table was committed, and no task left anything else."""
    tables = {name.split("/")[0] for name in names}
    assert tables
    assert [name for name in names if "_temporary" in name or ".spark-staging" in name] == []
    assert [table for table in tables if f"{table}/_SUCCESS" not in names] == []


def table_files(folder: Path) -> list[str]:
    tables = folder / "tables"
    return [str(file.relative_to(tables)) for file in tables.rglob("*") if file.is_file()]


def test_standalone_cluster_and_shared_folder(
    cluster: Standalone, report: Report, evidence: Path, expected: Path
) -> None:
    done = report(evidence, "--master", cluster.master, conf=DRIVER | SPLIT)
    assert_same(expected, evidence, done)
    assert_whole(table_files(evidence))


def test_spark_submit(
    cluster: Standalone, env: Mapping[str, str], evidence: Path, expected: Path
) -> None:
    entry = Path(groupquake.__file__).with_name("__main__.py")
    ended = subprocess.run(
        [SPARK_HOME / "bin" / "spark-submit", "--master", cluster.master, *conf_options(DRIVER),
         entry, "report", evidence],
        env={**os.environ, **env, "PYSPARK_DRIVER_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )  # fmt: skip
    assert_same(expected, evidence, Done(ended.returncode, ended.stdout, ended.stderr))


def test_spark_connect(
    cluster: Standalone, report: Report, evidence: Path, expected: Path, tmp_path: Path
) -> None:
    with ConnectServer(tmp_path / "connect", cluster.master, SPLIT) as server:
        done = report(
            evidence, "--remote", server.remote, conf={"spark.sql.shuffle.partitions": "4"}
        )
    assert_same(expected, evidence, done)


@pytest.fixture
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


def test_evidence_and_results_in_s3(
    cluster: Standalone, report: Report, s3: S3, evidence: Path, expected: Path, tmp_path: Path
) -> None:
    place = s3.upload(evidence, "run")
    where = ("--master", cluster.master, "--output", f"{place}-judged")
    done = report(place, *where, conf=DRIVER | SPLIT | s3.conf)
    assert_same(expected, s3.download("run-judged", tmp_path / "judged"), done)
    prefix = "run-judged/tables/"
    assert_whole([name.removeprefix(prefix) for name in s3.names(prefix)])


def test_logs_of_an_incident_in_s3(
    cluster: Standalone, report: Report, s3: S3, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, content in recorded("3.9.1-scala").items():
        (folder / name).write_bytes(content)
    place = s3.upload(folder, "logs")
    where = ("--logs", "--master", cluster.master, "--output", f"{place}-incident")
    done = report(place, *where, conf=DRIVER | SMALL_SPLITS | s3.conf)
    assert done.code == Exit.UNKNOWN, done.err
    stored = s3.download("logs-incident", tmp_path / "incident") / "incident.json"
    found = json.loads(stored.read_text())
    here = json.loads(json.dumps(incident_of(recorded("3.9.1-scala"))))
    assert found["groups"] == here["groups"]
    assert found["coverage"] == here["coverage"]
    assert found["files"][0]["file"].startswith("s3a://")


def test_a_worker_is_killed_in_the_middle(
    cluster: Standalone, env: Mapping[str, str], evidence: Path, expected: Path, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    conf = DRIVER | SPLIT | {"spark.ui.port": str(port)}
    words = ("report", evidence, "--master", cluster.master, *conf_options(conf))
    with (tmp_path / "log").open("w") as log:
        driver = subprocess.Popen(
            arguments(*words), cwd=tmp_path, env={**os.environ, **env}, stdout=log, stderr=log
        )
        try:
            worker = awaited("a running task", lambda: working(cluster, port), 120)
            worker.kill()
            code = driver.wait(240)
        finally:
            driver.kill()
            driver.wait()
            cluster.replace_dead()
    assert_same(expected, evidence, Done(code, "", (tmp_path / "log").read_text()))
    assert_whole(table_files(evidence))


def working(cluster: Standalone, port: int) -> Worker | None:
    """Return the worker whose executor runs a task after its first ones, by the driver's page."""
    api = f"http://{HOST}:{port}/api/v1/applications"
    try:
        applications: list[dict[str, Any]] = read_json(api)
        executors = read_json(f"{api}/{applications[0]['id']}/executors") if applications else []
    except (OSError, ValueError):  # it starts up
        return None
    busy = {
        int(executor["id"])
        for executor in executors
        if executor["id"] != "driver" and executor["activeTasks"] and executor["completedTasks"] > 3
    }
    running = (
        (worker, executor["id"]) for worker in cluster.workers for executor in worker.executors
    )
    return next((worker for worker, number in running if number in busy), None)


def test_workers_without_our_packages(cluster: Standalone, report: Report, evidence: Path) -> None:
    done = report(evidence, "--master", cluster.master, "--archive", "none")
    assert done.code == Exit.USAGE, done.err
    errors = [line for line in done.err.splitlines() if not line.startswith("[")]
    assert len(errors) == 1, done.err
    assert "Spark's workers have no Python module reports; leave `--archive none` out" in errors[0]
