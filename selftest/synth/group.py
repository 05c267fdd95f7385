"""One group's simulation: its clients, its coordinator, and every line about it.

Clients send, the oracle's `step` decides as their coordinator, and both are printed.
Times are ms since the first broker started.
"""

import base64
import random
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING

from kafka_protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from kafka_protocol.offsets_topic import partition_of
from reference_coordinator.classic.effects import Effect, Response
from reference_coordinator.classic.events import Event, Loaded, LoadStarted
from reference_coordinator.classic.state import Group, Service
from reference_coordinator.driving.client import IN, Client
from reference_coordinator.driving.logged_driver import LoggedDriver
from reference_coordinator.driving.members import GroupOfMembers
from reference_coordinator.driving.simulation import Exchange, Process
from reference_coordinator.protocol import Observed
from selftest.synth.cluster import PARTITIONS, Line, coordinator_of, loads_ms
from selftest.synth.printing import Served, Software, answered
from selftest.timing import FORMATION_MS, LINE_US, READY_MS, RETRY_MS

if TYPE_CHECKING:
    from selftest.synth.spec import Spec

TOPIC = "orders"
TOPIC_PARTITIONS = 8
SUBSCRIPTION = base64.b64encode(Subscription((TOPIC,), b"", rack="").encode()).decode()
PROCESSORS = 4
"""The threads of the coordinator."""


@cache
def assignment(first: int, end: int) -> str:
    """Return an assignment of the topic's partitions from `first` to before `end`, as base64."""
    parts = tuple(TopicPartition(TOPIC, number) for number in range(first, end))
    return base64.b64encode(Assignment(parts, b"").encode(0)).decode()


def shares(members: Iterable[str]) -> list[dict[str, str]]:
    """Return the assignment of each member, as the range assignor gives them."""
    in_order = sorted(members)
    every, more = divmod(TOPIC_PARTITIONS, len(in_order) or 1)
    given, first = [], 0
    for place, member in enumerate(in_order):
        end = first + every + (place < more)
        given.append({"memberId": member, "assignment": assignment(first, end)})
        first = end
    return given


@dataclass(eq=False)
class LoggedProcess(Process):
    """One process of a member; `due_ms` by API."""

    connection: str = ""
    network_thread: int = 0
    committed: int = 0
    due_ms: dict[str, float] | None = None

    @property
    def owns(self) -> int | None:
        """A partition of the topic that is its own, if it has one: that of its number."""
        number = int(self.client.name.rpartition("-")[2])
        return number if number < TOPIC_PARTITIONS else None


Fault = Callable[["GroupSimulation"], None]
"""Befalls a group."""


class GroupSimulation(LoggedDriver, GroupOfMembers[LoggedProcess]):
    """Simulates the group `name` with so many members."""

    def __init__(
        self, name: str, spec: "Spec", size: int, software: Software, dice: random.Random,
        connections: int, *, static: bool,
    ) -> None:  # fmt: skip
        super().__init__(Group(name, service=Service.ABSENT), spec.rules)
        self.spec, self.size, self.static = spec, size, static
        self.software, self.dice = software, dice
        self.connections = connections
        """How many connections the brokers had before."""
        self.lines: list[Line] = []
        self.wording = spec.wording
        self.partition = partition_of(name, PARTITIONS)
        self.broker = coordinator_of(self.partition)

    def run(self, faults: Iterable[tuple[float, Fault]] = ()) -> list[Line]:
        """Return all lines about the group, in order of time; `faults` befall it at their times."""
        loading_ms, loaded_ms = loads_ms(self.partition)
        self.agenda.at(loading_ms, lambda: self.take(LoadStarted(loading_ms)))
        self.agenda.at(loaded_ms, lambda: self.take(Loaded(loaded_ms, None)))
        for number in range(self.size):
            name = f"{self.group.group_id}-{number}"
            session_ms = self.spec.mix.session_ms
            client = Client(
                name, name if self.static else None, session_ms, 2 * session_ms, SUBSCRIPTION
            )
            process = LoggedProcess(client, self.software.versions)
            starts_ms = READY_MS + self.dice.uniform(0, FORMATION_MS)
            self.agenda.at(starts_ms, partial(self._start, process))
        for at_ms, fault in faults:
            self.agenda.at(at_ms, partial(fault, self))
        self.agenda.run(self.spec.stopped_ms)
        return sorted(self.lines, key=itemgetter(1))

    # Processes.

    def start(self, process: LoggedProcess, after_ms: float) -> None:
        """Start another process of a member after a time."""
        at_ms = self.agenda.now_ms + after_ms
        if at_ms < self.spec.settled_ms:
            client = process.client.restarted()
            again = LoggedProcess(client, process.versions, committed=process.committed)
            self.agenda.at(at_ms, partial(self._start, again))

    def _start(self, process: LoggedProcess) -> None:
        self.processes.append(process)
        self.connections += 1
        count, listens = self.connections, 20_000 + 7 * int(self.broker)
        port, process.network_thread = self.dice.randrange(32_768, 61_000), count % 2
        address = f"127.0.0.1:{listens}-127.0.0.1:{port}"
        process.connection = f"{address}-{process.network_thread}-{count}"
        self.plan(process, "JOIN_GROUP", 0.0)

    def stop(self, process: LoggedProcess) -> None:
        """End a member's process, which leaves the group if it is dynamic."""
        client = process.client
        if client.instance is None and client.phase is IN and not client.request:
            self.ask(process, "LEAVE_GROUP")
        self.kill(process)

    # Requests.

    def ask(self, process: LoggedProcess, api: str) -> None:
        """Let a process send a request over its connection."""
        more: dict[str, object] = {}
        if api == "OFFSET_COMMIT":
            process.committed += 1 + int(self.dice.random() * 90)
            offset = {"partitionIndex": process.owns, "committedOffset": process.committed,
                      "committedLeaderEpoch": 0, "committedMetadata": ""}  # fmt: skip
            more["topics"] = [{"name": TOPIC, "partitions": [offset]}]
        elif api == "SYNC_GROUP":
            more["assignments"] = shares(process.client.leads)
        elif api == "LEAVE_GROUP":
            who = {"memberId": process.client.member_id, "groupInstanceId": None}
            more["members"] = [{**who, "reason": self.software.leave_reason}]
        elif api == "JOIN_GROUP":
            more["reason"] = None
        exchange = self.send(process, api, **more)
        took = self.dice.choice(self.spec.delays)
        read_ms = self.agenda.now_ms + took.network / 1_000
        handed_ms = read_ms + (took.queue + took.local) / 1_000
        exchange.note = Served(
            self.broker, read_ms, handed_ms, took, process.connection, process.network_thread,
            self.software,
        )  # fmt: skip
        # the event processor may be done with it before its handler is
        after_us = -took.processor if took.processor < took.local else took.processor
        self.agenda.at(handed_ms + after_us / 1_000, partial(self.receive, exchange))

    def new_id(self, _: Exchange) -> str:
        """Draw a UUID."""
        return str(uuid.UUID(int=self.dice.getrandbits(128), version=4))

    def answered(self, exchange: Exchange, response: Response) -> None:
        """Print a request's line, unless the broker stops before, and let its client go on."""
        served: Served = exchange.note
        at_ms = self.now_ms
        if exchange.api == "OFFSET_COMMIT" and not response.error:
            at_ms += served.took.write / 1_000
        more_us = int(self.dice.random() * 3)
        logged_ms, text = answered(exchange, served, response, at_ms, more_us)
        if logged_ms >= self.spec.end_ms:
            return
        self.lines.append((self.broker, logged_ms, text))
        process = exchange.process
        if isinstance(process, LoggedProcess) and process in self.processes:
            self.agenda.at(logged_ms, partial(self.hear, process, exchange, response))

    def pause_ms(self, *, failed: bool) -> float:
        """Wait longer after an error of the coordinator."""
        return (RETRY_MS if failed else 0.2) * (0.5 + self.dice.random())

    def settled(self, process: LoggedProcess, api: str) -> None:
        """Plan the next heartbeat or commit of a process that has its assignment."""
        if api == "SYNC_GROUP":
            process.due_ms = None
        now_ms, dice = self.agenda.now_ms, self.dice
        every_ms = {"HEARTBEAT": self.spec.mix.heartbeat_ms}
        if process.owns is not None:
            every_ms["OFFSET_COMMIT"] = self.spec.mix.commit_ms
        if process.due_ms is None:
            process.due_ms = {
                name: now_ms + ms * dice.uniform(0.05, 1.0) for name, ms in every_ms.items()
            }
        elif api in process.due_ms:
            process.due_ms[api] += every_ms[api] * (0.985 + 0.03 * dice.random())
        following = min(process.due_ms, key=process.due_ms.__getitem__)
        self.plan(process, following, max(0.3, process.due_ms[following] - now_ms))

    # The coordinator.

    def take(self, event: Event) -> tuple[Effect, ...]:
        """Take an event when the coordinator is done with the last one, by one of its threads.

        It takes those of a partition one after the other: no line about one event stands between
        lines about another.
        """
        if event.at_ms < self.now_ms:
            event = replace(event, at_ms=self.now_ms)
        self.thread = int(self.dice.random() * PROCESSORS)
        return super().take(event)

    def write_ms(self) -> float:
        """Let a write take as long as its replication."""
        return self.dice.choice(self.spec.delays).write / 1_000

    def expires_ms(self, deadline_ms: float) -> float:
        """Let a timer expire a little late."""
        return deadline_ms + self.dice.uniform(0.2, 2.2)

    def asked(self, request: str) -> Observed:
        """Return a request that is not answered yet."""
        return self.open[request]

    def write_line(self, text: str) -> None:
        """Take a line of the coordinator, which takes some µs."""
        self.lines.append((self.broker, self.now_ms, text))
        self.now_ms += LINE_US * (0.4 + self.dice.random()) / 1_000
