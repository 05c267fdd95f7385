"""The recorded evidence that the tests start from."""

import lzma
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reports import analyse
from reports.judgement.recording import Recording
from tests.recorded.logs import RECORDINGS

Judge = Callable[[Path], dict[str, Any]]
Unaltered = Callable[[Recording], tuple[Path, dict[str, Any]]]


def unpacked(recording: Recording, folder: Path) -> Path:
    """Make a run folder of its own with a recording's evidence in it."""
    shutil.copytree(recording.folder, folder)
    for packed in folder.glob("*/*/group.log.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()
    return folder


SPLIT_BYTES = "spark.sql.files.maxPartitionBytes"


@contextmanager
def configured(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Let a session have other settings meanwhile."""
    before = {name: str(spark.conf.get(name)) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


COORDINATORS = ("kafka-3.9.1-scala", "kafka-4.3.0")
"""A recording of each coordinator; the rules that 3.9.1 has on Java are those of 4.3.0."""


@pytest.fixture(params=COORDINATORS)
def recording(request: pytest.FixtureRequest) -> Recording:
    """Return the recording of a coordinator, one after the other."""
    return RECORDINGS[request.param]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Return a run folder with the evidence of Kafka 4.3.0."""
    return unpacked(RECORDINGS["kafka-4.3.0"], tmp_path / "run")


@pytest.fixture(scope="session")
def judge(spark: SparkSession) -> Judge:
    """Return what judges a run folder."""
    return lambda folder: analyse(spark, folder)


@pytest.fixture(scope="session")
def unaltered(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> Unaltered:
    """Return what judges a recording as it is, once; nobody alters its run folder."""

    @cache
    def judged(recording: Recording) -> tuple[Path, dict[str, Any]]:
        folder = unpacked(recording, tmp_path_factory.mktemp("unaltered") / "run")
        return folder, judge(folder)

    return judged
