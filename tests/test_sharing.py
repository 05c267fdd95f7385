"""How tests are shared out to workers."""

from pathlib import Path

import pytest

from tests.conftest import SHARING, scope_of

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("start", SHARING)
def test_each_place_that_shares_is_there(start: str) -> None:
    assert list(ROOT.glob(f"{start}*"))


@pytest.mark.parametrize(
    ("test", "scope"),
    [
        ("tests/chaos/clusters/test_process.py::test_a[kill]", "three brokers"),
        ("tests/loadtest/test_member.py::test_a[x::y]", "one broker"),
        ("tests/reports/ingest/test_reading.py::test_a", "Spark"),
        ("tests/scenarios/test_errors.py::test_a", "tests/scenarios/test_errors.py"),
        ("tests/groupquake/test_x.py::TestHalf::test_a[b]", "tests/groupquake/test_x.py::TestHalf"),
    ],
)
def test_a_worker_takes_a_class_a_file_or_the_files_that_share(test: str, scope: str) -> None:
    assert scope_of(test) == scope
