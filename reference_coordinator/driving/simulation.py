"""A group with its clients in virtual time: requests go to the coordinator, responses come back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kafka_protocol.versions import FIRST_WITH_INSTANCE_ID
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import Answer, Effect, Response
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import Step, step
from reference_coordinator.driving.bodies import response_body
from reference_coordinator.driving.client import Asked, Client
from reference_coordinator.driving.driver import Agenda, Driver
from reference_coordinator.replay.evidence import ObservedRequest

Json = Mapping[str, Any]


@dataclass(eq=False)
class Process:
    """A process of a member: its client as it is now, and how many requests it has sent."""

    client: Client
    versions: Mapping[str, int] = field(default_factory=lambda: FIRST_WITH_INSTANCE_ID)
    sent: int = 0
    plans: int = 0
    """Counts what it planned to do next: only the last counts."""


@dataclass(eq=False, kw_only=True)
class Exchange(Asked):
    """A request of a process, the `serial`-th of it."""

    process: Process
    serial: int
    note: Any = None
    """What the simulation notes with it."""

    def observed(
        self, response: Response, earliest_ms: float, at_ms: float, latest_ms: float,
        answered_ms: float,
    ) -> ObservedRequest:  # fmt: skip
        """Return it with its response as evidence."""
        return ObservedRequest(
            self.id, "1", self.api, self.api_version, self.client_id, self.client_id, earliest_ms,
            at_ms, latest_ms, answered_ms, self.request, response_body(response, self), self.serial,
        )  # fmt: skip


class Simulation(Driver):
    """One group on one coordinator, with its clients; `open` are the requests not answered yet."""

    agenda: Agenda

    def __init__(
        self, group: Group, profile: Profile, coordinator: Step = step,
        agenda: Agenda | None = None,
    ) -> None:  # fmt: skip
        super().__init__(group, profile, coordinator, agenda or Agenda())
        self.open: dict[str, Exchange] = {}
        self._numbers = count()

    def answered(self, exchange: Exchange, response: Response) -> None:
        """See a response; it is for the simulation to say when the client has it."""

    def new_id(self, exchange: Exchange) -> str:
        """Return the end of a member id that a request may be given: as long as a UUID."""
        return f"{int(exchange.id):036}"

    def send(self, process: Process, api: str, **more: Any) -> Exchange:
        """Let a process send a request; return it, for `receive`."""
        process.sent += 1
        client, version = process.client, process.versions[api]
        request = client.body(api, self.group.group_id, version, **more)
        exchange = Exchange(
            id=str(next(self._numbers)), client=client, api=api, api_version=version,
            request=request, at_ms=self.agenda.now_ms, process=process, serial=process.sent,
        )  # fmt: skip
        process.client = client.sending(api, exchange.id)
        return exchange

    def receive(self, exchange: Exchange) -> None:
        """Let the coordinator act on a request."""
        self.open[exchange.id] = exchange
        client = exchange.process.client
        new_id = f"{client.instance or client.name}-{self.new_id(exchange)}"
        self.take(CLASSIC.event_of(exchange, self.agenda.now_ms, self.picks(new_id)))

    def absorb(self, effect: Effect) -> None:
        """Hand a response on."""
        if isinstance(effect, Answer):
            self.answered(self.open.pop(effect.request), effect.response)
        else:
            super().absorb(effect)
