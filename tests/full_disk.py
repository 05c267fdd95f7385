"""A small file system that can be filled up, and the mark of tests that need one: it takes root."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    """Mount an empty file system on a new folder: `size=8m`, `nr_inodes=3`."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(disk: Path) -> None:
    """Leave no free byte."""
    with (disk / "filler").open("ab", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(1 << 20)):
            continue
    assert os.statvfs(disk).f_bavail == 0
