"""Real Kafka brokers as child processes of the runner, on the loopback."""

import signal
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Unpack

from chaos.clusters import guard, jars
from chaos.clusters.interface import BrokerInfo
from chaos.clusters.java import JVM_OPTIONS, Process, error_line, find_java, freeze, launch
from chaos.clusters.local import LocalBroker, LocalCluster, Settings, new_cluster_id
from chaos.clusters.ports import HOST, free_ports
from chaos.clusters.releases import kraft, server_properties, with_zookeeper
from chaos.clusters.zookeeper import ZooKeeper
from chaos.errors import ClusterError
from chaos.timing import FREEZE_S
from scenarios.external import Verb

_SIGNALS: Mapping[Verb, tuple[signal.Signals, ...]] = {
    "kill": (signal.SIGKILL,),
    "stop": (signal.SIGCONT, signal.SIGTERM),
    "pause": (),  # `freeze` sends it
    "resume": (signal.SIGCONT,),
}


class ProcessBroker(LocalBroker):
    """A broker as a JVM of our own, which is started by `command`."""

    command: tuple[str, ...] = ()
    _process: Process | None = None

    @property
    def exit_status(self) -> int | None:
        """The exit status, negative for a signal."""
        return 0 if self._process is None else self._process.poll()

    @property
    def process_id(self) -> int | None:
        """The process id; None while it does not run."""
        return self._process.pid if self._process is not None and self.runs else None

    def send(self, verb: Verb) -> None:
        """Send a signal; after `pause` no thread runs when this returns."""
        process = self._process
        if process is None or process.poll() is not None:
            raise self._not_running()
        if verb == "pause" and not freeze(process):
            raise ClusterError(
                f"broker {self.info.id}: process {process.pid} still runs {FREEZE_S:.0f} s after"
                " SIGSTOP; the machine may be overloaded"
            )
        for number in _SIGNALS[verb]:
            process.send_signal(number)

    def ended_within(self, timeout_s: float) -> bool:
        """Wait for the process."""
        if self._process is not None:
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return False
        return True

    def _launch(self) -> None:
        self._process = launch(self.command, self.stdout)


class ProcessCluster(LocalCluster):
    """A `LocalCluster` of JVMs of our own; all with the mark end when this process does.

    Brokers of a release that needs a ZooKeeper get one, in the folder `zookeeper` beside theirs.
    With `kafka_home` the jars of that unpacked Kafka run, as the version.
    """

    kind = "process"

    def __init__(
        self,
        run_id: str,
        folder: Path,
        *,
        kafka_home: Path | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(run_id, folder, **settings)
        self._kafka_home = kafka_home
        self._guard: guard.Guard | None = None
        self._brokers: dict[int, ProcessBroker] = self._each(ProcessBroker)
        clients = {info.port for info in self.brokers}
        others = [port for port in free_ports(2 * len(clients)) if port not in clients]
        self._zookeeper: ZooKeeper | None = None
        if self._release.zookeeper:
            self._zookeeper = ZooKeeper(self._folder / "zookeeper", others[0])
        self._voters = {
            node: f"{HOST}:{port}" for node, port in zip(self._brokers, others, strict=False)
        }

    def _set_up(self) -> None:
        java = find_java()
        if self._kafka_home is None:
            self._progress(f"Kafka {self._version}: getting the jars (downloaded once)")
        class_path = ":".join(map(str, jars.class_path(self._version, self._kafka_home)))
        jvm = (str(java), guard.mark(self._run_id), *JVM_OPTIONS, "-cp", class_path)
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

    def act(self, verb: Verb, broker_id: int) -> None:
        """Change a broker; it starts once ZooKeeper has expired its old session."""
        if verb == "start" and self._zookeeper is not None and not self._named(broker_id).runs:
            self._zookeeper.wait_until_forgotten(broker_id)
        super().act(verb, broker_id)

    def _properties(self, info: BrokerInfo) -> str:
        listeners = f"PLAINTEXT://{info.address}"
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
        tool = [*jvm, "kafka.tools.StorageTool", "format", f"--cluster-id={new_cluster_id()}"]

        def format_one(broker: ProcessBroker) -> None:
            config = broker.folder / "server.properties"
            done = subprocess.run(
                [*tool, f"--config={config}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                start_new_session=True,
            )
            if done.returncode != 0:
                raise ClusterError(
                    f"broker {broker.info.id}: its storage cannot be formatted:"
                    f" {error_line(done.stdout)}; check {config}"
                )

        with ThreadPoolExecutor(len(self._brokers)) as pool:
            list(pool.map(format_one, self._brokers.values()))

    def _clean_up(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.end()
        if self._guard is not None:
            self._guard.communicate()  # closes its input: it kills what carries the mark, and ends
            self._guard = None
