"""A group of a served broker: a driver whose timers are the event loop's."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from reference_coordinator.classic.effects import Answer, Effect, Response
from reference_coordinator.classic.events import Event, Timer
from reference_coordinator.classic.state import Group
from reference_coordinator.driving.logged_driver import LoggedDriver
from reference_coordinator.protocol import Observed

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker

Reply = Callable[[Response], None]


class ServedGroup(LoggedDriver):
    """One group on one broker; `open` are its requests that are not answered yet."""

    def __init__(self, group: Group, partition: int, served_by: "Broker") -> None:
        cluster = served_by.cluster
        super().__init__(group, cluster.profile, cluster.coordinator_step, served_by.agenda)
        self.served_by, self.partition = served_by, partition
        self.broker, self.wording = str(served_by.id), cluster.wording
        self.thread = partition % 4
        self.open: dict[str, tuple[Observed, Reply]] = {}

    def receive(self, request: Observed, event: Event, reply: Reply) -> None:
        """Act on a request; `reply` is called with the response, now or later."""
        self.open[request.id] = request, reply
        self.take(event)

    def asked(self, request: str) -> Observed:
        """Return a request that is not answered yet."""
        return self.open[request][0]

    def write_line(self, text: str) -> None:
        """Write a line into the broker's log."""
        self.served_by.print(text)

    def fire(self, timer: Timer) -> None:
        """Let a timer expire now: the loop may be late."""
        self.now_ms = self.served_by.agenda.now_ms
        super().fire(timer)

    def absorb(self, effect: Effect) -> None:
        """Answer a request."""
        super().absorb(effect)
        if isinstance(effect, Answer):
            _, reply = self.open.pop(effect.request)
            reply(effect.response)
