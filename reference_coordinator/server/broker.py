"""A served broker: its listener, its log, and the groups that it coordinates."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from kafka_protocol.log_file import NumberedLog
from kafka_protocol.offsets_topic import partition_of
from kafka_protocol.request_log import LOGGER
from reference_coordinator.classic.events import Loaded, LoadStarted, Unloaded
from reference_coordinator.classic.state import ABSENT, Group
from reference_coordinator.driving.wording import LOADED, SHUTDOWN
from reference_coordinator.server.clock import LoopAgenda
from reference_coordinator.server.connection import Connection
from reference_coordinator.server.group import ServedGroup
from reference_coordinator.server.timing import BACKLOG

HOST = "127.0.0.1"

if TYPE_CHECKING:
    from reference_coordinator.server.cluster import ServedCluster
    from reference_coordinator.server.topics import Partition


class Broker:
    """One broker; `start` makes a new process of it, as far as anyone sees.

    `partitions` are those of the offsets topic that it has loaded, with their leader epochs.
    `registered` says whether the controller counts on it.
    """

    def __init__(self, cluster: "ServedCluster", number: int, port: int) -> None:
        self.cluster, self.id = cluster, number
        self.address: dict[str, Any] = {"nodeId": number, "host": HOST, "port": port}
        self.registered = False
        self.starts = 0
        self.connections: set[Connection] = set()
        self.groups: dict[str, ServedGroup] = {}
        self.partitions: dict[int, int] = {}
        self.agenda = LoopAgenda()
        self._connected = 0
        self._log: NumberedLog | None = None
        self._listener: asyncio.Server | None = None

    @property
    def runs(self) -> bool:
        """Whether it takes connections, or is frozen."""
        return self._listener is not None

    # Its process.

    async def start(self) -> None:
        """Listen, with nothing of what it knew before."""
        loop = asyncio.get_running_loop()
        self.starts += 1
        self.agenda, self._connected = LoopAgenda(), 0
        if (folder := self.cluster.folder) is not None:
            self._log = NumberedLog(folder / str(self.id) / "group.log", loop.call_soon)
        self._say("starting", self._loader)
        self._say("started", self._loader)
        self._listener = await loop.create_server(
            lambda: Connection(self), self.address["host"], self.address["port"],
            reuse_address=True, backlog=BACKLOG,
        )  # fmt: skip

    def end(self, *, killed: bool) -> None:
        """End its process; one that is killed says nothing."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in list(self.connections):
            connection.transport.abort()
        for group in self.groups.values():
            group.die()
        self.groups.clear()
        self.partitions.clear()
        for name in () if killed else SHUTDOWN:
            self._say(name, "kafka-shutdown-hook")
        if self._log is not None:
            self._log.close()
            self._log = None

    def go_on(self) -> None:
        """Do what was due meanwhile."""
        self.agenda.go_on()
        for connection in list(self.connections):
            connection.go_on()

    def connected(self, connection: Connection) -> int:
        """Take note of a connection; return its number."""
        self.connections.add(connection)
        self._connected += 1
        return self._connected

    def led(self, topic: str, number: int) -> "tuple[Partition | None, int]":
        """Return a partition that the broker leads, or None and why it does not."""
        partition = self.cluster.partition(topic, number)
        if partition is None:
            return None, int(ErrorCode.unknown_topic_or_partition)
        if partition.leader != self.id:
            return None, int(ErrorCode.not_leader_or_follower)
        return partition, 0

    # Its coordinator.

    def coordinates(self, group: str) -> bool:
        """Tell whether it coordinates a group."""
        return partition_of(group, self.cluster.offsets_partitions) in self.partitions

    def group(self, name: str) -> ServedGroup:
        """Return a group as the broker has it: one that it does not coordinate is absent."""
        partition = partition_of(name, self.cluster.offsets_partitions)
        if partition not in self.partitions:
            return ServedGroup(Group(name, service=ABSENT), partition, self)
        if name not in self.groups:
            self.groups[name] = ServedGroup(Group(name), partition, self)
            self.cluster.coordinated[name] = self.groups[name]
        return self.groups[name]

    def load(self, partition: int, epoch: int) -> None:
        """Load a partition of the offsets topic: the groups as they are stored."""
        values: dict[str, object] = {"partition": partition, "epoch": epoch}
        self._say("loading", self._loader, values)
        before = [one for one in self.cluster.coordinated.values() if one.partition == partition]
        self.partitions[partition] = epoch
        for one in before:
            name = one.group.group_id
            group = self.groups[name] = ServedGroup(Group(name, service=ABSENT), partition, self)
            group.stored = one.stored
            self.cluster.coordinated[name] = group
            group.take(LoadStarted(self.agenda.now_ms))
            group.take(Loaded(self.agenda.now_ms, group.stored_record))
        thread = f"group-coordinator-event-processor-{partition % 4}"
        self._say("loaded", thread, values | {"rest": f"0ms where {LOADED}"})

    def unload(self, partition: int) -> None:
        """Give a partition of the offsets topic up; who waits is answered."""
        epoch = f"OptionalInt[{self.partitions.pop(partition)}]"
        values = {"partition": partition, "rest": epoch}
        self._say("unload_scheduled", self._loader, values)
        self._say("unload_started", self._loader, values)
        for name in [n for n, one in self.groups.items() if one.partition == partition]:
            group = self.groups.pop(name)
            if group.group.exists:
                group.print_line("group_unloaded", generation=group.group.generation)
            group.take(Unloaded(self.agenda.now_ms))
        self._say("unloaded", self._loader, values)

    # Its log.

    @property
    def _loader(self) -> str:
        return f"kafka-{self.id}-metadata-loader-event-handler"

    def _say(self, name: str, thread: str, values: dict[str, object] | None = None) -> None:
        self.print(self.cluster.wording.broker_line(str(self.id), name, thread, values))

    def print(self, text: str) -> None:
        """Write a line of the coordinator."""
        if self._log is not None:
            self._log.write(text, time.monotonic_ns())

    def print_request(self, thread: int, body: str, at_ns: int) -> None:
        """Write the line of a request."""
        if self._log is not None:
            name = f"data-plane-kafka-network-thread-{self.id}-PLAINTEXT-PLAINTEXT-{thread}"
            self._log.write(f"{name} DEBUG {body} ({LOGGER})", at_ns)
