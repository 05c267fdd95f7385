"""Finds a Java runtime that every supported Kafka accepts."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from chaos.clusters.interface import ClusterError

LEAST_VERSION = 17
"""KIP-1013: brokers of Kafka 4.0 and later need Java 17."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # Java 8 calls itself 1.8


def find_java() -> Path:
    """Return the `java` of JAVA_HOME, else of PATH, once it proved to be new enough.

    Raises ClusterError if there is none, it does not run, or it is older than Java 17.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java, where = Path(home) / "bin" / "java", "JAVA_HOME"
        if not java.is_file():
            raise ClusterError(f"JAVA_HOME is {home}, but there is no {java}; {_REMEDY}")
    else:
        found = shutil.which("java")
        if found is None:
            raise ClusterError(f"no java in PATH and JAVA_HOME is not set; {_REMEDY}")
        java, where = Path(found), "PATH"
    version = _version_of(java)
    if version < LEAST_VERSION:
        raise ClusterError(f"{java} (from {where}) is Java {version}; {_REMEDY}")
    return java


_REMEDY = f"install Java {LEAST_VERSION} or later, and point JAVA_HOME or PATH to it"


def _version_of(java: Path) -> int:
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{java} does not run ({error}); {_REMEDY}") from error
    match = _VERSION.search(done.stderr + done.stdout)
    if match is None:
        raise ClusterError(f"`{java} -version` does not print its version; {_REMEDY}")
    return int(match[1])
