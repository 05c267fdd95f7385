"""The archive that brings this package to Spark's executors, and a session that uses it.

Executors unpack it beside their work. Its `bin/python` is the cluster's own Python, of the same
release as the driver's, with the archive's packages on its path. So it works on each kind of
cluster, and on Spark Connect, where a client can set no environment variable of executors.
"""

import gzip
import hashlib
import io
import os
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatch
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from reports.ingest import cache
from reports.judgement.errors import EvidenceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("kafka_protocol", "reference_coordinator", "reports")
"""Our packages that executors import."""
DISTRIBUTIONS = ("msgspec", "pyarrow")
"""What these import on executors, besides PySpark, which the cluster has."""
UNUSED = (
    "*.pyi", "*.pyx", "*.pxd", "*.pxi", "*.h", "*.cc", "*/__pycache__/*", "../*", "*/tests/*",
    "*flight*", "pyarrow/libarrow_s3.*",
)  # fmt: skip
"""Files of distributions that stay here: sources, and network clients of Arrow."""
FOLDER = "groupquake"  # the folder that executors unpack the archive to
PYTHON = f"{FOLDER}/bin/python"  # the archive's Python, as an executor finds it
RELEASE = f"python{sys.version_info.major}.{sys.version_info.minor}"
START = f"""\
#!/bin/sh
# The cluster's own Python, with the packages of this archive on its path
lib=$(cd "$(dirname "$0")/../lib" && pwd)
command -v {RELEASE} >/dev/null || {{
  echo "groupquake: no {RELEASE} on this executor, which the driver runs on" >&2
  exit 127
}}
PYTHONPATH="$lib${{PYTHONPATH:+:$PYTHONPATH}}" exec {RELEASE} "$@"
"""  # the archive's `bin/python`


def build(file: Path) -> None:
    """Write the archive (`.tar.gz`), for executors with this machine's Python release and system.

    The same content makes the same bytes. Raises EvidenceError if it cannot be written.
    """
    content = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", 6, content, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        _add(archive, "bin/python", START.encode(), 0o755)
        for name, path in _files():
            _add(archive, f"lib/{name}", path.read_bytes(), 0o644)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")  # others may build it, too
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content.getvalue())
        temporary.replace(file)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise EvidenceError(
            f"{file}: the archive for Spark's executors cannot be written ({error.strerror})"
        ) from error


def cached() -> Path:
    """Return the archive in the user's cache folder; it is built when something in it changed."""
    file = cache.folder() / f"spark-{_key()}.tar.gz"
    if not file.exists():
        build(file)
    cache.use(file, "spark-*.tar.gz")
    return file


def ship(spark: "SparkSession", archive: str | Path) -> None:
    """Let the executors of a session work with the packages of an archive.

    Spark Connect takes an archive of this machine; else it may be a URI that executors can read.
    """
    spark.addArtifacts(f"{archive}#{FOLDER}", archive=True)
    spark.conf.set("spark.sql.execution.pyspark.python", PYTHON)


def _files() -> Iterator[tuple[str, Path]]:
    """Yield the files below `lib`, with their names there."""
    for package in PACKAGES:
        found = find_spec(package)
        assert found is not None, package
        folder = Path(str(found.origin)).parent
        for path in sorted((*folder.rglob("*.py"), *folder.rglob("*.toml"))):
            yield str(PurePosixPath(package, path.relative_to(folder))), path
    for name in DISTRIBUTIONS:
        for file in sorted(distribution(name).files or ()):
            if not any(fnmatch(str(file), unused) for unused in UNUSED):
                yield str(file), Path(str(file.locate()))


def _key() -> str:
    """Return a digest of what the archive would hold, without reading the files."""
    files = [(name, path.stat()) for name, path in _files()]
    state = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in files]
    return hashlib.sha256(repr((RELEASE, START, state)).encode()).hexdigest()[:16]


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
