"""Room for the evidence: a run ends before the file system of its folder is full."""

import errno
import shutil
from pathlib import Path

TO_BEGIN_MB = 32
TO_GO_ON_MB = 16
"""What a run with thousands of members writes in some seconds."""


def require(folder: Path, least_mb: int) -> None:
    """Raise OSError, which says the figures, if less is free where a folder is."""
    free_mb = shutil.disk_usage(folder).free / 2**20
    if free_mb < least_mb:
        raise OSError(errno.ENOSPC, f"{free_mb:.0f} MB are free, and {least_mb} MB needed")
