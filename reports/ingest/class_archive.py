"""An archive of the classes that Spark loads: a JVM maps it instead of reading 15,000 classes.

Class data sharing of the JDK (JEP 310, JEP 350). The archive is never needed: a JVM goes on without
one that it cannot use. It depends on the JDK and on the jars, and its name says which.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from reports.ingest import cache
from reports.ingest.jvm import Jvm, JvmError, java, spark_home

DUMP_S = 180.0
ARCHIVES = "classes-*.jsa"


def options() -> list[str]:
    """Return the options of a JVM that uses the archive; none without one."""
    archive = place()
    if archive is None or not archive.exists():
        return []
    cache.use(archive, ARCHIVES)
    return [f"-XX:SharedArchiveFile={archive}"]


def place() -> Path | None:
    """Return where the archive for this JDK and these jars belongs; None without a JDK."""
    found = shutil.which(java())
    if found is None:
        return None
    home = Path(found).resolve().parent.parent
    files = [home / "release", home / "lib" / "modules", *sorted((spark_home() / "jars").iterdir())]
    key = hashlib.sha256()
    for file in filter(Path.is_file, files):
        state = file.stat()
        key.update(f"{file} {state.st_size} {state.st_mtime_ns}\n".encode())
    return cache.place() / f"classes-{key.hexdigest()[:16]}.jsa"


def make(train: Callable[[str], Jvm]) -> Path:
    """Write the archive of all classes that a JVM loads in its training.

    `train` starts a JVM with the given option, uses it and returns it. Raises JvmError.
    """
    archive = place()
    if archive is None:
        raise JvmError("there is no java")
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(f".{os.getpid()}")
    try:
        jvm = train(f"-XX:ArchiveClassesAtExit={partial}")
        jvm.close()
        jvm.wait(DUMP_S)
        if not partial.exists():
            raise JvmError(f"no archive was written to {archive.parent}")
        partial.replace(archive)  # a JVM that starts now finds no archive, or a whole one
    finally:
        partial.unlink(missing_ok=True)
    return archive
