"""`topic.add-partitions`: a topic gets more partitions."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.faults.declaration import About, FaultPart, Planned
from scenarios.faults.schedule import earlier, once
from scenarios.fields import Partitions
from scenarios.problems import Path, Problem, unknown

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class AddPartitions(FaultPart):
    """Gives a topic more partitions; the leader of each group has to see and assign them."""

    about: ClassVar[About] = About(
        hits="topic",
        noun="growth",
        meaning="a topic was given more partitions",
        one_shot=True,
        targets="A topic of the workload.",
        witness="The metadata of every broker that answers shows the new number of partitions, "
        "each with a leader, within 15 s.",
        expects=(
            "The leader of each subscribed group sees the partitions after `metadata_max_age` at "
            "the latest and rejoins, which costs a rebalance. A leader that never does is "
            "KAFKA-13435 (KIP-814); `expect: unowned` counts partitions that have no owner."
        ),
        undo="Nothing: Kafka cannot remove partitions from a topic.",
    )

    fault: Literal["topic.add-partitions"]
    topic: str
    """A topic of the workload."""
    to: Partitions
    """How many partitions it has afterwards."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that the topic exists and grows: Kafka cannot remove partitions."""
        there = {topic.name: topic.partitions for topic in experiment.workload.topics}
        yield from unknown("topic", self.topic, there, (*path, "topic"))
        before = [
            other.to
            for other in earlier(self, experiment)
            if isinstance(other, AddPartitions) and other.topic == self.topic
        ]
        yield from once(self, path)
        most = max([there.get(self.topic, 0), *before])
        if self.to <= most:
            yield Problem(
                (*path, "to"),
                f"topic '{self.topic}' has {most} partitions by then; write {most + 1} or more",
            )

    def planned(self) -> Planned:
        """Return its row of the plan."""
        args = {"topic": self.topic, "to": self.to}
        return Planned(hits=f"{self.topic}, to {self.to}", undo="none", args=args)
