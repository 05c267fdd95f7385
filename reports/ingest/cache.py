"""Where files are kept that can be made again: archives for Spark."""

import os
from pathlib import Path


def place() -> Path:
    """Return groupquake's folder in the user's cache folder; it need not be there."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "groupquake"
