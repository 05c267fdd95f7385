"""Faults of a topic: it gets more partitions, or it is deleted. Nothing undoes either."""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, Self

from scenarios import timing
from scenarios.faults.base import Fault, Finding, Hit
from scenarios.fields import Partitions
from scenarios.problems import Path, Problem, unknown
from scenarios.setup import Setup

if TYPE_CHECKING:
    from chaos.fault_context import FaultContext


class TopicFault(Fault):
    """What the faults of a topic have in common."""

    hits = "topic"
    one_shot = True

    topic: str
    """A topic of the workload."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the topic exists, and that the fault fires once: it cannot be done again."""
        there = [topic.name for topic in experiment.workload.topics]
        yield from unknown("topic", self.topic, there, (*path, "topic"))
        if self.every_ms is not None and self.repeat != 1:
            yield Problem((*path, "every"), "cannot be done again; remove `every` and `repeat`")

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return the topic."""
        _ = context
        yield Hit(self.topic)

    def hits_in_words(self) -> str:
        """Return what it hits, as the plan shows it."""
        return self.topic

    def _earlier(self, experiment: Setup) -> list[Self]:
        """Return those of its kind and topic that are due before it, or stand before it."""
        before = set(map(id, takewhile(lambda other: other is not self, experiment.faults)))
        return [
            other
            for other in experiment.faults
            if isinstance(other, type(self)) and other.topic == self.topic
            if (other.at_ms, id(other) not in before) < (self.at_ms, True)
        ]

    def _await_known(self, partitions: int, what: str, missing: str) -> Finding:
        """Wait until every broker that answers knows so many partitions, each with a leader."""
        view = self._context.view

        def look() -> Finding | None:
            known = self._context.by_broker(lambda address: view.partitions(address, self.topic))
            if set(known.values()) != {partitions}:
                return None
            return Finding(True, f"{what} by {', '.join(f'broker {broker}' for broker in known)}")

        return self._await(look, timing.TOPIC_KNOWN_MS, missing)


class AddPartitions(TopicFault):
    """Gives a topic more partitions; the leader of each group has to see and assign them."""

    noun = "growth"

    fault: Literal["topic.add-partitions"]
    to: Partitions
    """How many partitions it has afterwards."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the topic exists and grows: Kafka cannot remove partitions."""
        yield from super().checks(experiment, path)
        there = [t.partitions for t in experiment.workload.topics if t.name == self.topic]
        most = max([0, *there, *(other.to for other in self._earlier(experiment))])
        if self.to <= most:
            yield Problem(
                (*path, "to"),
                f"topic '{self.topic}' has {most} partitions by then; write {most + 1} or more",
            )

    def hits_in_words(self) -> str:
        """Return what it hits, as the plan shows it."""
        return f"{self.topic}, to {self.to}"

    def inject(self) -> None:
        """Request the partitions; the controller has created them when this returns."""
        view = self._context.view
        self._context.unless_stopped(lambda: view.add_partitions(self.topic, self.to))

    def verify(self) -> Finding:
        """Wait until every broker that answers knows so many partitions, each with a leader."""
        what = f"{self.to} partitions of {self.topic} with leaders,"
        missing = f"not every broker knows {self.to} partitions of {self.topic} with a leader"
        return self._await_known(self.to, what, missing)


class TopicDelete(TopicFault):
    """Deletes a topic with all its records; producers and members of the run keep using it."""

    noun = "deletion"

    fault: Literal["topic.delete"]

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the topic exists, and is deleted once."""
        yield from super().checks(experiment, path)
        if self._earlier(experiment):
            yield Problem((*path, "topic"), f"topic '{self.topic}' is deleted by then; remove this")

    def inject(self) -> None:
        """Delete the topic; the controller has deleted it when this returns."""
        view = self._context.view
        self._context.unless_stopped(lambda: view.delete_topic(self.topic))

    def verify(self) -> Finding:
        """Wait until no broker that answers knows the topic."""
        what = f"no partition of {self.topic} is known"
        return self._await_known(0, what, f"a broker still knows topic {self.topic}")
