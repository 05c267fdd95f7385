"""The archive holds what executors import; what nobody uses is not kept in the cache for ever."""

import hashlib
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from reports import EvidenceError
from reports.ingest import archive, cache
from reports.timing import CACHED_S

ON_EXECUTORS = ("reports.ingest.reading", "reports.incident.stock_logs")
OF_THE_CLUSTER = ("pyspark", "py4j")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("executor")
    archive.build(folder / "groupquake.tar.gz")
    with tarfile.open(folder / "groupquake.tar.gz") as packed:
        packed.extractall(folder / archive.FOLDER, filter="fully_trusted")
    return folder


def bare_python(folder: Path, script: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run the archive's Python as an executor does, beside its folder, with Spark on the path."""
    spark = folder / "spark"
    spark.mkdir(exist_ok=True)
    for name in OF_THE_CLUSTER:
        there = Path(str(sys.modules["pyspark"].__file__)).parents[1] / name
        if not (spark / name).exists():
            (spark / name).symlink_to(there)
    return subprocess.run(
        [archive.PYTHON, "-S", "-c", script],
        cwd=folder,
        env={"PATH": path, "PYTHONPATH": str(spark)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_executors_find_in_it_all_that_they_import(unpacked: Path) -> None:
    imports = "; ".join(f"import {name}" for name in ON_EXECUTORS)
    names = "{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)"
    script = f"import sys; {imports}; print(*sorted({names}))"
    done = bare_python(unpacked, script, f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    needed = {"reports", "reference_coordinator", "kafka_protocol", "pyarrow"}
    assert needed <= {*done.stdout.split()}


def test_an_executor_without_the_driver_s_python_says_so(unpacked: Path, tmp_path: Path) -> None:
    for name in ("sh", "dirname"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    done = bare_python(unpacked, "", str(tmp_path))
    assert done.returncode == 127
    assert f"no {archive.RELEASE} on this executor" in done.stderr


def test_the_same_content_makes_the_same_bytes(unpacked: Path, tmp_path: Path) -> None:
    archive.build(tmp_path / "again.tar.gz")
    files = (unpacked / "groupquake.tar.gz", tmp_path / "again.tar.gz")
    first, second = (hashlib.sha256(file.read_bytes()).digest() for file in files)
    assert first == second


def test_it_is_built_once_and_again_where_something_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built: list[Path] = []
    monkeypatch.setattr(archive, "build", lambda file: built.append(file) or file.touch())
    assert archive.cached() == archive.cached()
    assert len(built) == 1
    monkeypatch.setattr(archive, "START", archive.START + "# changed\n")
    assert archive.cached() != built[0]
    assert len(built) == 2


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EvidenceError, match="archive for Spark's executors cannot be written"):
        archive.build(tmp_path / "file" / "groupquake.tar.gz")


def test_the_command_writes_it(tmp_path: Path) -> None:
    command = ["-m", "groupquake", "dev", "spark-archive", "--output", "here.tar.gz"]
    program = [sys.executable, *command]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "here.tar.gz\n"
    assert tarfile.is_tarfile(tmp_path / "here.tar.gz")


def test_what_nobody_has_used_for_long_is_deleted(tmp_path: Path) -> None:
    used, other, old, foreign = (tmp_path / name for name in ("a.jsa", "b.jsa", "c.jsa", "c.txt"))
    for file in (used, other, old, foreign):
        file.touch()
    long_ago = time.time() - CACHED_S - 1
    for file in (used, old, foreign):
        os.utime(file, (long_ago, long_ago))
    cache.use(used, "*.jsa")
    assert sorted(tmp_path.iterdir()) == [used, other, foreign]
