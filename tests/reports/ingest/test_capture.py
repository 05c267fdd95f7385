"""Capture: every line once, with its number in its file."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reports import EvidenceError
from reports.ingest import capture as module
from reports.ingest.capture import capture


def log(folder: Path, broker: str, content: bytes) -> None:
    (folder / "brokers" / broker).mkdir(parents=True)
    (folder / "brokers" / broker / "group.log").write_bytes(content)


def test_lines_are_numbered_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    log(tmp_path, "1", b"a\r\nb\nc\rd\n\xff")
    log(tmp_path, "2", b"")
    seen: list[tuple[str, str]] = []
    captured = capture(tmp_path, tmp_path / "tables/lines", lambda *line: seen.append(line))
    assert (captured.lines, captured.brokers) == (4, ("1", "2"))
    rows = pq.read_table(tmp_path / "tables/lines").to_pylist()
    assert [(row["line"], row["text"]) for row in rows] == [
        (1, "a"), (2, "b"), (3, "c\rd"), (4, "�"),
    ]  # fmt: skip
    assert {(row["broker"], row["file"]) for row in rows} == {("1", "brokers/1/group.log")}
    assert seen == [("1", row["text"]) for row in rows]


def test_no_log_and_empty_logs_are_errors(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match=r"no brokers/<id>/group\.log"):
        capture(tmp_path, tmp_path / "lines", lambda *_: None)
    log(tmp_path, "1", b"")
    with pytest.raises(EvidenceError, match=r"every group\.log is empty"):
        capture(tmp_path, tmp_path / "lines", lambda *_: None)
