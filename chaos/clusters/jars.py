"""Gets the jars that a Kafka broker runs on, from Maven Central or from an unpacked Kafka."""

import fcntl
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jgo

from chaos.clusters.builds import libs_of, of_home
from chaos.clusters.interface import ClusterError
from chaos.clusters.releases import release_of

KAFKA = "org.apache.kafka:kafka_2.13"
TOOLS = "org.apache.kafka:kafka-tools"
_TOOLS_OF = {"4.4.0": "4.3.0"}
"""The release whose tools run for one whose own are not in Maven Central."""

_JAR = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[\w.+-]*)\.jar")


@dataclass(frozen=True, slots=True)
class Distribution:
    """A Kafka release that can be run: its version and its class path."""

    version: str
    jars: tuple[Path, ...]

    @property
    def class_path(self) -> str:
        """The value of `java -cp`."""
        return ":".join(str(jar) for jar in self.jars)


def from_maven(version: str) -> Distribution:
    """Return the jars of a release; the first use downloads them, later ones find them cached.

    Raises ClusterError if the release cannot be resolved or is inconsistent.
    """
    # Two resolutions, not one: in one, log4j's dependency management overrules Kafka's and
    # brings the kafka-clients of another release. Kafka's own choice of a jar comes first.
    binding = release_of(version).log_binding
    jars = _build(f"{KAFKA}:{version}")
    # Two jars may share a name: Kafka's metrics-core is Yammer's, ZooKeeper's is Dropwizard's.
    there = {_artifact(jar) for jar in jars}
    jars += [jar for jar in _build(binding) if _artifact(jar) not in there]
    return _checked(version, jars, f"{KAFKA}:{version} and {binding}")


def tools(version: str, kafka_home: Path | None = None) -> Distribution:
    """Return what a release's command line tools run on: their jar and the broker's.

    A release without tools in Maven Central gets those, and the clients, of the release before.

    Their own dependencies include Kafka Connect and its web server. Raises ClusterError
    as `from_maven` and `from_home` do.
    """
    if kafka_home is not None:
        return from_home(kafka_home, version)
    version = _TOOLS_OF.get(version, version)
    jars = _build(f"{TOOLS}:{version}", alone=True)
    return Distribution(version, (*jars, *from_maven(version).jars))


def from_home(kafka_home: Path, release: str | None = None) -> Distribution:
    """Return the jars of an unpacked Kafka, which is run as the `release` [its own version].

    Raises ClusterError if there is no Kafka, or one that is not supported.
    """
    version, libs = of_home(kafka_home).version, libs_of(kafka_home)
    return _checked(version, sorted(libs.glob("*.jar")), str(libs), release)


def _build(coordinate: str, *, alone: bool = False) -> list[Path]:
    """Return the jars, or that of the artifact `alone`, in the local Maven repository.

    They stay there: `jgo.build` links them into a folder that it may rebuild at each call, while
    brokers start from it.
    """
    try:
        with one_at_a_time():
            found = jgo.resolve(coordinate)  # the requested artifact comes first
            return [artifact.resolve() for artifact in (found[:1] if alone else found)]
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


def _checked(
    version: str, jars: Iterable[Path], source: str, release: str | None = None
) -> Distribution:
    needed = release_of(release or version).log_jars
    jars = tuple(jars)
    versions = {_artifact(jar): _version(jar) for jar in jars}
    if versions.get("kafka-clients") != version:
        raise ClusterError(
            f"{source}: kafka-clients is {versions.get('kafka-clients', 'missing')} beside a"
            f" broker {version}; remove the cached jars and try again"
        )
    missing = [artifact for artifact in needed if artifact not in versions]
    if missing:
        raise ClusterError(
            f"{source}: no {', '.join(missing)}, which the observation log needs;"
            f" give an unpacked Kafka {version} that is complete, or use another release"
        )
    return Distribution(version, jars)


def _artifact(jar: Path) -> str:
    match = _JAR.fullmatch(jar.name)
    return match["artifact"] if match else jar.stem


def _version(jar: Path) -> str:
    match = _JAR.fullmatch(jar.name)
    return match["version"] if match else "unknown"
