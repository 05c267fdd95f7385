"""Splits of files: each line is read once, in the split that has its first byte."""

import gzip
import os
import random
from pathlib import Path

import pytest

from reports import EvidenceError
from reports.ingest.sources import Count, Range, lines_in, ranges_of
from reports.judgement.log.log_bytes import DAMAGED, LONGEST, TOO_LONG

LINES = [b"first", b"", b"a longer line\r", b"x", "é\N{SNOWMAN}".encode(), b"last"]


def read(file: Path, split_bytes: int) -> list[list[bytes]]:
    """Read each split; what is counted beside the lines has to be as many."""
    found, sizes = [], 0
    for one in ranges_of([file], split_bytes):
        count = Count()
        found.append(list(lines_in(one, count)))
        assert len(found[-1]) == count.lines
        sizes += count.size
    assert sizes == file.stat().st_size
    return found


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_wherever_a_file_is_cut(end: bytes, tmp_path: Path) -> None:
    """Splits within a line are empty, and a line across splits is in the first of them."""
    content = b"\n".join(LINES) + end
    (tmp_path / "log").write_bytes(content)
    begins = [0, *(at + 1 for at in range(len(content) - 1) if content[at : at + 1] == b"\n")]
    for split_bytes in range(1, 40):
        splits = read(tmp_path / "log", split_bytes)
        assert [line for split in splits for line in split] == LINES, split_bytes
        places = [at // split_bytes for at in begins]
        assert [len(of) for of in splits] == [places.count(n) for n in range(len(splits))]
    (tmp_path / "log").write_bytes(b"")
    assert ranges_of([tmp_path / "log"], 10) == []


@pytest.mark.parametrize("split_bytes", [1 << 20, 32 << 20])
def test_a_line_that_is_too_long_is_one_line(split_bytes: int, tmp_path: Path) -> None:
    long = b"y" * (LONGEST + 1)
    (tmp_path / "log").write_bytes(b"\n".join([b"1", long, b"2"]))
    lines = [line for split in read(tmp_path / "log", split_bytes) for line in split]
    assert lines == [b"1", TOO_LONG + long[:300], b"2"]


def test_a_packed_file_is_one_split_up_to_its_damage(tmp_path: Path) -> None:
    packed = gzip.compress(b"\n".join(LINES) + b"\n")
    (tmp_path / "a.gz").write_bytes(packed)
    assert read(tmp_path / "a.gz", 4) == [LINES]
    noise = random.Random(1).randbytes(3_000_000).hex().encode()
    packed = gzip.compress(noise + b"\n" + noise)
    (tmp_path / "b.gz").write_bytes(packed[: len(packed) // 2])
    ((*_, damage),) = read(tmp_path / "b.gz", 4)
    assert damage.startswith(DAMAGED)


@pytest.mark.parametrize("grows", [True, False])
def test_a_file_that_changes_is_an_error(grows: bool, tmp_path: Path) -> None:
    """Before it is read, or meanwhile; and one of the same size, too."""
    log = tmp_path / "log"
    log.write_bytes(b"a line\n" * 400_000)
    (one,) = ranges_of([log], 32 << 20)
    lines = lines_in(one, Count())
    next(lines)
    if grows:
        with log.open("ab") as file:
            file.write(b"more\n")
    else:
        os.utime(log, ns=(one.mtime_ns + 1, one.mtime_ns + 1))
    for again in (lines, lines_in(Range(*one), Count())):
        with pytest.raises(EvidenceError, match=f"{log}: it changed while it was read"):
            list(again)
