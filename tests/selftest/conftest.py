"""The commands of `python -m selftest`, and the kept evidence, opened once."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from selftest.__main__ import NAME, selftest
from selftest.mutants.evidence import KEPT, Runs, runs_in
from tests.groupquake.conftest import Command, groupquake, run_here, run_in  # noqa: F401 (a fixture)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def runs() -> Iterator[Runs]:
    with runs_in(KEPT / "seeds") as found:
        yield found


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command of `python -m selftest` in an empty folder, in this process."""
    return run_here(selftest, NAME, tmp_path, monkeypatch)


@pytest.fixture
def process(tmp_path: Path) -> Command:
    """Run a command of `python -m selftest` in an empty folder, in a process of its own."""
    return partial(run_in, tmp_path, program="selftest", env={"PYTHONPATH": str(ROOT)})
