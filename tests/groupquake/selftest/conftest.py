"""The kept evidence, opened once."""

from collections.abc import Iterator

import pytest

from groupquake.selftest.mutants.command import KEPT
from groupquake.selftest.mutants.evidence import Runs, runs_in


@pytest.fixture(scope="session")
def runs() -> Iterator[Runs]:
    with runs_in(KEPT / "seeds") as found:
        yield found
