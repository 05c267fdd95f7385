"""A served cluster: brokers in one process, and a controller that sees which of them are there."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_protocol.coordinator_lines import JAVA
from kafka_protocol.offsets_topic import OFFSETS_TOPIC, partition_of
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.step import Step, step
from reference_coordinator.driving.wording import Wording
from reference_coordinator.server.broker import Broker
from reference_coordinator.server.timing import SESSION_MS
from reference_coordinator.server.topics import Partition, Topic, new_id

if TYPE_CHECKING:
    from reference_coordinator.server.group import ServedGroup

Json = Mapping[str, Any]
OFFSETS_PARTITIONS = "offsets.topic.num.partitions"
SESSION = "broker.session.timeout.ms"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What is served: `ports` of the brokers 1, 2, … at `host`, and the rules of their coordinator.

    `config` are broker properties, by Kafka's names: those of the coordinator count, the number of
    partitions of the offsets topic, and how soon a broker is missed. `folder` gets a folder with
    the logs of each broker, None for no logs.
    """

    ports: tuple[int, ...]
    profile: Profile
    config: Mapping[str, str | int | bool] = field(default_factory=dict)
    folder: Path | None = None
    host: str = "127.0.0.1"


class ServedCluster:
    """The brokers and what all of them know. All its methods run in the event loop.

    `coordinated` are the groups as the last of their coordinators has them; `offsets` are those
    committed, by group, topic and partition.
    """

    def __init__(self, settings: ServerSettings, coordinator_step: Step = step) -> None:
        self.settings = settings
        self.host, self.folder = settings.host, settings.folder
        self.profile = settings.profile.with_settings(
            Settings.from_properties(dict(settings.config))
        )
        self.coordinator_step = coordinator_step
        self.wording = Wording(JAVA)
        self.id = new_id()
        self.brokers = {
            number: Broker(self, number, port) for number, port in enumerate(settings.ports, 1)
        }
        self.topics: dict[str, Topic] = {}
        self.offsets_partitions = int(settings.config.get(OFFSETS_PARTITIONS, 50))
        self.coordinated: dict[str, ServedGroup] = {}
        self.offsets: dict[str, dict[tuple[str, int], Json]] = {}

    # Brokers.

    async def start(self) -> None:
        """Start all brokers. Raises OSError if one cannot listen."""
        for number in self.brokers:
            await self.act("start", number)

    async def act(self, verb: str, number: int) -> None:
        """Start, stop, kill, pause or resume a broker. Raises KeyError, OSError."""
        broker = self.brokers[number]
        if verb == "start":  # as a new one it leads nothing of what it led
            self._lose(broker)
            await broker.start()
            self._join(broker)
            broker.opened()
        elif verb == "resume":
            for partition in [n for n in broker.partitions if self._leads_anew(broker, n)]:
                broker.unload(partition)
            self._join(broker)
            broker.go_on()
        elif verb == "stop":
            broker.agenda.frozen = False
            self._lose(broker)
            broker.end(killed=False)
        else:
            if verb == "kill":
                broker.end(killed=True)
            else:
                broker.freeze()
            session_s = int(self.settings.config.get(SESSION, SESSION_MS)) / 1000
            asyncio.get_running_loop().call_later(session_s, self._miss, broker, broker.starts)

    def end(self) -> None:
        """Shut down all brokers that run."""
        for broker in self.brokers.values():
            if broker.runs:
                broker.end(killed=False)

    def _miss(self, broker: Broker, starts: int) -> None:
        """Give up a broker that has been silent, unless it is back."""
        silent = not broker.runs or broker.agenda.frozen
        if silent and broker.starts == starts:
            self._lose(broker)

    def _lose(self, broker: Broker) -> None:
        """Do without a broker: others lead, if there are any in sync."""
        broker.registered = False
        for partition in self._partitions():
            others = tuple(one for one in partition.isr if one != broker.id)
            partition.isr = others or partition.isr
        self.elect()

    def _join(self, broker: Broker) -> None:
        """Count on a broker again; it has caught up, and leads what nobody leads."""
        broker.registered = True
        for partition in self._partitions():
            if broker.id in partition.replicas and broker.id not in partition.isr:
                partition.isr = (*partition.isr, broker.id)
        self.elect()

    def _leads_anew(self, broker: Broker, number: int) -> bool:
        """Tell whether a broker that was frozen has lost a partition that it loaded."""
        partition = self.topics[OFFSETS_TOPIC].partitions[number]
        return (partition.leader, partition.epoch) != (broker.id, broker.partitions[number])

    @property
    def registered(self) -> list[Broker]:
        """The brokers that the controller counts on, by id."""
        return [broker for broker in self.brokers.values() if broker.registered]

    @property
    def controller(self) -> int:
        """The id of the active controller: the first broker that runs."""
        return next((broker.id for broker in self.registered if broker.runs), -1)

    # Topics.

    def _partitions(self) -> Iterator[Partition]:
        for topic in self.topics.values():
            yield from topic.partitions

    def topic(self, name: str | None, topic_id: str | None = None) -> Topic | None:
        """Return a topic by its name, or else by its id as Kafka prints it."""
        if name is not None:
            return self.topics.get(name)
        return next((one for one in self.topics.values() if one.printed_id == topic_id), None)

    def partition(self, name: str, number: int) -> Partition | None:
        """Return a partition, None if there is none."""
        topic = self.topics.get(name)
        there = topic is not None and 0 <= number < len(topic.partitions)
        return topic.partitions[number] if topic is not None and there else None

    def create(self, name: str, partitions: int, copies: int) -> None:
        """Create a topic."""
        self.topics[name] = Topic(name)
        self.grow(self.topics[name], partitions, copies)

    def grow(self, topic: Topic, partitions: int, copies: int = 0) -> None:
        """Give a topic so many partitions, in turn on the brokers that are there."""
        ids = [broker.id for broker in self.registered]
        copies = copies or len(topic.partitions[0].replicas)
        for number in range(len(topic.partitions), partitions):
            replicas = tuple(ids[(number + k) % len(ids)] for k in range(min(copies, len(ids))))
            topic.partitions.append(Partition(replicas, replicas))
        self.elect()

    def elect(self, preferred: Collection[tuple[str, int]] = ()) -> None:
        """Elect a leader where none is there, and the preferred one of the partitions named."""
        alive = [broker.id for broker in self.registered]
        for name, topic in self.topics.items():
            for number, partition in enumerate(topic.partitions):
                if partition.leader in alive and (name, number) not in preferred:
                    continue
                before = self.brokers.get(partition.leader or 0)
                if partition.elect(alive) and name == OFFSETS_TOPIC:
                    self._move(number, before, self.brokers.get(partition.leader or 0))

    def _move(self, number: int, before: Broker | None, after: Broker | None) -> None:
        if before is not None and number in before.partitions and not before.agenda.frozen:
            before.unload(number)
        if after is not None:
            after.load(number, self.topics[OFFSETS_TOPIC].partitions[number].epoch)

    # Groups.

    def coordinator(self, group: str) -> Broker | None:
        """Return the broker that leads a group's partition of the offsets topic, if one does.

        The topic is created when it is first asked for, as by Kafka's `AutoTopicCreationManager`.
        """
        if OFFSETS_TOPIC not in self.topics and self.registered:
            self.create(OFFSETS_TOPIC, self.offsets_partitions, min(3, len(self.brokers)))
        partition = self.partition(OFFSETS_TOPIC, partition_of(group, self.offsets_partitions))
        return self.brokers.get(partition.leader or 0) if partition is not None else None

    def name_of(self, topic: Json) -> str:
        """Return the name of a topic that a request names, or tells the id of."""
        known = self.topic(topic.get("name"), topic.get("topicId"))
        return known.name if known is not None else topic.get("name") or ""

    def commit(self, request: Json) -> None:
        """Store the offsets of an OffsetCommit."""
        stored = self.offsets.setdefault(request["groupId"], {})
        for topic in request["topics"]:
            name = self.name_of(topic)
            for part in topic["partitions"]:
                stored[name, part["partitionIndex"]] = {
                    "committedOffset": part["committedOffset"],
                    "committedLeaderEpoch": part.get("committedLeaderEpoch", -1),
                    "metadata": part["committedMetadata"],
                }
