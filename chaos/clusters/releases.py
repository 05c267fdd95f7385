"""What differs between Kafka's releases when their brokers are started, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from chaos.clusters.interface import UnsupportedError
from kafka_protocol.coordinator_lines import GRAMMARS, JAVA, SCALA
from scenarios.releases import line_of, require_coordinator

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Coordinator:
    """One of Kafka's group coordinators: what switches it on, and its last log line."""

    properties: Mapping[str, bool]
    shutdown: str


@dataclass(frozen=True, slots=True)
class Release:
    """How the releases of one line are run, and made to write `group.log` and `server.log`.

    `log_binding` is the Maven coordinate that joins Kafka's
    SLF4J to the logging library: the Kafka archive ships it, the coordinate of Kafka itself lacks
    it. `log_jars` are the artifacts that the logging file `logging` needs; `logging_property`
    names it to the JVM.

    `zookeeper` says that brokers keep their metadata in a ZooKeeper, and not in a quorum of their
    own (KRaft, fit for use from 3.3 on: KIP-833). `ready` ends the line in `server.log` by which
    a broker takes requests of clients; `{}` stands for its id. `containers` says whether
    `--cluster docker` has it.
    """

    log_binding: str
    log_jars: tuple[str, ...]
    logging: Path
    logging_property: str
    coordinators: Mapping[str, Coordinator]
    zookeeper: bool = False
    ready: str = "listenerType=BROKER, nodeId={}] Enabling request processing."
    containers: bool = True

    def logging_options(self, logging: PurePath, folder: PurePath) -> tuple[str, ...]:
        """Return the JVM arguments with which a broker writes its logs into `folder`.

        `logging` is where the JVM finds its copy of the logging file: both may be paths of a
        container.
        """
        return (
            "-Duser.timezone=UTC",  # log4j 1 prints local time, and no offset
            f"-Dgroupquake.folder={folder}",
            f"-D{self.logging_property}={logging.as_uri()}",
            jvm_log_option(folder),
        )


def jvm_log_option(folder: PurePath) -> str:
    """Return the JVM argument that logs safepoints and collections into `folder`, JDK 9 and later.

    Each JVM writes a file of its own, `jvm-<process id>-<start>.log`, its lines with epoch ms.
    A path with a colon stands in quotes (JEP 158).
    """
    file = f"{folder}/jvm-%p-%t.log"
    named = f'"{file}"' if ":" in file else file
    return f"-Xlog:safepoint*,gc*:file={named}:timemillis,tags:filecount=0"


SHUTDOWN_LINES = tuple(grammar.last_line_end for grammar in GRAMMARS.values())
"""How the last log line of any coordinator ends."""

_KAFKA_3_9 = Release(
    log_binding="org.slf4j:slf4j-reload4j:1.7.36",
    log_jars=("slf4j-reload4j", "reload4j"),
    logging=_TEMPLATES / "log4j.properties",
    logging_property="log4j.configuration",
    coordinators={
        "scala": Coordinator({"group.coordinator.new.enable": False}, SCALA.last_line_end),
        "java": Coordinator({"group.coordinator.new.enable": True}, JAVA.last_line_end),
    },
)

_KAFKA_3_8 = replace(_KAFKA_3_9, containers=False)

_KAFKA_3_3 = replace(_KAFKA_3_8, coordinators={"scala": Coordinator({}, SCALA.last_line_end)})

_KAFKA_2_8 = replace(
    _KAFKA_3_3, zookeeper=True, ready="[KafkaServer id={}] started (kafka.server.KafkaServer)"
)

# The request log is JSON from 2.8 on (KAFKA-10525).
_KAFKA_2_4 = replace(_KAFKA_2_8, logging=_TEMPLATES / "log4j-text.properties")

_KAFKA_4 = Release(
    log_binding="org.apache.logging.log4j:log4j-slf4j-impl:2.25.3",
    log_jars=("log4j-core", "log4j-slf4j-impl", "jackson-dataformat-yaml", "snakeyaml"),
    logging=_TEMPLATES / "log4j2.yaml",
    logging_property="log4j2.configurationFile",
    coordinators={"java": Coordinator({}, JAVA.last_line_end)},
)

_RELEASES: Mapping[str, Release] = {
    "2.4-2.7": _KAFKA_2_4,
    "2.8-3.2": _KAFKA_2_8,
    "3.3-3.7": _KAFKA_3_3,
    "3.8": _KAFKA_3_8,
    "3.9": _KAFKA_3_9,
    "4.x": _KAFKA_4,
}
"""By the names of `scenarios.releases.LINES`."""


def release_of(version: str, coordinator: str | None = None) -> Release:
    """Return how a Kafka version is run.

    Raises UnsupportedError if it is not supported, or not with that coordinator.
    """
    try:
        require_coordinator(version, coordinator)
    except ValueError as error:
        raise UnsupportedError(str(error)) from None
    return _RELEASES[line_of(version).name]


def require_containers(version: str) -> None:
    """Raise UnsupportedError unless a supported Kafka version can be run in containers."""
    if not release_of(version).containers:
        known = " or ".join(name for name, release in _RELEASES.items() if release.containers)
        raise UnsupportedError(
            f"Kafka {version} cannot be run in containers; use --cluster process, or {known}"
        )
