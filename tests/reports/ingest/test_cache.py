"""Files of the cache folder that nobody uses do not stay for ever."""

import os
import time
from pathlib import Path

from reports.ingest import cache
from reports.timing import CACHED_S


def test_what_nobody_has_used_for_long_is_deleted(tmp_path: Path) -> None:
    used, other, old, foreign = (tmp_path / name for name in ("a.jsa", "b.jsa", "c.jsa", "c.txt"))
    for file in (used, other, old, foreign):
        file.touch()
    long_ago = time.time() - CACHED_S - 1
    for file in (used, old, foreign):
        os.utime(file, (long_ago, long_ago))
    cache.use(used, "*.jsa")
    assert sorted(tmp_path.iterdir()) == [used, other, foreign]
