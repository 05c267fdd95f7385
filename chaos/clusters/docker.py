"""Real Kafka brokers as containers on a network of their own.

testcontainers starts them, the Docker SDK breaks them. Any image gets its settings as KAFKA_*
variables, as `apache/kafka` does.
The folder of a broker is mounted into its container, so that logs and data have the same place as
those of local processes. Brokers reach each other by name, clients reach them by a fixed port of
127.0.0.1: a port that the engine chooses would change with every start.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Unpack

from docker.errors import NotFound
from docker.models.containers import Container
from docker.types import Mount
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from chaos.clusters import clock, guard
from chaos.clusters.broker_network import BETWEEN_BROKERS, BrokerNetwork
from chaos.clusters.docker_engine import LABEL, engine, engine_errors, remove_marked
from chaos.clusters.image import choose, command, require_library
from chaos.clusters.interface import BrokerInfo
from chaos.clusters.java import JVM_OPTIONS
from chaos.clusters.local import LocalBroker, LocalCluster, Settings, new_cluster_id
from chaos.clusters.ports import HOST
from chaos.clusters.releases import kraft, require_containers, server_properties
from chaos.errors import ClusterError
from scenarios.external import Verb

# Its reaper would be an image to pull; what a run leaves behind is found by our label instead.
testcontainers_config.ryuk_disabled = True

_FOLDER = PurePosixPath("/groupquake")
"""The broker's folder inside the container."""

_CLIENTS, _BROKERS, _CONTROLLER = 9092, BETWEEN_BROKERS, 9093
"""The ports inside a container."""


class ContainerBroker(LocalBroker):
    """A broker in `container`, which is created at the first launch and started again later."""

    container: DockerContainer | None = None
    _created: Container | None = None

    @property
    def exit_status(self) -> int | None:
        """The exit status of the JVM, 137 after SIGKILL; None while it runs."""
        state = self._state()
        return None if state["Running"] else int(state["ExitCode"])

    @property
    def process_id(self) -> int | None:
        """The process id that the engine last reported; None if the container does not run."""
        state = {} if self._created is None else self._created.attrs.get("State", {})
        return state.get("Pid") or None

    @property
    def address(self) -> str:
        """Its address on the network of the brokers. Raises ClusterError if it does not run."""
        with self._running() as container:
            networks = container.attrs["NetworkSettings"]["Networks"].values()
        return str(next(iter(networks))["IPAddress"])

    def execute(self, *command: str) -> tuple[int, str]:
        """Run a command as root in the container; return exit code and output.

        Raises ClusterError if the container does not run, or is paused.
        """
        with self._running() as container:
            done = container.exec_run(list(command), user="root")
        assert isinstance(done.output, bytes), "it is not streamed"
        return done.exit_code or 0, done.output.decode(errors="replace")

    def send(self, verb: Verb) -> None:
        """Ask it of the engine, which thaws a paused container to kill it."""
        with self._running() as container:
            if verb in ("resume", "stop") and container.status == "paused":
                container.unpause()
            if verb in ("kill", "stop"):
                container.kill("SIGKILL" if verb == "kill" else "SIGTERM")
            elif verb == "pause":
                container.pause()

    def forget(self) -> None:
        """Drop the container, once it was removed."""
        if self.container is not None:
            self.container.get_docker_client().client.close()
        self.container = self._created = None

    def _launch(self) -> None:
        with engine_errors():
            if self._created is not None:
                self._created.start()
            elif self.container is not None:
                self._created = self.container.start().get_wrapped_container()

    @contextmanager
    def _running(self) -> Iterator[Container]:
        """Yield the container, which runs or is paused; errors become ClusterErrors."""
        if self._created is None or not self.runs:
            raise self._not_running()
        with engine_errors():
            yield self._created

    def _state(self) -> Mapping[str, Any]:
        """Return the state of the container from the engine."""
        if self._created is None:
            return {"Running": False, "ExitCode": 0}
        with engine_errors():
            try:
                self._created.reload()
            except NotFound:
                return {"Running": False, "ExitCode": 137}  # removed: by hand, or by `heal`
        state: Mapping[str, Any] = self._created.attrs["State"]
        return state


class DockerCluster(LocalCluster):
    """A `LocalCluster` of containers, from an image of that release (see `image.choose`).

    All containers and networks with the label of the run are removed when this process ends.
    """

    kind = "docker"

    def __init__(
        self,
        run_id: str,
        folder: Path,
        *,
        image: str | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(run_id, folder, **settings)
        require_containers(self._version)
        self._image = image
        self._networks = settings.get("networks", ())
        self._has_clocks = settings.get("clocks", False)
        self._labels = {LABEL: run_id}
        self._cluster_id = new_cluster_id()
        self._guard: guard.Guard | None = None
        self._brokers: dict[int, ContainerBroker] = self._each(ContainerBroker)
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

    def clock(self, broker_id: int) -> clock.Clock:
        """Return the wall clock of a broker. Raises ClusterError without `clocks`."""
        if not self._has_clocks:
            raise ClusterError(f"broker {broker_id} has the clock of this machine")
        info = self._named(broker_id).info
        return clock.Clock(self._folder / str(info.id), info.server_log, (info.host, info.port))

    def _set_up(self) -> None:
        with engine() as client:
            self._guard = guard.stand_by(self._run_id, containers=True)
            image = choose(client, self._version, self._image, self._progress)
            if self._has_clocks:
                require_library(client, image, self._version, self._labels)
            started_by = command(client, image)
        self._write_files()
        for node in self._brokers if self._has_clocks else ():
            self.clock(node).set_off(0)
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
