"""The lines around a finding: those of its group, from plain, packed and rotated logs."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from reports.judgement.explained.quoted import AROUND, LONGEST, add_lines


@pytest.mark.parametrize("name", ["group.log", "group.log.1", "group.log.gz"])
def test_the_lines_of_the_group_are_quoted_and_the_finding_is_marked(
    tmp_path: Path, name: str
) -> None:
    groups = ["orders", "orders-2", "payments"]
    lines = [f'{n} "groupId":"{groups[n % 3]}" {"x" * 2 * LONGEST}' for n in range(1, 61)]
    text = "\n".join(lines).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    entry: dict[str, Any] = {"group": "orders", "log": {"file": name, "line": 30}}
    gone: dict[str, Any] = {"group": "orders", "log": {"file": "none", "line": 30}}
    add_lines(tmp_path, [entry, gone])
    quoted = entry["lines"]
    assert [one["line"] for one in quoted] == [3 * n for n in range(10 - AROUND, 11 + AROUND)]
    assert [one["line"] for one in quoted if one["marked"]] == [30]
    assert all(len(one["text"]) <= LONGEST + 3 for one in quoted)
    assert "lines" not in gone
