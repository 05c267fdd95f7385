"""`topic.delete`: a topic that groups subscribe to is deleted."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.faults.declaration import About, FaultPart, Planned
from scenarios.faults.schedule import earlier, once
from scenarios.problems import Path, Problem, unknown

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class TopicDelete(FaultPart):
    """Deletes a topic with all its records; producers and members of the run keep using it."""

    about: ClassVar[About] = About(
        hits="topic",
        noun="deletion",
        meaning="a topic was deleted",
        one_shot=True,
        targets="A topic of the workload.",
        witness="The metadata of every broker that answers lacks the topic, within 15 s.",
        expects=(
            "The coordinator drops the offsets that groups committed for it; a commit is answered "
            "UNKNOWN_TOPIC_OR_PARTITION. The leader of each subscribed group sees the change with "
            "its next metadata, and rejoins, which costs a rebalance; then nobody owns a partition "
            "of it."
        ),
        undo="Nothing: its records are gone.",
    )

    fault: Literal["topic.delete"]
    topic: str
    """A topic of the workload."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that the topic exists, and is deleted once."""
        there = [topic.name for topic in experiment.workload.topics]
        yield from unknown("topic", self.topic, there, (*path, "topic"))
        yield from once(self, path)
        before = earlier(self, experiment)
        if any(isinstance(other, TopicDelete) and other.topic == self.topic for other in before):
            yield Problem((*path, "topic"), f"topic '{self.topic}' is deleted by then; remove this")

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return Planned(hits=self.topic, undo="none", args={"topic": self.topic})
