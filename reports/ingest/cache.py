"""Where files are kept that can be made again: archives for Spark, and its log."""

import os
import time
from contextlib import suppress
from pathlib import Path

from reports.judgement.errors import EvidenceError
from reports.timing import CACHED_S


def place() -> Path:
    """Return groupquake's folder in the user's cache folder; it need not be there."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "groupquake"


def folder() -> Path:
    """Return that folder, made if need be."""
    made = place()
    try:
        made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvidenceError(
            f"{made}: cannot be made ({error.strerror}); set XDG_CACHE_HOME to another folder"
        ) from error
    return made


def use(file: Path, others: str) -> None:
    """Note that a file is used; delete those that a glob names and nobody has used for long."""
    with suppress(OSError):  # another process may delete the same ones
        file.touch()
        for other in file.parent.glob(others):
            if other.stat().st_mtime < time.time() - CACHED_S:
                other.unlink(missing_ok=True)
