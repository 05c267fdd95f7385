"""A served cluster: brokers in one process, and a controller that sees which of them are there."""

import asyncio
import itertools
import uuid
from collections.abc import Collection, Mapping, Sequence
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
        self.id = uuid.uuid4().hex
        self.offsets_partitions = int(config.get(OFFSETS_PARTITIONS, 50))
        self.session_s = int(config.get(SESSION, SESSION_MS)) / 1000
        self.brokers = {number: Broker(self, number, port) for number, port in enumerate(ports, 1)}
        self.topics: dict[str, list[Partition]] = {}
        self.producer_ids = itertools.count()
        self.coordinated: dict[str, ServedGroup] = {}
        self.offsets: dict[str, dict[tuple[str, int], dict[str, Any]]] = {}

    # Brokers.

    async def start(self) -> None:
        """Start all brokers. Raises OSError if one cannot listen."""
        for number in self.brokers:
            await self.act("start", number)

    async def act(self, verb: str, number: int) -> None:
        """Start, stop, kill, pause or resume a broker. Raises KeyError, OSError."""
        broker = self.brokers[number]
        if broker.missed is not None:
            broker.missed.cancel()
        if verb in ("kill", "pause"):
            if verb == "kill":
                broker.end(killed=True)
            else:
                broker.agenda.going.clear()
            later = asyncio.get_running_loop().call_later
            broker.missed = later(self.session_s, self._count_on, broker, False)
        elif verb == "resume":
            for one, epoch in [*broker.partitions.items()]:
                if self.topics[OFFSETS_TOPIC][one].epoch != epoch:
                    broker.unload(one)
            self._count_on(broker)
            broker.agenda.go_on()
        else:  # one that starts leads nothing of what it led before
            broker.agenda.going.set()
            self._count_on(broker, False)
            if verb == "start":
                await broker.start()
                self._count_on(broker)
            else:
                await asyncio.sleep(0)  # who waited is answered
                broker.end(killed=False)

    def end(self) -> None:
        """Shut down all brokers that run."""
        for broker in self.brokers.values():
            if broker.runs:
                broker.end(killed=False)

    def _count_on(self, broker: Broker, registered: bool = True) -> None:
        """Count on a broker, or do without it: then others lead, if there are any."""
        broker.registered = registered
        self.elect()

    @property
    def registered(self) -> dict[int, Broker]:
        """The brokers that the controller counts on, by id."""
        return {number: broker for number, broker in self.brokers.items() if broker.registered}

    @property
    def controller(self) -> int:
        """The id of the active controller: the first broker that runs."""
        return next((number for number, broker in self.registered.items() if broker.runs), -1)

    # Topics.

    def partition(self, topic: str, number: int) -> Partition | None:
        """Return a partition, None if there is none."""
        partitions = self.topics.get(topic, ())
        return partitions[number] if 0 <= number < len(partitions) else None

    def grow(self, topic: str, count: int, copies: int) -> None:
        """Give a topic so many partitions, each on so many brokers, in turn; make it if need be."""
        ids = [*self.registered]
        partitions = self.topics.setdefault(topic, [])
        for number in range(len(partitions), count):
            replicas = tuple(ids[(number + k) % len(ids)] for k in range(min(copies, len(ids))))
            partitions.append(Partition(replicas))
        self.elect()

    def elect(self, preferred: Collection[tuple[str, int]] = ()) -> None:
        """Elect a leader where none is there, and the preferred one of the partitions named."""
        alive = self.registered
        for name, partitions in self.topics.items():
            for number, partition in enumerate(partitions):
                old = partition.leader
                new = next((one for one in partition.replicas if one in alive), -1)
                if old == new or (old in alive and (name, number) not in preferred):
                    continue
                partition.leader, partition.epoch = new, partition.epoch + 1
                if name == OFFSETS_TOPIC:
                    before = self.brokers.get(old)
                    if before and number in before.partitions and before.agenda.going.is_set():
                        before.unload(number)
                    if new in alive:
                        alive[new].load(number, partition.epoch)

    def coordinator(self, group: str) -> Broker | None:
        """Return the broker that leads a group's partition of the offsets topic, if one does.

        The topic is created when it is first asked for, as by Kafka's `AutoTopicCreationManager`.
        """
        if OFFSETS_TOPIC not in self.topics and self.registered:
            self.grow(OFFSETS_TOPIC, self.offsets_partitions, min(3, len(self.brokers)))
        partition = self.partition(OFFSETS_TOPIC, partition_of(group, self.offsets_partitions))
        return self.brokers.get(partition.leader) if partition is not None else None
