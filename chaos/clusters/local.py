"""What all clusters on this machine share: ports, files, verbs and readiness.

From 3.3 on every broker is a KRaft node of both roles (broker and controller), so that any of them
can be broken without breaking the others. Layout, under the cluster's folder:

    <id>/server.properties                  what the broker was started with, beside the
                                            logging file of its release
    <id>/group.log server.log stdout.log    its logs
    <id>/data/                              its data
"""

import base64
import os
import shutil
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, TypedDict, TypeVar, Unpack

from chaos.clusters import volume
from chaos.clusters.broker_network import Change
from chaos.clusters.interface import GROUP_LOG, BrokerInfo, Cluster, CutShort
from chaos.clusters.java import error_line
from chaos.clusters.ports import free_ports, require_free
from chaos.clusters.releases import SHUTDOWN_LINES, Properties, choosing, release_of
from chaos.clusters.volume import Volume
from chaos.errors import ClusterError
from chaos.timing import (
    CLOSED_STOP_S,
    NO_QUORUM_STOP_S,
    POLL_S,
    PROGRESS_EVERY_S,
    READY_S,
    STOP_S,
)
from chaos.waiting import until
from scenarios.external import Verb
from scenarios.releases import DEFAULT_RELEASE

HEAP_MB = 256
AFTER = "after-"
"""What the names begin with of logs that brokers write when the evidence has ended."""


class LocalBroker(ABC):
    """Starts, watches and breaks one broker. Its folder holds everything it writes.

    `ready` is in `server.log` once it accepts requests of clients; `shutdown` ends the last line of
    its group coordinator.
    """

    def __init__(self, info: BrokerInfo, ready: str, shutdown: str) -> None:
        self.info = info
        self.folder = info.group_log.parent
        self.stdout = self.folder / "stdout.log"
        self._ready = ready.format(info.id)
        self._shutdown = shutdown
        self._sizes_at_launch: dict[Path, int] = {}

    @property
    @abstractmethod
    def exit_status(self) -> int | None:
        """What it ended with, negative for a signal of a process; None while it runs, or is paused.

        It is 0 before the first launch.
        """

    @property
    def runs(self) -> bool:
        """Whether it runs, or is paused."""
        return self.exit_status is None

    @property
    def process_id(self) -> int | None:
        """The process id of its JVM as this machine has it; None if there is none, or unknown."""
        return None

    @abstractmethod
    def send(self, verb: Verb) -> None:
        """Kill, stop, pause or resume it. Raises ClusterError if it does not run."""

    def ended_within(self, timeout_s: float) -> bool:
        """Wait until it has ended; False if it still runs after `timeout_s`."""
        return until(lambda: not self.runs, timeout_s)

    @abstractmethod
    def _launch(self) -> None:
        """Start the JVM, for the first time or again."""

    def launch(self) -> None:
        """Start it; it is ready some seconds later. It appends to its logs."""
        if self.runs:
            raise ClusterError(f"broker {self.info.id} already runs")
        _end_line(self.info.group_log)
        logs = (self.info.group_log, self.info.server_log, self.stdout)
        self._sizes_at_launch = {log: _size(log) for log in logs}
        self._launch()

    def is_ready(self) -> bool:
        """Whether the broker has logged since its launch that it accepts requests of clients.

        An open port is no proof: the controller's opens seconds before (seen on 4.3).
        Raises ClusterError with the error line of the broker if it has ended.
        """
        status = self.exit_status
        if status is not None:
            raise ClusterError(
                f"broker {self.info.id} ended with status {status} before it was"
                f" ready: {self.error_line()}; see {self.folder}"
            )
        return self._ready in self._logged(self.info.server_log)

    @property
    def log_bytes(self) -> int:
        """How long its `group.log` is."""
        return _size(self.info.group_log)

    def has_closed_groups(self) -> bool:
        """Whether the group coordinator's last line is written: nothing follows in `group.log`.

        No request is answered any more by then: the broker has closed its connections (3.9, 4.3).
        """
        return self._shutdown in self._logged(self.info.group_log, since=self.log_bytes - 1000)

    def end_log(self) -> CutShort:
        """End its logs that are evidence; it has them open, and goes on under their new names."""
        group_log = self.info.group_log
        for log in (group_log, *self.folder.glob("jvm-*.log")):
            log.rename(after := log.with_name(AFTER + log.name))
            shutil.copyfile(after, log)
            _end_line(log)
        cut = CutShort(self.info.id, self.log_bytes)
        self.info = replace(self.info, group_log=group_log.with_name(AFTER + group_log.name))
        self._sizes_at_launch[self.info.group_log] = self._sizes_at_launch[group_log]
        return cut

    def error_line(self) -> str:
        """Return the line that says best what went wrong since the launch of the broker."""
        return error_line(self._logged(self.info.server_log) + "\n" + self._logged(self.stdout))

    def _not_running(self) -> ClusterError:
        return ClusterError(f"broker {self.info.id} does not run; start it first")

    def _logged(self, log: Path, since: int = 0) -> str:
        """Return what a log holds from byte `since` on, and from the last launch on."""
        if not log.exists():
            return ""
        with log.open("rb") as file:
            file.seek(max(since, self._sizes_at_launch[log]))
            return file.read().decode(errors="replace")


Broker = TypeVar("Broker", bound=LocalBroker)


class Settings(TypedDict, total=False):
    """The settings of any kind of cluster; the default of each is in brackets.

    `version` is the Kafka release [4.3.0], `coordinator` is `scala` or `java`, where the release
    has both [java]; `brokers` is their number, 1 to 5 [3]; `heap_mb` is the heap of each [256];
    `config` holds broker properties that win over ours [none]; with `volumes` the data of each is
    on a file system of its own [no]; `ports` are the client ports, one per broker [free ones].
    Containers alone have what follows: with `clocks` the wall clock of each can be set [no];
    `networks` is what may be done to the network between them [nothing]. `progress` gets a line for
    each thing that happens.
    """

    version: str
    coordinator: str
    brokers: int
    heap_mb: int
    config: Properties
    ports: Sequence[int] | None
    volumes: bool
    networks: Collection[Change]
    clocks: bool
    progress: Callable[[str], None]


class LocalCluster(Cluster):
    """A `Cluster` on this machine; as a context manager it starts and stops the brokers.

    `run_id` marks all processes and containers. `folder` receives one folder per broker.
    """

    client_properties: Mapping[str, str] = {}  # its listeners are plain, on the loopback
    logs_shutdowns = True
    _brokers: Mapping[int, LocalBroker]

    def __init__(self, run_id: str, folder: Path, **settings: Unpack[Settings]) -> None:
        count = settings.get("brokers", 3)
        ports = settings.get("ports")
        if not 1 <= count <= 5:
            raise ClusterError(f"{count} brokers requested; a {self.kind} cluster has 1 to 5")
        if ports is not None and not len(ports) == len(set(ports)) == count:
            raise ClusterError(f"{count} brokers need {count} different ports, not {ports}")
        self._run_id = run_id
        self._folder = folder.absolute()
        self._version = settings.get("version", DEFAULT_RELEASE)
        self._coordinator = settings.get("coordinator", "java")
        self._release = release_of(self._version, self._coordinator)
        chosen = choosing(self._version, self._coordinator)
        self._config: Properties = {**settings.get("config", {}), **chosen}
        self._heap = f"-Xmx{settings.get('heap_mb', HEAP_MB)}m"
        self._progress: Callable[[str], None] = settings.get("progress", lambda _: None)
        self._asked_ports = tuple(ports or ())
        self._has_volumes = settings.get("volumes", False)
        self.brokers = tuple(
            BrokerInfo(node, port, place / GROUP_LOG, place / "server.log")
            for node, port in enumerate(self._asked_ports or free_ports(count), 1)
            for place in [self._folder / str(node)]
        )
        self.bootstrap = ",".join(info.address for info in self.brokers)

    def _each(self, kind: type[Broker]) -> dict[int, Broker]:
        """Return the brokers as a class of their kind, by id."""
        lines = self._release.ready, SHUTDOWN_LINES[self._coordinator]
        return {info.id: kind(info, *lines) for info in self.brokers}

    @abstractmethod
    def _set_up(self) -> None:
        """Get everything ready for `_brokers` to be launched."""

    @abstractmethod
    def _clean_up(self) -> None:
        """End and remove all with the mark; does nothing if nothing was started."""

    @abstractmethod
    def _properties(self, info: BrokerInfo) -> str:
        """Return the `server.properties` of one broker."""

    @property
    def process_ids(self) -> Mapping[int, int]:
        """The process ids of the brokers that run, by broker id."""
        known = {node: broker.process_id for node, broker in self._brokers.items()}
        return {node: pid for node, pid in known.items() if pid is not None}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Get what is needed, start every broker and wait until all are ready.

        Raises ClusterError, with nothing left running, if any of this fails.
        """
        require_free(self._asked_ports)
        try:
            self._set_up()
            self._progress(f"Kafka {self._version}: starting {self.bootstrap}")
            self._launch(self._brokers.values())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> tuple[CutShort, ...]:
        """Shut all brokers down at the same time, and leave nothing behind.

        A broker is killed once its group coordinator has logged its shutdown, or after 20 s: it may
        wait for a controller quorum that no longer exists. The latter are returned.
        """
        running = [broker for broker in self._brokers.values() if broker.runs]
        volume.thaw_all(self._folder)
        try:
            self._stop_brokers(running)
        finally:
            self._clean_up()
            volume.remove_all(self._folder)
        return tuple(
            CutShort(broker.info.id, broker.log_bytes)
            for broker in running
            if not broker.has_closed_groups()
        )

    def end_logs(self) -> tuple[CutShort, ...]:
        """Go on in other files; see `Cluster`. Raises ClusterError."""
        try:
            return tuple(one.end_log() for one in self._brokers.values() if one.runs)
        except OSError as error:
            raise ClusterError(
                f"{self._folder}: the logs cannot be set apart ({error.strerror}); free space there"
            ) from error

    def _stop_brokers(self, running: list[LocalBroker]) -> None:
        """Stop brokers with SIGTERM first; the clean-up ends those that do not stop."""
        # All at the same time: a late one would find no controller quorum.
        with ThreadPoolExecutor(len(running) or 1) as pool:
            pool.map(partial(_try, verb="stop"), running)
        deadline = time.monotonic() + STOP_S
        while True:
            alive = [broker for broker in running if broker.runs]
            if all(broker.has_closed_groups() for broker in alive):
                break
            if 2 * len(alive) <= len(self._brokers):
                deadline = min(deadline, time.monotonic() + NO_QUORUM_STOP_S)
            if time.monotonic() > deadline:
                self._progress("some brokers did not stop in time; killing them")
                break
            time.sleep(POLL_S)
        for broker in running:
            if not broker.ended_within(CLOSED_STOP_S):
                _try(broker, "kill")
                broker.ended_within(STOP_S)

    def act(self, verb: Verb, broker_id: int) -> None:
        """Change a broker; it is ready, frozen or gone when this returns.

        SIGKILL hits one that is paused, too; before SIGTERM it is resumed. Raises ClusterError if
        the broker is not in the state for it, if it ends or is not ready in 120 s (it runs on
        then), or if it still runs 20 s after SIGTERM, as it may without a controller quorum.
        """
        broker = self._named(broker_id)
        if verb == "start":
            self._launch([broker])
            return
        broker.send(verb)
        if verb in ("kill", "stop") and not broker.ended_within(STOP_S) and verb == "stop":
            raise ClusterError(
                f"broker {broker_id} still runs {STOP_S:.0f} s after SIGTERM;"
                f" kill it instead, or see {broker.info.server_log}"
            )

    def volume(self, broker_id: int) -> Volume:
        """Return the file system with a broker's data. Raises ClusterError without `volumes`."""
        if not self._has_volumes:
            raise ClusterError(f"broker {broker_id} has no file system of its own for its data")
        return Volume(self._named(broker_id).folder)

    def _named(self, broker_id: int) -> LocalBroker:
        try:
            return self._brokers[broker_id]
        except KeyError:
            known = ", ".join(str(node) for node in self._brokers)
            raise ClusterError(f"there is no broker {broker_id}; brokers are {known}") from None

    def _write_files(self) -> None:
        for broker in self._brokers.values():
            try:
                broker.folder.mkdir(parents=True)
            except FileExistsError:
                raise ClusterError(
                    f"{broker.folder} is there already; give every cluster a folder of its own"
                ) from None
            if self._has_volumes:
                Volume(broker.folder).make()
            shutil.copy(self._release.logging, broker.folder)
            (broker.folder / "server.properties").write_text(self._properties(broker.info))

    def _launch(self, brokers: Iterable[LocalBroker]) -> None:
        """Launch brokers, and wait until all are ready."""
        waiting = list(brokers)
        for broker in waiting:
            broker.launch()
        started = reported = time.monotonic()
        while waiting := [broker for broker in waiting if not broker.is_ready()]:
            now = time.monotonic()
            names = ", ".join(str(broker.info.id) for broker in waiting)
            if now - started > READY_S:
                raise ClusterError(
                    f"broker {names} not ready after {READY_S:.0f} s:"
                    f" {waiting[0].error_line()}; see {waiting[0].folder}"
                )
            if now - reported > PROGRESS_EVERY_S:
                self._progress(f"waiting for broker {names} ({now - started:.0f} s)")
                reported = now
            time.sleep(POLL_S)
        self._progress(f"ready after {time.monotonic() - started:.1f} s")


def new_cluster_id() -> str:
    """Return a cluster id: 16 random bytes in base64, as Kafka writes them."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _try(broker: LocalBroker, verb: Verb) -> None:
    """Do it, if the broker still runs."""
    with suppress(ClusterError):
        broker.send(verb)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _end_line(log: Path) -> None:
    """End a line that was cut off, so that what follows begins a new one."""
    if _size(log) > 0:
        with log.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.write(b"\n")
