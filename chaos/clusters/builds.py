"""Kafka builds of the user's: which version an unpacked Kafka or an image holds, by its jars."""

import io
import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from chaos.clusters.interface import ClusterError

CORE = re.compile(r"kafka_2\.1[23]-(?P<version>\d[\w.+-]*)\.jar")
"""The jar of the broker; the first number is that of Scala."""
PROPERTIES = "kafka/kafka-version.properties"
"""Where the jar of the clients has the commit that it was built from."""


@dataclass(frozen=True, slots=True)
class Build:
    """A Kafka that was built somewhere: its version, such as `4.4.0-acme`, and its commit."""

    version: str
    commit: str | None
    place: str
    """The folder or image that holds it."""

    def __str__(self) -> str:
        commit = f", commit {self.commit}" if self.commit else ""
        return f"{self.version}{commit}"


def libs_of(kafka_home: Path) -> Path:
    """Return the folder of an unpacked Kafka that has its jars.

    It is `libs` in Apache Kafka's archive, and `share/java/kafka` in Confluent's.
    """
    confluent = kafka_home / "share" / "java" / "kafka"
    return confluent if confluent.is_dir() else kafka_home / "libs"


def of_home(kafka_home: Path) -> Build:
    """Return what an unpacked Kafka is. Raises ClusterError if there is none."""
    libs = libs_of(kafka_home)
    version = version_among(
        (jar.name for jar in sorted(libs.glob("*.jar"))),
        f"no kafka_2.13 jar in {libs}; give the folder that holds Kafka's bin, config and libs",
    )
    clients = libs / f"kafka-clients-{version}.jar"
    return Build(version, commit_of(clients.read_bytes) if clients.is_file() else None, str(libs))


def version_among(names: Iterable[str], missing: str) -> str:
    """Return the version of the broker's jar; raise ClusterError with `missing` if none is."""
    for name in names:
        if match := CORE.fullmatch(name):
            return match["version"]
    raise ClusterError(missing)


def commit_of(read: Callable[[], bytes]) -> str | None:
    """Return the commit that a jar of the clients was built from; None if it does not tell."""
    try:
        with zipfile.ZipFile(io.BytesIO(read())) as jar:
            text = jar.read(PROPERTIES).decode(errors="replace")
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    found = re.search(r"^commitId=([0-9a-f]{7,40})\s*$", text, re.MULTILINE)
    return found[1] if found else None
