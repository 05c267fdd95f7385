"""What the faults that hit brokers have in common: keys, targets, checks, texts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from scenarios.durations import PositiveMs
from scenarios.faults.declaration import FaultPart, Planned, seconds
from scenarios.problems import Path, Problem, unknown
from scenarios.targets import Brokers, BrokerTarget, CoordinatorOf, PartitionLeader, in_words

if TYPE_CHECKING:
    from scenarios.experiment import Experiment

TARGETS = (
    "Brokers: `controller`, `{coordinator-of: GROUP}`, `{partition-leader: TOPIC/NUMBER}`, or "
    "`{brokers: [1, ...]}`. The target is resolved when the fault fires."
)
IN_SYNC = (
    "Afterwards the broker answers a request, and every broker that answers lists it in the ISR of "
    "all its partitions, within 60 s."
)
MOVES = (
    "If the broker coordinates a group, another broker takes the group over and reads members, "
    "instance ids and assignments from its log (KIP-345). Static and dynamic members stay, and "
    "there is no rebalance as long as each sends a request within its session timeout, which "
    "starts anew on the new coordinator. "
)
STARTED = (
    "Starts the broker on the same ports and data. From the journal alone nothing is left to undo: "
    "`groupquake heal` ends all brokers of the run."
)


def broker_checks(target: BrokerTarget, experiment: "Experiment", path: Path) -> Iterator[Problem]:
    """Yield a problem if the target at a path names what does not exist."""
    match target:
        case CoordinatorOf(group=name):
            place = (*path, "coordinator-of")
            yield from unknown("group", name, experiment.group_names, place)
        case PartitionLeader(partition=partition):
            topics = {topic.name: topic.partitions for topic in experiment.workload.topics}
            name, _, number = partition.rpartition("/")
            place = (*path, "partition-leader")
            yield from unknown("topic", name, topics, place)
            if name in topics and int(number) >= topics[name]:
                yield Problem(
                    place,
                    f"topic '{name}' has partitions 0 to {topics[name] - 1}; choose one of them",
                )
        case Brokers(brokers=ids):
            for j, node in enumerate(ids):
                yield from no_such_broker(node, experiment, (*path, "brokers", j))


def no_such_broker(node: int, experiment: "Experiment", path: Path) -> Iterator[Problem]:
    """Yield a problem if no broker has the id at a path; none as long as the ids are not known."""
    ids = experiment.cluster.ids
    if ids is not None and node not in ids:
        choice = ", ".join(map(str, ids))
        yield Problem(path, f"there is no broker {node}; choose from {choice}")


class BrokerFault(FaultPart):
    """What the faults that hit brokers have in common."""

    target: BrokerTarget
    """Resolved when the fault fires."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that the targets exist."""
        yield from broker_checks(self.target, experiment, (*path, "target"))

    def _planned(self, undo: str, **args: Any) -> Planned:
        return Planned(hits=in_words(self.target, None), undo=undo, args=args, target=self.target)


class BrokerAway(BrokerFault):
    """What the faults that take brokers away for a while have in common."""

    down_for_ms: PositiveMs
    """How long each broker stays away."""

    def _planned_absence(self, undo: str) -> Planned:
        return self._planned(
            f"{undo} after {seconds(self.down_for_ms)}", down_for_ms=self.down_for_ms
        )
