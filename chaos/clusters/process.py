"""Real Kafka brokers as child processes of the runner, on the loopback."""

import subprocess
from pathlib import Path
from typing import Unpack

from chaos.clusters import guard, jars
from chaos.clusters.broker import Broker
from chaos.clusters.config import kraft, server_properties, with_zookeeper
from chaos.clusters.error_line import error_line
from chaos.clusters.interface import BrokerInfo, ClusterError
from chaos.clusters.java import find_java
from chaos.clusters.local import JVM_OPTIONS, LocalCluster, Settings
from chaos.clusters.ports import HOST, free_ports
from chaos.clusters.zookeeper import ZooKeeper


class ProcessCluster(LocalCluster):
    """A `LocalCluster` of JVMs of our own; all with the mark end when this process does.

    Brokers of a release that needs a ZooKeeper get one, in the folder `zookeeper` beside theirs.
    With `kafka_home` the jars of that unpacked Kafka run; it must hold the requested version, or
    `built`, if that is no release.
    """

    kind = "process"

    def __init__(
        self,
        run_id: str,
        folder: Path,
        *,
        kafka_home: Path | None = None,
        built: str | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(run_id, folder, **settings)
        self._kafka_home, self._built = kafka_home, built or self._version
        if self._has_clocks:
            raise ClusterError(
                "clock.skew sets the clock of a container, and processes have that of this machine;"
                " use --cluster docker, or leave the fault out"
            )
        self._guard: guard.Guard | None = None
        clients = {info.port for info in self.brokers}
        others = [port for port in free_ports(2 * len(clients)) if port not in clients]
        self._voters: dict[int, str] = {}
        self._zookeeper: ZooKeeper | None = None
        if self._release.zookeeper:
            self._zookeeper = ZooKeeper(self._folder / "zookeeper", others[0])
        else:
            self._voters = {
                info.id: f"{HOST}:{port}" for info, port in zip(self.brokers, others, strict=False)
            }
        self._brokers: dict[int, Broker] = {
            info.id: Broker(info, self._folder / str(info.id), self._words) for info in self.brokers
        }

    def _set_up(self) -> None:
        java = find_java()
        distribution = self._distribution()
        jvm = (
            str(java),
            guard.mark(self._run_id),
            *JVM_OPTIONS,
            "-cp",
            distribution.class_path,
        )
        self._guard = guard.stand_by(self._run_id)
        self._write_files()
        if self._zookeeper is None:
            self._format(jvm)
        else:
            self._zookeeper.start(jvm)
        for broker in self._brokers.values():
            logging = broker.folder / self._release.logging.name
            broker.command = (
                *jvm,
                self._heap,
                *self._release.logging_options(logging, broker.folder),
                "kafka.Kafka",
                str(broker.folder / "server.properties"),
            )

    def _distribution(self) -> jars.Distribution:
        if self._kafka_home is None:
            self._progress(f"Kafka {self._version}: getting the jars (downloaded once)")
            return jars.from_maven(self._version)
        distribution = jars.from_home(self._kafka_home, self._version)
        if distribution.version != self._built:
            raise ClusterError(
                f"{self._kafka_home} is Kafka {distribution.version}, but {self._built} is"
                " requested; leave --kafka out"
            )
        return distribution

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped or killed broker, once ZooKeeper has expired its old session."""
        if self._zookeeper is not None and not self._named(broker_id).runs:
            self._zookeeper.wait_until_forgotten(broker_id)
        super().start_broker(broker_id)

    def _properties(self, info: BrokerInfo) -> str:
        listeners = f"PLAINTEXT://{HOST}:{info.port}"
        if self._zookeeper is None:
            identity = kraft(info.id, self._voters)
            listeners += f",CONTROLLER://{self._voters[info.id]}"
        else:
            identity = with_zookeeper(info.id, self._zookeeper.address)
        data = self._folder / str(info.id) / "data"
        network = {"listeners": listeners}
        return server_properties(identity, len(self.brokers), network, data, self._config)

    def _format(self, jvm: tuple[str, ...]) -> None:
        """Format every broker's storage with Kafka's own tool: it knows the release's features."""
        cluster_id = self._new_id()
        tools = {
            node: subprocess.Popen(
                [
                    *jvm,
                    "kafka.tools.StorageTool",
                    "format",
                    f"--cluster-id={cluster_id}",
                    f"--config={broker.folder / 'server.properties'}",
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            for node, broker in self._brokers.items()
        }
        outputs = {node: tool.communicate()[0] for node, tool in tools.items()}
        for node, tool in tools.items():
            if tool.returncode != 0:
                raise ClusterError(
                    f"broker {node}: its storage cannot be formatted: {error_line(outputs[node])};"
                    f" check {self._brokers[node].folder / 'server.properties'}"
                )

    def _clean_up(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.end()
        if self._guard is not None:
            self._guard.communicate()  # closes its input: it kills what carries the mark, and ends
            self._guard = None
