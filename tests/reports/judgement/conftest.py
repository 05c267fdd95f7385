"""What tests of verdicts start from."""

from pathlib import Path

import pytest

from tests.reports.page_run import MadeUpRun, made_up


@pytest.fixture
def made(tmp_path: Path) -> MadeUpRun:
    """A made-up run in which everything is as it has to be."""
    return made_up(tmp_path / "run")
