"""The comparison of two versions' results can fail: each single difference is found and named."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.recorded.same_results import compare, main

VERDICT = {"verdict": "pass", "groups": {"g": {"bound": {"order": 1}}}, "findings": [{"number": 1}]}
LINES = {"line": [1, 2, 3], "count": [1, 1, 2], "text": ["a", "b", None]}
REPLAY = {"group": ["g"], "payload": [json.dumps({"request": "1:5", "explained": True})]}


def judged(
    folder: Path,
    verdict: dict[str, Any] = VERDICT,
    lines: dict[str, list[Any]] = LINES,
    replay: dict[str, list[Any]] = REPLAY,
) -> Path:
    """Write a judged run into a folder of runs; return that."""
    run = folder / "run"
    (run / "tables/coverage").mkdir(parents=True)
    (run / "environment.json").write_text("{}")
    (run / "verdict.json").write_text(json.dumps(verdict))
    pq.write_table(pa.table(lines), run / "tables/coverage/part-0.parquet")
    pq.write_table(pa.table(replay), run / "tables/replay.parquet")
    return folder


def found(tmp_path: Path, new: Path, **renamed: dict[str, str]) -> list[str]:
    ((_, differences),) = compare(judged(tmp_path / "old"), new, renamed)
    return differences


def test_rows_stand_in_any_order_and_columns_have_new_names(tmp_path: Path) -> None:
    lines = {"text": [None, "a", "b"], "process": [2, 1, 1], "line": [3, 1, 2]}
    replay = {"group": ["g"], "payload": [json.dumps({"explained": True, "id": "1:5"})]}
    new = judged(tmp_path / "new", lines=lines, replay=replay)
    renamed = {"coverage": {"count": "process"}, "replay": {"payload.request": "payload.id"}}
    assert found(tmp_path, new, **renamed) == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"verdict": VERDICT | {"verdict": "fail"}}, "verdict.json: verdict: pass, now fail"),
        ({"verdict": VERDICT | {"more": 1}}, "verdict.json: keys"),
        ({"verdict": dict(reversed(VERDICT.items()))}, "verdict.json: keys"),
        ({"verdict": VERDICT | {"groups": {"g": {"bound": {"order": 1.0}}}}},
         "verdict.json: groups: g: bound: order: 1, now"),
        ({"verdict": VERDICT | {"findings": []}}, "verdict.json: findings: 1 items, now 0"),
        ({"verdict": VERDICT | {"findings": [{"number": 2}]}}, "findings[0]: number: 1, now 2"),
        ({"lines": LINES | {"count": [1, 1, 1]}},
         "row (count=2, line=3); column count: 2, now 1"),
        ({"lines": LINES | {"text": ["a", "b", ""]}}, "column text: None, now ''"),
        ({"lines": {name: rows[:2] for name, rows in LINES.items()}},
         "table coverage: 1 of 3 rows differ, 0 are new"),
        ({"lines": {name: [*rows, rows[0]] for name, rows in LINES.items()}},
         "table coverage: 0 of 3 rows differ, 1 are new"),
        ({"lines": LINES | {"line": [1.0, 2.0, 3.0]}},
         "table coverage: columns [('line', 'int64')], now [('line', 'double')"),
        ({"lines": LINES | {"more": [1, 2, 3]}},
         "table coverage: columns [], now [('more', 'int64')]"),
        ({"replay": {"group": ["g"], "payload": ['{"request": "1:5", "explained": false}']}},
         "table replay: 1 of 1 rows differ"),
        ({"replay": {"group": ["g"], "payload": ['{"request": "1:5", "explained": false}']}},
         "column payload.explained: True, now False"),
    ],
)  # fmt: skip
def test_what_differs_is_found_and_named(
    tmp_path: Path, changed: dict[str, Any], expected: str
) -> None:
    (difference,) = found(tmp_path, judged(tmp_path / "new", **changed))
    assert expected in difference


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        ("run/verdict.json", "not judged: "),
        ("run/tables/replay.parquet", "table replay.parquet: gone"),
        ("run/environment.json", "not in "),
    ],
)
def test_a_missing_table_or_file_is_found(tmp_path: Path, gone: str, expected: str) -> None:
    new = judged(tmp_path / "new")
    (new / gone).unlink()
    (difference,) = found(tmp_path, new)
    assert difference.startswith(expected)


def test_the_exit_code_is_0_only_where_all_is_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = judged(tmp_path / "old"), judged(tmp_path / "new")
    assert main(old, new) == 0
    assert "1 of 1 runs: the same verdict and tables" in capsys.readouterr().out
    assert main(old, judged(tmp_path / "other", VERDICT | {"verdict": "fail"})) == 1
    assert "run: verdict.json: verdict: pass, now fail" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert main(tmp_path / "empty", tmp_path / "empty") == 1
