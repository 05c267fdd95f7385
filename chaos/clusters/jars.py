"""Gets the jars that a Kafka broker runs on, from Maven Central or from an unpacked Kafka."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import jgo

from chaos.clusters.interface import ClusterError

KAFKA = "org.apache.kafka:kafka_2.13"
LOG_BINDING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3"
"""Joins Kafka's SLF4J to log4j2; the Kafka archive ships it, the Maven coordinate lacks it."""

_LOGGING = ("log4j-core", "log4j-slf4j-impl", "jackson-dataformat-yaml", "snakeyaml")
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

    Raises ClusterError if the release cannot be resolved or does not hang together.
    """
    # Two resolutions, not one: in one, log4j's dependency management overrules Kafka's and
    # brings the kafka-clients of another release. Kafka's own choice of a jar comes first.
    one_each: dict[str, Path] = {}
    for jar in [*_build(f"{KAFKA}:{version}"), *_build(LOG_BINDING)]:
        one_each.setdefault(_artifact(jar), jar)
    return _checked(version, one_each.values(), f"{KAFKA}:{version} and {LOG_BINDING}")


def from_home(kafka_home: Path) -> Distribution:
    """Return the jars of an unpacked Kafka (`kafka_home/libs`).

    Raises ClusterError if there is no Kafka, or one without log4j2 (before 4.0).
    """
    jars = sorted((kafka_home / "libs").glob("*.jar"))
    versions = [_version(jar) for jar in jars if _artifact(jar) == "kafka_2.13"]
    if not versions:
        raise ClusterError(
            f"no kafka_2.13 jar in {kafka_home / 'libs'};"
            " give the folder that holds Kafka's bin, config and libs"
        )
    return _checked(versions[0], jars, str(kafka_home / "libs"))


def _build(coordinate: str) -> list[Path]:
    try:
        jars: list[Path] = jgo.build(coordinate).all_jars
    except OSError as error:  # requests' errors are OSErrors too
        raise ClusterError(
            f"{coordinate}: Maven Central cannot be reached, or the cache cannot be written"
            f" ({error}); check the network, or give an unpacked Kafka"
        ) from error
    except Exception as error:  # jgo raises bare RuntimeErrors and ValueErrors
        raise ClusterError(
            f"{coordinate}: not found in Maven Central ({error}); check the Kafka version"
        ) from error
    return jars


def _checked(version: str, jars: Iterable[Path], source: str) -> Distribution:
    jars = tuple(jars)
    versions = {_artifact(jar): _version(jar) for jar in jars}
    if versions.get("kafka-clients") != version:
        raise ClusterError(
            f"{source}: kafka-clients is {versions.get('kafka-clients', 'missing')} beside a"
            f" broker {version}; remove the cached jars and try again"
        )
    missing = [artifact for artifact in _LOGGING if artifact not in versions]
    if missing:
        raise ClusterError(
            f"{source}: no {', '.join(missing)}, which the observation log needs;"
            " use Kafka 4.1 or later, or an unpacked Kafka 4.0"
        )
    return Distribution(version, jars)


def _artifact(jar: Path) -> str:
    match = _JAR.fullmatch(jar.name)
    return match["artifact"] if match else jar.stem


def _version(jar: Path) -> str:
    match = _JAR.fullmatch(jar.name)
    return match["version"] if match else "unknown"
