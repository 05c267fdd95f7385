"""Real Kafka brokers as child processes of the runner, on the loopback.

Every broker is a KRaft node of both roles (broker and controller) in a JVM of its own, so that
any of them can be broken without breaking the others. Layout, under the cluster's folder:

    processes.json                          what runs: process ids and start times, for `heal`
    <id>/server.properties log4j2.yaml      what the broker was started with
    <id>/group.log server.log stdout.log    what it said
    <id>/data/                              what it stored
"""

import base64
import json
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from chaos.clusters import guard, jars
from chaos.clusters.broker import Broker
from chaos.clusters.complaint import complaint
from chaos.clusters.config import LOG4J2, Properties, server_properties
from chaos.clusters.interface import BrokerInfo, ClusterError
from chaos.clusters.java import find_java
from chaos.clusters.ports import HOST, free_ports, require_free

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
_POLL_S = 0.05
_GRACE_S = 0.5
_PROGRESS_EVERY_S = 2.0

# The C1 compiler alone: a broker lives for minutes, and several of them warm up on few cores
# (measured on two: ready in 1.7 s instead of 2.8 s, for half of the CPU time).
_JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")
_HEAP = "-Xmx256m"


class ProcessCluster:
    """A `Cluster` of one to five local brokers; as a context manager it starts and stops them.

    `folder` receives one folder per broker. `run_id` marks every JVM, and whatever carries the
    mark ends when this process does. `config` holds broker properties that win over the defaults.
    `ports` are the client ports, one per broker; free ones are picked without it. With
    `kafka_home` the jars of that unpacked Kafka run, whatever `version` says. `progress` is told
    what happens, a line at a time.
    """

    def __init__(
        self,
        run_id: str,
        folder: Path,
        version: str = "4.3.0",
        brokers: int = 3,
        config: Properties | None = None,
        *,
        progress: Callable[[str], None] = lambda _: None,
        ports: Sequence[int] | None = None,
        kafka_home: Path | None = None,
    ) -> None:
        if not 1 <= brokers <= 5:
            raise ClusterError(f"{brokers} brokers asked for; a process cluster has 1 to 5")
        if ports is not None and len(set(ports)) != brokers:
            raise ClusterError(f"{brokers} brokers need {brokers} different ports, not {ports}")
        self._run_id = run_id
        self._folder = folder.absolute()
        self._version = version
        self._kafka_home = kafka_home
        self._config = config or {}
        self._progress = progress
        self._asked_ports = tuple(ports or ())
        self._guard: subprocess.Popen[bytes] | None = None
        self._jvm: tuple[str, ...] = ()
        self._recording = threading.Lock()  # brokers may be healed side by side
        picked = free_ports(2 * brokers)
        clients = self._asked_ports or picked[:brokers]
        ids = range(1, brokers + 1)
        self._ports = dict(zip(ids, zip(clients, picked[brokers:], strict=True), strict=True))
        self._brokers = {node: self._broker(node) for node in ids}

    def _broker(self, node: int) -> Broker:
        folder = self._folder / str(node)
        port, _ = self._ports[node]
        return Broker(
            BrokerInfo(node, port, folder / "group.log", folder / "server.log"),
            folder,
        )

    @property
    def bootstrap(self) -> str:
        """`127.0.0.1:port` of every broker, comma-separated."""
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers)

    @property
    def brokers(self) -> tuple[BrokerInfo, ...]:
        """All brokers, ordered by id, running or not."""
        return tuple(broker.info for broker in self._brokers.values())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Get the jars, format the storage, start every broker and wait until all are ready.

        Raises ClusterError, with nothing left running, if any of this fails.
        """
        require_free(self._asked_ports)
        java = find_java()
        if self._kafka_home is None:
            self._progress(f"Kafka {self._version}: getting the jars (downloaded once)")
            distribution = jars.from_maven(self._version)
        else:
            distribution = jars.from_home(self._kafka_home)
            if distribution.version != self._version:
                raise ClusterError(
                    f"{self._kafka_home} is Kafka {distribution.version}, but {self._version} is"
                    f" asked for; add --kafka {distribution.version}"
                )
        self._jvm = (
            str(java),
            guard.mark(self._run_id),
            *_JVM_OPTIONS,
            "-cp",
            distribution.class_path,
        )
        self._progress(f"Kafka {distribution.version}: starting {self.bootstrap}")
        try:
            self._guard = guard.stand_by(self._run_id)
            self._write_files()
            self._format()
            self._launch(self._brokers.values())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Shut every broker down at once, and leave nothing behind.

        A broker is killed once its group coordinator has closed its log, or after 20 s without.
        """
        running = [broker for broker in self._brokers.values() if broker.pid is not None]
        for broker in running:
            broker.signal(signal.SIGCONT)
            broker.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while any(broker.pid and not broker.has_closed_groups() for broker in running):
            if time.monotonic() > deadline:
                self._progress("some brokers did not stop in time; killing them")
                break
            time.sleep(_POLL_S)
        # The last controller would wait 5 s for a quorum that is gone (4.3); nothing hangs on it.
        for broker in running:
            if not broker.ended_within(_GRACE_S):
                broker.signal(signal.SIGKILL)
                broker.ended_within(STOP_TIMEOUT_S)
        if self._guard is not None:
            self._guard.communicate()  # closes its input: it kills what carries the mark, and ends
            self._guard = None
            self._record_processes()

    def kill(self, broker_id: int) -> None:
        """SIGKILL a broker, paused or not, and wait until its process is gone."""
        broker = self._named(broker_id)
        broker.signal(signal.SIGKILL)
        broker.ended_within(STOP_TIMEOUT_S)
        self._record_processes()

    def stop_broker(self, broker_id: int) -> None:
        """SIGTERM a broker and wait until it has shut down.

        Raises ClusterError if it still runs 20 s later, as it may without a controller quorum.
        """
        broker = self._named(broker_id)
        broker.signal(signal.SIGCONT)
        broker.signal(signal.SIGTERM)
        if not broker.ended_within(STOP_TIMEOUT_S):
            raise ClusterError(
                f"broker {broker_id} still runs {STOP_TIMEOUT_S:.0f} s after SIGTERM;"
                f" kill it instead, or see {broker.info.server_log}"
            )
        self._record_processes()

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped or killed broker on its old ports and data; wait until it is ready.

        Raises ClusterError if it ends or is not ready in 60 s; in the latter case it runs on.
        """
        self._launch([self._named(broker_id)])

    def pause(self, broker_id: int) -> None:
        """SIGSTOP a broker: its sockets stay open, nothing answers."""
        self._named(broker_id).signal(signal.SIGSTOP)

    def resume(self, broker_id: int) -> None:
        """SIGCONT a paused broker."""
        self._named(broker_id).signal(signal.SIGCONT)

    def _named(self, broker_id: int) -> Broker:
        try:
            return self._brokers[broker_id]
        except KeyError:
            known = ", ".join(str(node) for node in self._brokers)
            raise ClusterError(f"there is no broker {broker_id}; brokers are {known}") from None

    def _write_files(self) -> None:
        for node, broker in self._brokers.items():
            try:
                broker.folder.mkdir(parents=True)
            except FileExistsError:
                raise ClusterError(
                    f"{broker.folder} is there already; give every cluster a folder of its own"
                ) from None
            shutil.copyfile(LOG4J2, broker.folder / "log4j2.yaml")
            (broker.folder / "server.properties").write_text(
                server_properties(node, self._ports, broker.folder / "data", self._config)
            )

    def _format(self) -> None:
        """Let Kafka's own tool format every broker's storage: it knows a release's features."""
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tools = {
            node: subprocess.Popen(
                [
                    *self._jvm,
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
        said = {node: tool.communicate()[0] for node, tool in tools.items()}
        for node, tool in tools.items():
            if tool.returncode != 0:
                raise ClusterError(
                    f"broker {node}: its storage cannot be formatted: {complaint(said[node])};"
                    f" check {self._brokers[node].folder / 'server.properties'}"
                )

    def _launch(self, brokers: Iterable[Broker]) -> None:
        waiting = list(brokers)
        for broker in waiting:
            broker.launch(
                [
                    *self._jvm,
                    _HEAP,
                    f"-Dgroupquake.folder={broker.folder}",
                    f"-Dlog4j2.configurationFile={(broker.folder / 'log4j2.yaml').as_uri()}",
                    "kafka.Kafka",
                    str(broker.folder / "server.properties"),
                ]
            )
        self._record_processes()
        self._wait_ready(waiting)

    def _wait_ready(self, waiting: list[Broker]) -> None:
        started = told = time.monotonic()
        while True:
            waiting = [broker for broker in waiting if not broker.is_ready()]
            now = time.monotonic()
            if not waiting:
                self._progress(f"ready after {now - started:.1f} s")
                return
            names = ", ".join(str(broker.info.id) for broker in waiting)
            if now - started > READY_TIMEOUT_S:
                raise ClusterError(
                    f"broker {names} not ready after {READY_TIMEOUT_S:.0f} s:"
                    f" {waiting[0].complaint()}; see {waiting[0].folder}"
                )
            if now - told > _PROGRESS_EVERY_S:
                self._progress(f"waiting for broker {names} ({now - started:.0f} s)")
                told = now
            time.sleep(_POLL_S)

    def _record_processes(self) -> None:
        """Write `processes.json`: ids are reused, so each stands with its start time."""
        with self._recording:
            running = [
                {
                    "id": node,
                    "pid": broker.pid,
                    "started_at_ms": round(psutil.Process(broker.pid).create_time() * 1000),
                }
                for node, broker in self._brokers.items()
                if broker.pid is not None
            ]
            text = json.dumps({"run_id": self._run_id, "brokers": running}, indent=1)
            unfinished = self._folder / "processes.json.new"
            unfinished.write_text(text + "\n")
            unfinished.replace(self._folder / "processes.json")
