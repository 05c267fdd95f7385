"""The brokers of a simulated run: who is up, and who coordinates which group.

A broker that ends, or hands over, drops what it had not written, and its timers. Its groups are
loaded by the next broker in line, or by itself where it is back before.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from chaos.errors import ChaosError
from groupquake.simulate import timing
from groupquake.simulate.chance import Chance
from groupquake.simulate.group import SimulatedGroup
from kafka_protocol.offsets_topic import partition_of
from reference_coordinator.driving.driver import Agenda
from scenarios import Experiment, ScenarioError
from scenarios.external import Verb
from scenarios.model import Cluster


class SimulatedBrokers:
    """Brokers with the groups that they coordinate; it does for faults what a cluster does."""

    def __init__(
        self, experiment: Experiment, groups: Mapping[str, SimulatedGroup], agenda: Agenda,
        chance: Chance,
    ) -> None:  # fmt: skip
        cluster = experiment.cluster
        self.ids = cluster.ids or ()
        self.groups, self.agenda, self.chance = groups, agenda, chance
        self.up = set(self.ids)
        self.session_ms = _setting(cluster, "broker.session.timeout.ms", timing.SESSION_MS)
        self.offsets = _setting(cluster, "offsets.topic.num.partitions", 6)
        self.first = {
            name: chance.below(len(self.ids))
            for name in ("offsets", *(topic.name for topic in experiment.workload.topics))
        }
        """Where in the list of brokers the leaders of a topic's partitions begin."""
        self.led = {number: self.leader("offsets", number) for number in range(self.offsets)}
        """The leader of each partition of the offsets topic."""
        self.unserved: set[int] = set()
        """The partitions of the offsets topic whose leader is gone."""

    # What a view of a cluster tells.

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader of a partition, as long as no broker was broken."""
        return self.ids[(self.first[topic] + partition) % len(self.ids)]

    def controller(self) -> int:
        """Return the active controller."""
        return self.ids[self.chance.below(len(self.ids))]

    def is_up(self, broker: int) -> bool:
        """Whether a broker takes requests."""
        return broker in self.up

    def coordinator(self, group: str) -> int:
        """Return the coordinator of a group. Raises ChaosError if it has none now."""
        partition = partition_of(group, self.offsets)
        if partition in self.unserved:
            raise ChaosError(f"group {group} has no coordinator now")
        return self.led[partition]

    # What faults do.

    def undo(self, verb: Verb, broker: int) -> Mapping[str, Any]:
        """Return nothing that a journal would need."""
        return {"do": verb, "broker": broker}

    def act(self, verb: Verb, broker: int) -> None:
        """Change a broker. One that is paused is lost to its groups like one that was killed."""
        if verb in ("start", "resume"):
            after_ms = self.chance.between(timing.STARTS_MS) if verb == "start" else 0.0
            self.agenda.after(after_ms, partial(self._is_back, broker))
            return
        self.up.discard(broker)
        lost = [number for number, leader in self.led.items() if leader == broker]
        self._give_up(lost, answers=verb == "stop")
        gone_ms = self.chance.between(timing.MOVES_MS)
        if verb != "stop":
            gone_ms = self.session_ms + self.chance.between(timing.ELECTED_MS)
        self.agenda.after(gone_ms, partial(self._elect, lost))

    def move_coordinator(self, group: str, to: int | None, **_: bool) -> int:
        """Let another broker coordinate a group, and what shares its partition; return which."""
        partition = partition_of(group, self.offsets)
        others = [one for one in self._in_line(partition) if one in self.up]
        if not others:
            raise ChaosError(f"the coordinator of {group} has nowhere to move")
        new = self.led[partition] = to or others[0]
        self._give_up([partition], answers=True)
        self.agenda.after(self.chance.between(timing.MOVES_MS), partial(self._load, partition))
        return new

    def start(self) -> None:
        """Load all groups for the first time."""
        self.unserved = set(self.led)
        for partition in self.led:
            self._load(partition)

    def _in_line(self, partition: int) -> Sequence[int]:
        """Return the brokers after the leader of a partition."""
        place = self.ids.index(self.led[partition])
        return (*self.ids[place + 1 :], *self.ids[:place])

    def _give_up(self, partitions: Sequence[int], *, answers: bool) -> None:
        self.unserved.update(partitions)
        for name, group in self.groups.items():
            if partition_of(name, self.offsets) in partitions:
                group.give_up(answers=answers)

    def _elect(self, partitions: Sequence[int]) -> None:
        for partition in self.unserved.intersection(partitions):
            if others := [one for one in self._in_line(partition) if one in self.up]:
                self.led[partition] = others[0]
                self._load(partition)

    def _is_back(self, broker: int) -> None:
        self.up.add(broker)
        for partition in [one for one in self.unserved if self.led[one] == broker]:
            self._load(partition)

    def _load(self, partition: int) -> None:
        self.unserved.discard(partition)
        for name, group in self.groups.items():
            if partition_of(name, self.offsets) == partition:
                group.load(self.led[partition])


def _setting(cluster: Cluster, name: str, default: int) -> int:
    """Return a number of a broker's configuration. Raises ScenarioError if it is none above 0."""
    given = cluster.config.get(name, default)
    try:
        value = int(str(given))
    except ValueError:
        value = 0
    if value < 1:
        raise ScenarioError(f"cluster.config: {name} is {given}; write a number from 1 on")
    return value
