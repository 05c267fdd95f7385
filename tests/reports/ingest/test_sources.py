"""Files on paths: each line is read once, and the file has to be the one that was listed."""

import gzip
import os
import random
from itertools import product
from pathlib import Path

import pytest

from reports import EvidenceError
from reports.ingest.sources import Count, File, lines_in
from reports.judgement.log import log_bytes
from reports.judgement.log.log_bytes import DAMAGED, LONGEST, TOO_LONG

LINES = [b"first", b"", b"a longer line\r", b"x", "é\N{SNOWMAN}".encode(), b"last"]


def read(file: Path) -> list[bytes]:
    """Read a file; what is counted beside the lines has to be as many."""
    count = Count()
    found = list(lines_in(File.of(file), count))
    assert (len(found), count.size) == (count.lines, file.stat().st_size)
    return found


def test_each_line_is_read_wherever_pieces_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end, size in product((b"", b"\n"), range(1, 40)):
        monkeypatch.setattr(log_bytes, "_PIECE", size)
        (tmp_path / "log").write_bytes(b"\n".join(LINES) + end)
        assert read(tmp_path / "log") == LINES


def test_an_empty_file_has_no_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"")
    assert read(tmp_path / "log") == []


def test_a_line_that_is_too_long_is_one_line(tmp_path: Path) -> None:
    long = b"y" * (LONGEST + 1)
    (tmp_path / "log").write_bytes(b"\n".join([b"1", long, b"2"]))
    assert read(tmp_path / "log") == [b"1", TOO_LONG + long[:300], b"2"]


def test_a_packed_file_is_read_up_to_its_damage(tmp_path: Path) -> None:
    packed = gzip.compress(b"\n".join(LINES) + b"\n")
    (tmp_path / "a.gz").write_bytes(packed)
    assert read(tmp_path / "a.gz") == LINES
    noise = random.Random(1).randbytes(3_000_000).hex().encode()
    packed = gzip.compress(noise + b"\n" + noise)
    (tmp_path / "b.gz").write_bytes(packed[: len(packed) // 2])
    *_, damage = read(tmp_path / "b.gz")
    assert damage.startswith(DAMAGED)


@pytest.mark.parametrize("grows", [True, False])
def test_a_file_that_changes_is_an_error(grows: bool, tmp_path: Path) -> None:
    """Before it is read, or meanwhile; and one of the same size, too."""
    log = tmp_path / "log"
    log.write_bytes(b"a line\n" * 400_000)
    one = File.of(log)
    lines = lines_in(one, Count())
    next(lines)
    if grows:
        with log.open("ab") as file:
            file.write(b"more\n")
    else:
        os.utime(log, ns=(one.mtime_ns + 1, one.mtime_ns + 1))
    changed = f"{log}: it changed while it was read"
    with pytest.raises(EvidenceError, match=changed):
        list(lines)
    with pytest.raises(EvidenceError, match=changed):
        next(lines_in(one, Count()))
