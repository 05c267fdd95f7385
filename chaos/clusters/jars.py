"""The jars that a Kafka broker runs on: from Maven Central, or of an unpacked Kafka or an image.

A build of the user's is known by its jars: by the version in their names, and by the commit that
the jar of the clients holds.
"""

import fcntl
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jgo

from chaos.clusters.releases import release_of
from chaos.errors import ClusterError

_KAFKA = "org.apache.kafka:kafka_2.13"
_TOOLS = "org.apache.kafka:kafka-tools"
_TOOLS_OF = {"4.4.0": "4.3.0"}
"""The release whose tools run for one whose own are not in Maven Central."""

_JAR = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[\w.+-]*)\.jar")
_BROKER = re.compile(r"kafka_2\.1[23]-(?P<version>\d[\w.+-]*)\.jar")
"""The jar of the broker; the first number is that of Scala."""
_VERSION_FILE = "kafka/kafka-version.properties"
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


def class_path(version: str, kafka_home: Path | None = None) -> tuple[Path, ...]:
    """Return the jars that brokers of a release run on: those of Maven Central, or a home's.

    The first use downloads those of Maven, later ones find them cached. The Kafka in `kafka_home`
    may be a build of the user's, which is run as that release. Raises ClusterError if there is no
    such Kafka, or a jar is missing or of another version.
    """
    if kafka_home is not None:
        libs = _libs_of(kafka_home)
        built = of_home(kafka_home).version
        return _checked(sorted(libs.glob("*.jar")), built, version, str(libs))
    # Two resolutions, not one: in one, log4j's dependency management overrules Kafka's and
    # brings the kafka-clients of another release. Kafka's own choice of a jar comes first.
    binding = release_of(version).log_binding
    jars = _resolved(f"{_KAFKA}:{version}")
    # Two jars may share a name: Kafka's metrics-core is Yammer's, ZooKeeper's is Dropwizard's.
    there = {_artifact(jar)[0] for jar in jars}
    jars += [jar for jar in _resolved(binding) if _artifact(jar)[0] not in there]
    return _checked(jars, version, version, f"{_KAFKA}:{version} and {binding}")


def tools_class_path(version: str, kafka_home: Path | None = None) -> tuple[Path, ...]:
    """Return what a release's command line tools run on: their jar and the broker's.

    A release without tools in Maven Central gets those, and the clients, of the release before.
    Their own dependencies include Kafka Connect and its web server. Raises as `class_path`.
    """
    if kafka_home is not None:
        return class_path(version, kafka_home)
    version = _TOOLS_OF.get(version, version)
    return (*_resolved(f"{_TOOLS}:{version}", most=1), *class_path(version))


def of_home(kafka_home: Path) -> Build:
    """Return what an unpacked Kafka is. Raises ClusterError if there is none."""
    libs = _libs_of(kafka_home)
    version = version_among(
        (jar.name for jar in sorted(libs.glob("*.jar"))),
        f"no kafka_2.13 jar in {libs}; give the folder that holds Kafka's bin, config and libs",
    )
    clients = libs / f"kafka-clients-{version}.jar"
    return Build(version, commit_of(clients.read_bytes) if clients.is_file() else None, str(libs))


def version_among(names: Iterable[str], missing: str) -> str:
    """Return the version of the broker's jar; raise ClusterError with `missing` if none is."""
    for name in names:
        if match := _BROKER.fullmatch(name):
            return match["version"]
    raise ClusterError(missing)


def commit_of(read: Callable[[], bytes]) -> str | None:
    """Return the commit that a jar of the clients was built from; None if it does not tell."""
    try:
        with zipfile.ZipFile(io.BytesIO(read())) as jar:
            text = jar.read(_VERSION_FILE).decode(errors="replace")
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    found = re.search(r"^commitId=([0-9a-f]{7,40})\s*$", text, re.MULTILINE)
    return found[1] if found else None


def _libs_of(kafka_home: Path) -> Path:
    """Return where a Kafka has its jars: `libs` in Apache's archive, another in Confluent's."""
    confluent = kafka_home / "share" / "java" / "kafka"
    return confluent if confluent.is_dir() else kafka_home / "libs"


def _resolved(coordinate: str, most: int | None = None) -> list[Path]:
    """Return the jars of an artifact, its own first and `most` in all, in the local repository.

    They stay there: `jgo.build` links them into a folder that it may rebuild at each call, while
    brokers start from it.
    """
    try:
        with one_at_a_time():
            return [artifact.resolve() for artifact in jgo.resolve(coordinate)[:most]]
    except OSError as error:  # requests' errors are OSErrors too
        raise ClusterError(
            f"{coordinate}: Maven Central cannot be reached, or the cache cannot be written"
            f" ({error}); check the network, or give an unpacked Kafka"
        ) from error
    except Exception as error:  # jgo raises plain RuntimeErrors and ValueErrors
        raise ClusterError(
            f"{coordinate}: not found in Maven Central ({error}); check the Kafka version"
        ) from error


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let one process of this user download at a time: others would see half a jar."""
    with (Path(tempfile.gettempdir()) / f"groupquake-jars-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _checked(jars: list[Path], version: str, release: str, source: str) -> tuple[Path, ...]:
    """Raise ClusterError unless the jars are of one version, with what the logs need."""
    versions = dict(map(_artifact, jars))
    if versions.get("kafka-clients") != version:
        raise ClusterError(
            f"{source}: kafka-clients is {versions.get('kafka-clients', 'missing')} beside a"
            f" broker {version}; remove the cached jars and try again"
        )
    needed = release_of(release).log_jars
    if missing := [artifact for artifact in needed if artifact not in versions]:
        raise ClusterError(
            f"{source}: no {', '.join(missing)}, which the observation log needs;"
            f" give an unpacked Kafka {version} that is complete, or use another release"
        )
    return tuple(jars)


def _artifact(jar: Path) -> tuple[str, str]:
    """Return the name and version of a jar."""
    match = _JAR.fullmatch(jar.name)
    return (match["artifact"], match["version"]) if match else (jar.stem, "unknown")
