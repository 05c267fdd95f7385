"""The estimate of what static members would have spared, against the oracle that plays both."""

from dataclasses import dataclass
from functools import partial
from random import Random
from uuid import UUID

import pytest

from kafka_protocol.errors import Error
from kafka_protocol.versions import FIRST_WITH_INSTANCE_ID
from reference_coordinator.classic.effects import (
    AssignmentReceived,
    Effect,
    JoinResponse,
    Response,
    Transition,
)
from reference_coordinator.classic.events import Event, TimerFired, TimerKind
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.classic.state import Group, State
from reference_coordinator.driving.client import IN, Client
from reference_coordinator.driving.simulation import Exchange, Process, Simulation
from reports.incident.lines.reader import Line
from reports.incident.rebalances import Rebalances
from reports.incident.static_estimate import absences, spared

CLIENTS = ("c-0", "c-1", "c-2")
RAN_WITH_MS = 10_000
HEARTBEAT_MS, FORMED_MS, APART_MS = 500.0, 20_000.0, 200_000.0
VERSIONS = {**FIRST_WITH_INSTANCE_ID, "LEAVE_GROUP": 3}
ENDED = {State.COMPLETING_REBALANCE: "stabilized", State.EMPTY: "empty"}


@dataclass(frozen=True)
class Restart:
    """One restart; a member that crashes sends no LeaveGroup."""

    client: str
    down_ms: float
    crashes: bool


class Restarts(Simulation):
    """A group whose members restart one after another; `lines` are its coordinator's."""

    def __init__(
        self, seed: int, restarts: list[Restart], session_ms: int, *, static: bool
    ) -> None:
        super().__init__(Group("g"), NEWEST)
        self.random, self.session_ms, self.static = Random(seed), session_ms, static
        self.lines: list[Line] = []
        self.rebalances = 0
        self.alive = {client: self.start(client) for client in CLIENTS}
        at_ms = FORMED_MS
        for one in restarts:
            self.agenda.at(at_ms, partial(self.stop, one))
            self.agenda.at(at_ms + one.down_ms, partial(self.restart, one.client))
            at_ms += one.down_ms + APART_MS
        self.agenda.run(at_ms)

    def start(self, client: str) -> Process:
        instance = client if self.static else None
        process = Process(Client(client, instance, self.session_ms), VERSIONS)
        self.agenda.after(0.0, lambda: self.ask(process))
        return process

    def restart(self, client: str) -> None:
        self.alive[client] = self.start(client)

    def stop(self, one: Restart) -> None:
        process = self.alive.pop(one.client)
        if not one.crashes and not self.static:
            member = process.client.member_id
            self.receive(self.send(process, "LEAVE_GROUP"))
            self.log("left", member=member)

    def ask(self, process: Process) -> None:
        if process in self.alive.values():
            self.receive(self.send(process, process.client.next_api))

    def answered(self, exchange: Exchange, response: Response) -> None:
        if isinstance(response, JoinResponse) and response.error == Error.MEMBER_ID_REQUIRED:
            self.log("dynamic_given_id", member=response.member_id)
        process = exchange.process
        process.client = process.client.hearing(response)
        waits_ms = HEARTBEAT_MS if process.client.phase is IN else 0.0
        self.agenda.after(waits_ms, lambda: self.ask(process))

    def new_id(self, _: Exchange) -> str:
        return str(UUID(int=self.random.getrandbits(128)))

    def log(self, template: str, **fields: str) -> None:
        self.lines.append(Line(self.now_ms, "1", 0, template, "g", fields, ""))

    def decided(self, event: Event, before: Group, effects: tuple[Effect, ...]) -> None:
        if isinstance(event, TimerFired) and event.timer.kind is TimerKind.SESSION:
            for member in before.members.keys() - self.group.members.keys():
                self.log("session_expired", member=member)

    def absorb(self, effect: Effect) -> None:
        super().absorb(effect)
        generation = str(self.group.generation)
        match effect:
            case Transition(after=State.PREPARING_REBALANCE, reason=reason, member_id=member):
                self.rebalances += 1
                begun = {"reason": str(reason), "member": member, "instance": "None"}
                self.log("preparing", **begun, generation=generation)
            case Transition(after=after) if after in ENDED:
                self.log(ENDED[after], generation=generation)
            case AssignmentReceived():
                self.log("assignment", generation=generation)


@pytest.mark.parametrize("seed", range(12))
def test_as_many_rebalances_are_left_as_static_members_would_have_had(seed: int) -> None:
    rng = Random(seed)
    session_ms = rng.choice([10_000, 30_000, 60_000])
    restarts = [
        Restart(rng.choice(CLIENTS), 1000.0 * rng.randrange(1, 90), rng.random() < 0.5)
        for _ in range(4)
    ]
    restarts = [one for one in restarts if abs(one.down_ms - session_ms) > 2_000]
    dynamic = Restarts(seed, restarts, RAN_WITH_MS, static=False)
    static = Restarts(seed, restarts, session_ms, static=True)
    found = Rebalances()
    for line in dynamic.lines:
        found.take(line)
    assert len(found.found) == dynamic.rebalances > 0
    assert (found.chain.missing, found.chain.resets) == ([], [])
    assert {found.static(change.member) for change in found.changes} == {False}
    pairs = absences(found.changes, RAN_WITH_MS, session_ms)
    left = len(found.found) - len(spared(found.found, pairs))
    assert left == static.rebalances, restarts
