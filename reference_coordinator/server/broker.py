"""A served broker: its listener, its log, and the groups that it coordinates."""

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from kafka_protocol.log_file import NumberedLog
from kafka_protocol.offsets_topic import partition_of
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
    `registered` says whether the controller counts on it, `missed` when it will no longer.
    """

    def __init__(self, cluster: "ServedCluster", number: int, port: int) -> None:
        self.cluster, self.id = cluster, number
        self.address: dict[str, Any] = {"nodeId": number, "host": HOST, "port": port}
        self.registered = False
        self.missed: asyncio.TimerHandle | None = None
        self.groups: dict[str, ServedGroup] = {}
        self.partitions: dict[int, int] = {}
        self.agenda = LoopAgenda()
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = count(1)
        self._log: NumberedLog | None = None
        self._listener: asyncio.Server | None = None

    @property
    def runs(self) -> bool:
        """Whether it takes connections, or is frozen."""
        return self._listener is not None

    # Its process.

    async def start(self) -> None:
        """Listen, with nothing of what it knew before."""
        self.agenda, self._numbers = LoopAgenda(), count(1)
        if (folder := self.cluster.folder) is not None:
            later = asyncio.get_running_loop().call_soon
            self._log = NumberedLog(folder / str(self.id) / "group.log", later)
        self._say("starting")
        self._say("started")
        self._listener = await asyncio.start_server(
            self._connected, HOST, self.address["port"], reuse_address=True, backlog=BACKLOG
        )

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(Connection(self, next(self._numbers), writer).run(reader))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def end(self, *, killed: bool) -> None:
        """End its process; one that is killed says nothing."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for task in self._tasks:
            task.cancel()
        for group in self.groups.values():
            group.die()
        self.groups.clear()
        self.partitions.clear()
        for name in () if killed else SHUTDOWN:
            self._say(name, "kafka-shutdown-hook")
        if self._log is not None:
            self._log.close()
            self._log = None

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
        if not self.coordinates(name):
            return self._new_group(name, service=ABSENT)
        if name not in self.groups:
            self.groups[name] = self.cluster.coordinated[name] = self._new_group(name)
        return self.groups[name]

    def _new_group(self, name: str, **state: Any) -> ServedGroup:
        partition = partition_of(name, self.cluster.offsets_partitions)
        return ServedGroup(Group(name, **state), partition, self)

    def load(self, partition: int, epoch: int) -> None:
        """Load a partition of the offsets topic: the groups as they are stored."""
        values: dict[str, Any] = {"partition": partition, "epoch": epoch}
        self._say("loading", **values)
        self.partitions[partition] = epoch
        for name, before in self.cluster.coordinated.items():
            if before.partition == partition:
                group = self._new_group(name, service=ABSENT)
                group.stored = before.stored
                self.groups[name] = self.cluster.coordinated[name] = group
                group.take(LoadStarted(self.agenda.now_ms))
                group.take(Loaded(self.agenda.now_ms, group.stored_record))
        thread = f"group-coordinator-event-processor-{partition % 4}"
        self._say("loaded", thread, rest=f"0ms where {LOADED}", **values)

    def unload(self, partition: int) -> None:
        """Give a partition of the offsets topic up; who waits is answered."""
        epoch = f"OptionalInt[{self.partitions.pop(partition)}]"
        self._say("unload_scheduled", partition=partition, rest=epoch)
        self._say("unload_started", partition=partition, rest=epoch)
        for name in [n for n, one in self.groups.items() if one.partition == partition]:
            group = self.groups.pop(name)
            if group.group.exists:
                group.print_line("group_unloaded", generation=group.group.generation)
            group.take(Unloaded(self.agenda.now_ms))
        self._say("unloaded", partition=partition, rest=epoch)

    # Its log.

    def _say(self, name: str, thread: str = "", **values: object) -> None:
        thread = thread or f"kafka-{self.id}-metadata-loader-event-handler"
        self.print(self.cluster.wording.broker_line(str(self.id), name, thread, values))

    def print(self, text: str, at_ns: int | None = None) -> None:
        """Write a line; by default it is one of the coordinator, of now."""
        if self._log is not None:
            self._log.write(text, time.monotonic_ns() if at_ns is None else at_ns)
