"""Real Kafka brokers as containers on a network of their own.

Any image gets its settings as KAFKA_* variables, as `apache/kafka` does.
The folder of a broker is mounted into its container, so that logs and data have the same place as
those of local processes. Brokers reach each other by name, clients reach them by a fixed port of
127.0.0.1: a port that the engine chooses would change with every start.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Unpack

from docker.types import Mount
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from chaos.clusters import clock, guard
from chaos.clusters.broker_network import BETWEEN_BROKERS, BrokerNetwork
from chaos.clusters.config import kraft, server_properties
from chaos.clusters.docker_broker import ContainerBroker
from chaos.clusters.docker_engine import LABEL, engine, engine_errors, remove_marked
from chaos.clusters.image import choose, command, require_library
from chaos.clusters.interface import BrokerInfo, ClusterError
from chaos.clusters.local import JVM_OPTIONS, LocalCluster, Settings
from chaos.clusters.ports import HOST
from chaos.clusters.releases import require_containers

# Its reaper would be an image to pull; what a run leaves behind is found by our label instead.
testcontainers_config.ryuk_disabled = True

_FOLDER = PurePosixPath("/groupquake")
"""The broker's folder inside the container."""

_CLIENTS, _BROKERS, _CONTROLLER = 9092, BETWEEN_BROKERS, 9093
"""The ports inside a container."""


class DockerCluster(LocalCluster):
    """A `LocalCluster` of containers, from an image of that release (see `image.choose`).

    All containers and networks with the label of the run are removed when this process ends.
    `built` is the version that `image` holds, if that is no release.
    """

    kind = "docker"

    def __init__(
        self,
        run_id: str,
        folder: Path,
        *,
        image: str | None = None,
        built: str | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(run_id, folder, **settings)
        require_containers(self._version)
        self._image, self._built = image, built or self._version
        self._labels = {LABEL: run_id}
        self._cluster_id = self._new_id()
        self._guard: guard.Guard | None = None
        self._brokers: dict[int, ContainerBroker] = {
            info.id: ContainerBroker(info, self._folder / str(info.id), self._words)
            for info in self.brokers
        }
        self._between = BrokerNetwork(self._brokers)

    def start(self) -> None:
        """Start every broker; try what changes of their network need.

        Raises ClusterError, with nothing left running, if any of this fails.
        """
        super().start()
        try:
            self._between.require(self._networks)
        except BaseException:
            self.stop()
            raise

    def network(self) -> BrokerNetwork:
        """Return the network between the brokers. Raises ClusterError without `networks`."""
        if not self._networks:
            raise ClusterError("the containers were started without NET_ADMIN")
        return self._between

    def _set_up(self) -> None:
        with engine() as client:
            self._guard = guard.stand_by(self._run_id, containers=True)
            image = choose(
                client, self._version, self._image, self._built, self._labels, self._progress
            )
            if self._has_clocks:
                require_library(client, image, self._version, self._labels)
            started_by = command(client, image)
        self._write_files()
        self._progress(f"containers of {image}")
        with engine_errors():
            network = Network(docker_network_kw={"labels": self._labels})
            network.name = self._name("network")
            network.create()
            for broker in self._brokers.values():
                container = self._container(broker, image, network)
                broker.container = container.with_command(started_by)

    def _name(self, what: str | int) -> str:
        return f"groupquake-{re.sub('[^a-zA-Z0-9_.-]', '_', self._run_id)}-{what}"

    def _container(self, broker: ContainerBroker, image: str, network: Network) -> DockerContainer:
        node = broker.info.id
        container = DockerContainer(
            image,
            name=self._name(node),
            hostname=_host(node),
            network=network,
            network_aliases=[_host(node)],
            labels=self._labels,
            env=self._variables(broker),
            # A mount, not a volume: these are cut at colons, which a path may hold.
            mounts=[Mount(str(_FOLDER), str(broker.folder), type="bind")],
            user=f"{os.getuid()}:{os.getgid()}",  # what it writes belongs to who runs us
            cap_add=["NET_ADMIN"] if self._networks else [],  # for root in it, not for the broker
            entrypoint=["/bin/sh", "-c", f'exec "$@" >>{_FOLDER}/stdout.log 2>&1', "sh"],
        )
        pinned = (HOST, broker.info.port)
        container.ports = {f"{_CLIENTS}/tcp": pinned}  # type: ignore[dict-item]  # it is passed on
        # The scripts of `apache/kafka` write there, and that user could not.
        container.tmpfs = {"/opt/kafka/config": f"uid={os.getuid()}"}
        return container

    def _variables(self, broker: ContainerBroker) -> dict[str, str]:
        properties = (broker.folder / "server.properties").read_text().splitlines()
        logging = self._release.logging_options(_FOLDER / self._release.logging.name, _FOLDER)
        return {
            **dict(_variable(line) for line in properties),
            "CLUSTER_ID": self._cluster_id,
            "KAFKA_HEAP_OPTS": self._heap,
            "KAFKA_JVM_PERFORMANCE_OPTS": " ".join(JVM_OPTIONS),
            "KAFKA_LOG4J_OPTS": " ".join(logging),
            **(clock.variables(_FOLDER) if self._has_clocks else {}),
            "LOG_DIR": "/tmp",  # noqa: S108 (the container's: Kafka's scripts log collections there)
        }

    def _properties(self, info: BrokerInfo) -> str:
        ids = [each.id for each in self.brokers]
        network = {
            "listeners": (
                f"PLAINTEXT://:{_CLIENTS},BROKERS://:{_BROKERS},CONTROLLER://:{_CONTROLLER}"
            ),
            "advertised.listeners": (
                f"PLAINTEXT://{HOST}:{info.port},BROKERS://{_host(info.id)}:{_BROKERS}"
            ),
            "inter.broker.listener.name": "BROKERS",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
        }
        voters = {node: f"{_host(node)}:{_CONTROLLER}" for node in ids}
        return server_properties(
            kraft(info.id, voters), len(ids), network, _FOLDER / "data", self._config
        )

    def _clean_up(self) -> None:
        if self._guard is None:
            return
        remove_marked(self._run_id)
        with self._guard:
            self._guard.kill()  # nothing is left for it to remove
        self._guard = None
        for broker in self._brokers.values():
            broker.forget()


def _host(node: int) -> str:
    """Return the name by which brokers know each other."""
    return f"kafka-{node}"


def _variable(line: str) -> tuple[str, str]:
    """Turn a line of `server.properties` into a variable: its name as apache/kafka spells it."""
    key, value = line.split("=", 1)
    if key != key.lower():
        raise ClusterError(
            f"the broker property {key} has capital letters, which KAFKA_* variables cannot carry;"
            " leave it out, or use --cluster process"
        )
    spelt = key.replace("_", "__").replace("-", "___").replace(".", "_")
    return f"KAFKA_{spelt.upper()}", value
