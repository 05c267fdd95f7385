"""What differs between Kafka's releases when their brokers are started, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from chaos.errors import UnsupportedError
from kafka_protocol.coordinator_lines import GRAMMARS
from scenarios.releases import line_of, require_coordinator

TEMPLATES = Path(__file__).parent / "templates"


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


SHUTDOWN_LINES = {name: grammar.last_line_end for name, grammar in GRAMMARS.items()}
"""How the last log line of each coordinator ends."""

_KAFKA_3_9 = Release(
    log_binding="org.slf4j:slf4j-reload4j:1.7.36",
    log_jars=("slf4j-reload4j", "reload4j"),
    logging=TEMPLATES / "log4j.properties",
    logging_property="log4j.configuration",
)
_KAFKA_3_3 = replace(_KAFKA_3_9, containers=False)
_KAFKA_2_8 = replace(
    _KAFKA_3_3, zookeeper=True, ready="[KafkaServer id={}] started (kafka.server.KafkaServer)"
)

_RELEASES: Mapping[str, Release] = {
    # The request log is JSON from 2.8 on (KAFKA-10525).
    "2.4-2.7": replace(_KAFKA_2_8, logging=TEMPLATES / "log4j-text.properties"),
    "2.8-3.2": _KAFKA_2_8,
    "3.3-3.7": _KAFKA_3_3,
    "3.8": _KAFKA_3_3,
    "3.9": _KAFKA_3_9,
    "4.x": Release(
        log_binding="org.apache.logging.log4j:log4j-slf4j-impl:2.25.3",
        log_jars=("log4j-core", "log4j-slf4j-impl", "jackson-dataformat-yaml", "snakeyaml"),
        logging=TEMPLATES / "log4j2.yaml",
        logging_property="log4j2.configurationFile",
    ),
}
"""By the names of `scenarios.releases.SUPPORTED_LINES`."""


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


Properties = Mapping[str, str | int | bool]


def choosing(version: str, coordinator: str) -> Properties:
    """Return the properties that switch a coordinator on, where the release has both."""
    _, *others = line_of(version).coordinators
    return {"group.coordinator.new.enable": coordinator == "java"} if others else {}


def kraft(broker_id: int, voters: Mapping[int, str]) -> Properties:
    """Return who a broker is, where each is a controller too.

    `voters` holds `host:port` of the listener CONTROLLER of every broker, by broker id, as its
    peers reach it.
    """
    return {
        "node.id": broker_id,
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(f"{node}@{at}" for node, at in voters.items()),
    }


def with_zookeeper(broker_id: int, address: str) -> Properties:
    """Return who a broker is, where a ZooKeeper at `address` (`host:port`) keeps the metadata."""
    return {
        "broker.id": broker_id,
        "zookeeper.connect": address,
        # The default of 2.4. It is 18 s from 2.5 on, for the sake of clouds (KIP-537), and a killed
        # broker cannot come back before.
        "zookeeper.session.timeout.ms": 6_000,
    }


def server_properties(
    identity: Properties, brokers: int, network: Properties, data: PurePath, overrides: Properties
) -> str:
    """Return the `server.properties` of one of so many brokers.

    `identity` is what `kraft` or `with_zookeeper` returns. `network` holds the `listeners` and
    whatever more the place needs, such as `advertised.listeners`. `overrides` win over all of it.
    """
    replicas = min(3, brokers)
    properties: Properties = {
        "log.dirs": str(data),
        "auto.create.topics.enable": False,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": 6,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 2,
        # The group records of a run are evidence: nothing may compact them away. The cleaner
        # itself cannot be switched off for ever, but its buffer need not be half of the heap.
        "log.cleaner.min.compaction.lag.ms": 7 * 24 * 3600 * 1000,
        "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
        "num.network.threads": 2,
        "num.io.threads": 4,
    }
    return as_properties({**identity, **properties, **network, **overrides})


def as_properties(properties: Properties) -> str:
    """Return the text of a properties file."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str | int | bool) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace("\n", "\\n")
