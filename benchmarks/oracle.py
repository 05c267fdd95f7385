"""The speed of the oracle alone, on one core, in processor time.

`replay` finds the order of evidence, runs the timers and compares every response with the observed
one. Groups of 5 and of 500 static members are simulated: all join, then each sends heartbeats at
its own times, some of them replaced by commits. The recorded run has many faults, and needs search.
"""

import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import click

from benchmarks.evidence import RECORDED
from reference_coordinator.classic.effects import Response, SyncResponse
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.classic.state import Group
from reference_coordinator.driving.client import Client
from reference_coordinator.driving.simulation import Exchange, Process, Simulation
from reference_coordinator.replay import Evidence, ObservedRequest, replay
from reports.judgement.collector import collector_paused
from reports.judgement.recording import Recording

Json = dict[str, Any]
SMALL, BIG = 5, 500
REQUESTS, ROUNDS = 50_000, 3
"""Requests in each case; medians of so many rounds."""
GROUP = "simulated"
HEARTBEAT_MS = 3_000.0
JITTER_MS = 50.0
FORMATION_MS = 1_000.0
"""The time in which all members join."""
CYCLE = ("HEARTBEAT",) * 8 + ("OFFSET_COMMIT",)
"""The requests of a member, one for each heartbeat interval, in a cycle."""
EARLY_MS = 5.0
"""How much earlier than logged a request may have arrived, as in evidence from a log."""
WORK_MS = 0.25
"""How long the broker handles a request before, and after, the coordinator acts on it."""


class SteadyGroup(Simulation):
    """A group of `size` static members, and the `evidence` of its requests."""

    def __init__(self, size: int, profile: Profile) -> None:
        super().__init__(Group(GROUP), profile)
        self.dice = random.Random(0)
        self.evidence: list[ObservedRequest] = []
        for number in range(size):
            process = Process(Client(f"app-{number}", f"app-{number}", rebalance_ms=300_000))
            self._plan(self.dice.uniform(0, FORMATION_MS), process, "JOIN_GROUP")

    def run_until(self, requests: int) -> Evidence:
        """Run the group until so many requests are answered; return the evidence."""
        while len(self.evidence) < requests:
            self.agenda.run(self.agenda.now_ms + HEARTBEAT_MS)
        return Evidence(GROUP, tuple(sorted(self.evidence, key=lambda seen: seen.at_ms)))

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
            api = CYCLE[process.sent % len(CYCLE)]
        self._plan(answered_ms + after_ms, process, api)

    def _plan(self, at_ms: float, process: Process, api: str) -> None:
        self.agenda.at(at_ms, lambda: self.receive(self.send(process, api)))


def measure() -> Json:
    """Return the requests/s of a replay of the recorded run, and of groups of two sizes."""
    groups = {
        f"steady {size}": SteadyGroup(size, NEWEST).run_until(REQUESTS) for size in (SMALL, BIG)
    }
    return {"storm": _storm()} | {name: _replayed([one], NEWEST) for name, one in groups.items()}


def _storm() -> float:
    """Replay the recorded run repeatedly."""
    recording = Recording(RECORDED)
    groups = [recording.evidence_with_faults(group) for group in recording.groups]
    times = max(1, round(REQUESTS / sum(len(group.requests) for group in groups)))
    return _replayed(groups * times, recording.profile)


def _replayed(groups: list[Evidence], profile: Profile) -> float:
    """Return the requests/s of a replay of groups; it must explain every response."""
    requests = sum(len(group.requests) for group in groups)
    with collector_paused():
        results = [replay(group, profile) for group in groups]
        explained = sum(checked.explained for result in results for checked in result.checked)
        if explained != requests or any(result.violations for result in results):
            raise click.ClickException(f"{explained} of {requests} responses were explained")
        return requests / _seconds(lambda: [replay(group, profile) for group in groups])


def _seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work, the median of all rounds."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return median(taken)
