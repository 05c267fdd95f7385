"""A Spark cluster that the tests share, and the verdict that each of them has to repeat."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.clusters.standalone import HOST, Standalone, conf_options
from tests.groupquake.conftest import SMALL, Done, run_in
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import unpacked

DRIVER = {"spark.driver.host": HOST, "spark.sql.shuffle.partitions": "4"}
SPLIT = {"spark.sql.files.maxPartitionBytes": "65536"}
"""Makes several splits of the small logs of a recording."""

Report = Callable[..., Done]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers; every test leaves two."""
    with Standalone(tmp_path_factory.mktemp("cluster") / "spark") as started:
        yield started


@pytest.fixture(scope="session")
def env(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of the driver; its cache folder is empty at first."""
    return {"SPARK_LOCAL_IP": HOST, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(autouse=True)
def python_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the workers' Python to the cluster: a local session in this process sets one."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


@pytest.fixture
def report(tmp_path: Path, env: Mapping[str, str]) -> Report:
    """Run `groupquake report` with settings of Spark."""

    def run(*words: object, conf: Mapping[str, str] | None = None) -> Done:
        return run_in(tmp_path, "report", *words, *conf_options(conf or DRIVER), env=env)

    return run


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """A run folder that was not judged yet."""
    return unpacked(RECORDINGS["kafka-4.3.0"], tmp_path / "run")


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, judged by Spark on this machine."""
    folder = unpacked(RECORDINGS["kafka-4.3.0"], tmp_path_factory.mktemp("here") / "run")
    done = run_in(folder.parent, "report", folder)
    assert (folder / "verdict.json").is_file(), done.err
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The file of a small experiment."""
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file
