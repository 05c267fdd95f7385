"""A served cluster: brokers in one process, and a controller that sees which of them are there."""

import asyncio
import base64
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_protocol.coordinator_lines import JAVA
from kafka_protocol.log_line import is_numbered
from kafka_protocol.offsets_topic import OFFSETS_TOPIC, partition_of
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import KIP_345, PROFILE_NAMES, origin_of, profile_named
from reference_coordinator.classic.step import Step, step
from reference_coordinator.driving.wording import Wording
from reference_coordinator.server.apis import versions_by
from reference_coordinator.server.broker import Broker
from reference_coordinator.server.timing import SESSION_MS
from reference_coordinator.server.topics import Partition

if TYPE_CHECKING:
    from reference_coordinator.server.group import ServedGroup

Json = Mapping[str, Any]
OFFSETS_PARTITIONS = "offsets.topic.num.partitions"
SESSION = "broker.session.timeout.ms"


def served(name: str) -> Profile:
    """Return the profile of a name. Raises ValueError, in one line, if it is not served.

    Those are whose coordinator words its lines as from 4.0 on.
    """
    profile = profile_named(name)
    base = profile_named(name.removeprefix(f"{KIP_345.name}-"))
    release, coordinator = (base and origin_of(base)) or ("4.0.0", "java")
    if profile is None or coordinator != "java" or not is_numbered(release):
        known = [one for one in PROFILE_NAMES if one[:2] not in ("2.", "3.") and "scala" not in one]
        raise ValueError(f"no profile {name!r} is served; choose one of {', '.join(known)}")
    return profile


class ServedCluster:
    """The brokers and what all of them know. All its methods run in the event loop.

    It serves at the `ports` of the brokers 1, 2, …, by the rules of a profile. `config` are broker
    properties: those of the coordinator count, the number of partitions of the offsets topic, and
    how soon a broker is missed. `folder` gets a folder with the log of each broker, None for none.
    `topics` are their partitions, by number; `coordinated` are the groups as the last of their
    coordinators has them; `offsets` those committed, by group, topic and partition.
    """

    def __init__(
        self, ports: Sequence[int], profile: Profile, config: Mapping[str, Any] = {},
        folder: Path | None = None, coordinator: Step = step,
    ) -> None:  # fmt: skip
        self.profile = profile.with_settings(Settings.from_properties(dict(config)))
        self.versions = versions_by(profile)
        self.folder, self.coordinator_step = folder, coordinator
        self.wording = Wording(JAVA)
        self.id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.offsets_partitions = int(config.get(OFFSETS_PARTITIONS, 50))
        self.session_s = int(config.get(SESSION, SESSION_MS)) / 1000
        self.brokers = {number: Broker(self, number, port) for number, port in enumerate(ports, 1)}
        self.topics: dict[str, list[Partition]] = {}
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
        elif verb == "resume":
            for partition in [n for n in broker.partitions if self._leads_anew(broker, n)]:
                broker.unload(partition)
            self._join(broker)
            broker.starts += 1  # what it missed before is over
            broker.go_on()
        elif verb == "stop":
            broker.agenda.frozen = False
            self._lose(broker)
            broker.end(killed=False)
        else:
            if verb == "kill":
                broker.end(killed=True)
            else:
                broker.agenda.frozen = True
            loop = asyncio.get_running_loop()
            loop.call_later(self.session_s, self._miss, broker, broker.starts)

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
        partition = self.topics[OFFSETS_TOPIC][number]
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
        for partitions in self.topics.values():
            yield from partitions

    def partition(self, topic: str, number: int) -> Partition | None:
        """Return a partition, None if there is none."""
        partitions = self.topics.get(topic, ())
        return partitions[number] if 0 <= number < len(partitions) else None

    def grow(self, topic: str, count: int, copies: int) -> None:
        """Give a topic so many partitions, each on so many brokers, in turn; make it if need be."""
        ids = [broker.id for broker in self.registered]
        partitions = self.topics.setdefault(topic, [])
        for number in range(len(partitions), count):
            replicas = tuple(ids[(number + k) % len(ids)] for k in range(min(copies, len(ids))))
            partitions.append(Partition(replicas, replicas))
        self.elect()

    def elect(self, preferred: Collection[tuple[str, int]] = ()) -> None:
        """Elect a leader where none is there, and the preferred one of the partitions named."""
        alive = [broker.id for broker in self.registered]
        for name, partitions in self.topics.items():
            for number, partition in enumerate(partitions):
                if partition.leader in alive and (name, number) not in preferred:
                    continue
                before = self.brokers.get(partition.leader or 0)
                if not partition.elect(alive) or name != OFFSETS_TOPIC:
                    continue
                if before is not None and number in before.partitions and not before.agenda.frozen:
                    before.unload(number)
                if partition.leader is not None:
                    self.brokers[partition.leader].load(number, partition.epoch)

    # Groups.

    def coordinator(self, group: str) -> Broker | None:
        """Return the broker that leads a group's partition of the offsets topic, if one does.

        The topic is created when it is first asked for, as by Kafka's `AutoTopicCreationManager`.
        """
        if OFFSETS_TOPIC not in self.topics and self.registered:
            self.grow(OFFSETS_TOPIC, self.offsets_partitions, min(3, len(self.brokers)))
        partition = self.partition(OFFSETS_TOPIC, partition_of(group, self.offsets_partitions))
        return self.brokers.get(partition.leader or 0) if partition is not None else None

    def commit(self, request: Json) -> None:
        """Store the offsets of an OffsetCommit."""
        stored = self.offsets.setdefault(request["groupId"], {})
        for topic in request["topics"]:
            for part in topic["partitions"]:
                stored[topic["name"], part["partitionIndex"]] = {
                    "committedOffset": part["committedOffset"],
                    "committedLeaderEpoch": part.get("committedLeaderEpoch", -1),
                    "metadata": part["committedMetadata"],
                }
