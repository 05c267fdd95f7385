import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.clusters.process import ProcessCluster

_numbers = itertools.count(1)


@pytest.fixture
def run_id() -> str:
    """A mark that no other test and no other test run uses."""
    return f"test-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def cluster(brokers: ProcessCluster) -> ProcessCluster:
    return brokers


@pytest.fixture
def marked() -> Callable[[str], list[Path]]:
    """The processes (folders under /proc) that carry the mark of a run."""

    def find(run_id: str) -> list[Path]:
        def carries(folder: Path) -> bool:
            try:
                return f"-Dgroupquake.run={run_id}".encode() in (
                    (folder / "cmdline").read_bytes().split(b"\0")
                )
            except OSError:
                return False

        return [folder for folder in Path("/proc").glob("[0-9]*") if carries(folder)]

    return find
