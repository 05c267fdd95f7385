"""Faults of a broker's process: kill, stop, restart, pause, and a rolling restart of all."""

import random
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from scenarios import timing
from scenarios.durations import PositiveMs
from scenarios.faults.base import Fault, Finding, grouped
from scenarios.faults.targeted import BrokerAway, BrokerFault
from scenarios.fields import PositiveCount
from scenarios.problems import Path, Problem, ScenarioError
from scenarios.setup import Setup
from scenarios.targets import Brokers

if TYPE_CHECKING:
    from chaos.broker_probe import Question
    from scenarios.external import Verb


class BrokerDown(BrokerFault):
    """A fault in which a broker ends, and starts with its old data."""

    undo_name = "start-broker"
    undo_words = "start again after {}"

    _is_down: bool = False

    def _undo(self) -> Mapping[str, Any]:
        return self._context.cluster.undo("start", self._broker)

    def inject(self) -> None:
        """Take the broker down; its process is gone when this returns."""
        self._probe.note_logs()
        verb: Verb = "kill" if self.process == "killed" else "stop"
        self._context.cluster.act(verb, self._broker)
        self._is_down = True
        self._hit.details["log_lines"] = self._probe.log_lines()

    def verify(self) -> Finding:
        """Return whether its port is closed, and whether it ended as intended.

        The coordinator of a broker that stops logs its shutdown in group.log; that of a killed one
        does not.
        """
        shut_down = self._probe.has_stopped()
        takes, door = self._probe.door()
        if not self._context.cluster.logs_shutdowns:
            return Finding(not takes, door)
        last = f"{'a' if shut_down else 'no'} goodbye of its coordinator in its group.log"
        as_intended = shut_down == (self.process == "stopped")
        return Finding(not takes and as_intended, f"{door}, {last}")

    def heal(self) -> str:
        """Start the broker; it takes requests when this returns."""
        # It may be shutting down still, and would block the new process; a user's may be healthy.
        is_ours = self._hit.undo is not None and "hook" not in self._hit.undo
        if is_ours and not self._is_down:
            self._context.end_broker(self._broker)
        self._context.cluster.act("start", self._broker)
        return "started, and ready for requests"


class BrokerKill(BrokerDown, BrokerAway):
    """Ends the brokers with SIGKILL, and starts them again."""

    noun = "broker kill"
    process = "killed"

    fault: Literal["broker.kill"]


class BrokerStop(BrokerDown, BrokerAway):
    """Shuts the brokers down cleanly, and starts them again."""

    noun = "broker stop"
    process = "stopped"

    fault: Literal["broker.stop"]


class BrokerRestart(BrokerDown):
    """Shuts the brokers down cleanly, and starts them again at once."""

    noun = "broker restart"
    process = "stopped"
    undo_words = "start again at once"

    fault: Literal["broker.restart"]


class RollingRestart(Fault):
    """Restarts every broker, one after the other, as the deployment of a new release does.

    The next one follows when the one before is in sync again, however long that takes.
    """

    hits = "broker"
    noun = "rolling restart"
    is_series = True

    fault: Literal["broker.rolling-restart"]
    every_ms: PositiveMs
    """From the start of one broker's restart to the start of the next, at least."""
    repeat: PositiveCount | None = None
    """How many rounds through all brokers there are; one by default."""
    down_for_ms: PositiveMs | None = None
    """How long each broker stays away; by default it starts again at once."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that there are other brokers."""
        if experiment.cluster.brokers == 1:
            yield Problem(
                (*path, "fault"), "there is one broker; write broker.restart, or more brokers"
            )

    def size(self, experiment: Setup) -> int:
        """Return how many steps it makes."""
        return (self.repeat or 1) * experiment.cluster.brokers

    def steps(self, experiment: Setup, chance: random.Random) -> Iterator[Fault]:
        """Yield the restarts, round after round, each in an order of its own.

        Raises ScenarioError if the ids of the brokers are not known.
        """
        if experiment.cluster.ids is None:
            raise ScenarioError(
                f"{self.fault} restarts every broker, and the ids of an external cluster are known"
                " only when it is used; for a plan beforehand write cluster.broker_ids"
            )
        numbers = count()
        for _ in range(self.repeat or 1):
            brokers = list(experiment.cluster.ids)
            chance.shuffle(brokers)
            yield from (self._restart(next(numbers), broker) for broker in brokers)

    def _restart(self, number: int, broker: int) -> BrokerRestart | BrokerStop:
        at_ms = self.at_ms + number * self.every_ms
        target = Brokers(brokers=(broker,))
        if self.down_for_ms is None:
            return BrokerRestart.model_construct(fault="broker.restart", at_ms=at_ms, target=target)
        return BrokerStop.model_construct(
            fault="broker.stop", at_ms=at_ms, target=target, down_for_ms=self.down_for_ms
        )


class BrokerPause(BrokerAway):
    """Freezes the brokers: their sockets stay open, nothing answers."""

    noun = "broker pause"
    process = "paused"
    undo_name = "resume-broker"
    undo_words = "resume after {}"

    fault: Literal["broker.pause"]

    _question: "Question | None" = None

    def _undo(self) -> Mapping[str, Any]:
        return self._context.cluster.undo("resume", self._broker)

    def inject(self) -> None:
        """Freeze the broker and send it a request: the kernel accepts the connection."""
        self._context.cluster.act("pause", self._broker)
        self._context.stop.wait(timing.FROZEN_S)
        self._question = self._probe.ask()

    def verify(self) -> Finding:
        """Return whether the request is still unanswered, and the connection open."""
        assert self._question is not None, "sent when it was paused"
        what = f"ApiVersions sent to {self._probe.address}"
        match self._question.reply():
            case None:
                waited = grouped(self._question.age_ms())
                return Finding(True, f"{what} has had no answer for {waited} ms")
            case b"":
                return Finding(False, f"{what} found the connection closed")
            case _:
                return Finding(False, f"{what} was answered")

    def heal(self) -> str:
        """Let the broker go on."""
        try:
            self._context.cluster.act("resume", self._broker)
        finally:
            if self._question:
                self._question.close()
        return "resumed"
