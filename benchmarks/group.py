"""A steady group of any size in virtual time: its coordinator's events, and their evidence.

Static members join, then each sends heartbeats at its own times. Some heartbeats are replaced by
commits or, if members restart, by static rejoins. The oracle itself computes the responses.
"""

import random

from reference_coordinator.classic.effects import Effect, Response, SyncResponse
from reference_coordinator.classic.events import Event
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group
from reference_coordinator.driving.client import Client
from reference_coordinator.driving.simulation import Exchange, Process, Simulation
from reference_coordinator.replay import Evidence, ObservedRequest

GROUP = "simulated"
HEARTBEAT_MS = 3_000.0
JITTER_MS = 50.0
FORMATION_MS = 1_000.0
"""The time in which all members join."""
STEADY = ("HEARTBEAT",) * 8 + ("OFFSET_COMMIT",)
"""The requests of a member, one for each heartbeat interval, in a cycle."""
RESTARTED = (*STEADY, *("HEARTBEAT",) * 8, "JOIN_GROUP")
"""The same for a member that restarts every 54 s; a SyncGroup follows each join."""
EARLY_MS = 5.0
"""How much earlier than logged a request may have arrived, as in evidence from a log."""
WORK_MS = 0.25
"""How long the broker handles a request before, and after, the coordinator acts on it."""


class SteadyGroup(Simulation):
    """A group of `size` members. `events` are the inputs of `step`, `evidence` the requests."""

    def __init__(self, size: int, profile: Profile, cycle: tuple[str, ...] = RESTARTED) -> None:
        super().__init__(Group(GROUP), profile)
        self.cycle, self.dice = cycle, random.Random(0)
        self.events: list[Event] = []
        self.evidence: list[ObservedRequest] = []
        for number in range(size):
            process = Process(Client(f"app-{number}", f"app-{number}", rebalance_ms=300_000))
            self._plan(self.dice.uniform(0, FORMATION_MS), process, "JOIN_GROUP")

    def run_until(self, requests: int) -> Evidence:
        """Run the group until so many requests are answered; return the evidence."""
        while len(self.evidence) < requests:
            self.agenda.run(self.agenda.now_ms + HEARTBEAT_MS)
        return Evidence(GROUP, tuple(sorted(self.evidence, key=lambda seen: seen.at_ms)))

    def take(self, event: Event) -> tuple[Effect, ...]:
        """Note an event."""
        self.events.append(event)
        return super().take(event)

    def answered(self, exchange: Exchange, response: Response) -> None:
        """Add a response to the evidence, and plan the member's next request."""
        process, at_ms = exchange.process, exchange.at_ms
        answered_ms = self.now_ms + WORK_MS
        self.evidence.append(exchange.observed(
            response, at_ms - EARLY_MS - WORK_MS, at_ms, answered_ms, answered_ms
        ))  # fmt: skip
        client = process.client = process.client.hearing(response)
        api, after_ms = client.next_api, self.dice.uniform(1, JITTER_MS)
        if isinstance(response, SyncResponse):
            after_ms = self.dice.uniform(1, HEARTBEAT_MS)
        elif api == "HEARTBEAT":
            after_ms = HEARTBEAT_MS + self.dice.uniform(-JITTER_MS, JITTER_MS)
        if api == "HEARTBEAT":
            api = self.cycle[process.sent % len(self.cycle)]
        if api == "JOIN_GROUP" and client.member_id == self.group.leader:
            api = "HEARTBEAT"  # its rejoin would start a rebalance
        elif api == "JOIN_GROUP":
            process.client = client.restarted()
        self._plan(answered_ms + after_ms, process, api)

    def _plan(self, at_ms: float, process: Process, api: str) -> None:
        self.agenda.at(at_ms, lambda: self.receive(self.send(process, api)))
