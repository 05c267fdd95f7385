"""A group of a served broker: a driver whose timers are the event loop's."""

import time
from asyncio import Future
from typing import TYPE_CHECKING, Any

from reference_coordinator.classic.effects import Answer, Effect
from reference_coordinator.classic.events import Event
from reference_coordinator.classic.state import Group
from reference_coordinator.driving.logged_driver import LoggedDriver

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request


class ServedGroup(LoggedDriver):
    """One group on one broker."""

    def __init__(self, group: Group, partition: int, broker: "Broker") -> None:
        cluster = broker.cluster
        super().__init__(group, cluster.profile, cluster.coordinator_step, broker.agenda)
        self.partition, self.thread = partition, partition % 4
        self.broker, self.wording = str(broker.id), cluster.wording
        self._print = broker.print
        self._open: dict[str, tuple[Request, Future[Any]]] = {}

    async def receive(self, request: "Request", event: Event) -> Any:
        """Let the coordinator act on a request; return its response, once there is one."""
        answered: Future[Any] = Future()
        self._open[request.id] = request, answered
        self.take(event)
        request.handed_ns = time.monotonic_ns()
        return await answered

    def asked(self, request: str) -> "Request":
        """Return a request that is not answered yet."""
        return self._open[request][0]

    def write_line(self, text: str) -> None:
        """Write a line into the broker's log."""
        self._print(text)

    def absorb(self, effect: Effect) -> None:
        """Answer a request."""
        super().absorb(effect)
        if isinstance(effect, Answer):
            self._open.pop(effect.request)[1].set_result(effect.response)
