"""Every bound of `docs/trust.md` has a source, and tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "trust.md").read_text("utf-8")
ROWS = [row.strip("| ").split(" | ") for row in PAGE.splitlines() if row.startswith("| ")][1:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_bound_has_a_source_and_tests(row: list[str]) -> None:
    freedom, bound, source, tests = row
    assert freedom
    assert bound
    assert source
    named = re.findall(r"`([^`]+)`", tests)
    assert ", ".join(f"`{name}`" for name in named) == tests
    for name in named:
        assert re.fullmatch(r"tests/[\w/]+/test_\w+\.py", name)
        assert (ROOT / name).is_file(), name
