"""The recorded evidence that the tests start from."""

import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reports import analyse
from reports.judgement.recording import Recording
from tests.recorded.logs import RECORDINGS

Judge = Callable[[Path], dict[str, Any]]


def unpacked(recording: Recording, folder: Path) -> Path:
    """Make a run folder of its own with a recording's evidence in it."""
    shutil.copytree(recording.folder, folder)
    for packed in folder.glob("*/*/group.log.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()
    return folder


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
