"""The estimate of what static members would have spared, against the oracle that plays both."""

from dataclasses import dataclass
from random import Random
from uuid import UUID

import pytest

from reference_coordinator.classic.effects import AssignmentReceived, Effect, Transition
from reference_coordinator.classic.events import Event, TimerFired, TimerKind
from reference_coordinator.classic.state import State
from reports.incident.rebalances import Rebalances
from reports.incident.static_estimate import absences, spared
from reports.incident.stock_lines import Line
from tests.reference_coordinator.classic.playbook import Playbook

CLIENTS = ("c-0", "c-1", "c-2")
RAN_WITH_MS = 10_000
APART_MS = 200_000


@dataclass(frozen=True)
class Restart:
    """One restart; a member that crashes sends no LeaveGroup."""

    client: str
    down_ms: float
    crashes: bool


class Logged(Playbook):
    """A play that writes what a coordinator would write."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []

    def log(self, template: str, **fields: str) -> None:
        self.lines.append(Line(self.now_ms, "1", 0, template, "g", fields, ""))

    def take(self, event: Event) -> tuple[Effect, ...]:
        before = self.member_ids
        effects = super().take(event)
        if isinstance(event, TimerFired) and event.timer.kind is TimerKind.SESSION:
            for member in before - self.member_ids:
                self.log("session_expired", member=member)
        return effects

    def absorb(self, effect: Effect) -> None:
        super().absorb(effect)
        match effect:
            case Transition(after=State.PREPARING_REBALANCE, reason=reason, member_id=member):
                self.log("preparing", reason=str(reason), member=member, instance="None")
            case Transition(after=State.COMPLETING_REBALANCE):
                self.log("stabilized")
            case Transition(after=State.EMPTY):
                self.log("empty")
            case AssignmentReceived():
                self.log("assignment")


class Simulation:
    """A group whose members restart one after another, static or dynamic."""

    def __init__(self, rng: Random, session_ms: int, *, static: bool) -> None:
        self.play, self.rng = Logged(), rng
        self.session_ms, self.static = session_ms, static
        self.alive: dict[str, str] = {}
        self.synced: dict[str, int] = {}
        """The last generation in which a member sent SyncGroup."""

    def start(self, client: str) -> None:
        instance = client if self.static else None
        given = {"instance": instance, "client": client, "session_ms": self.session_ms}
        drawn = f"{client}-{UUID(int=self.rng.getrandbits(128))}"
        self.play.join(**given, drawn=drawn)
        if not self.static:
            self.play.log("dynamic_given_id", member=drawn)
            self.play.join(drawn, **given)
        self.alive[client] = drawn

    def stop(self, client: str, *, crashes: bool) -> None:
        gone = self.alive.pop(client)
        if not crashes and not self.static:
            self.play.leave((gone, None))
            self.play.log("left", member=gone)

    def settle(self, ms: float) -> None:
        """Let time pass; the living heartbeat, and rejoin and sync where they have to."""
        until_ms = self.play.now_ms + ms
        while self.play.now_ms < until_ms:
            self.play.after(500)
            for client, member in self.alive.items():
                self._live(member, client if self.static else None, client)

    def _live(self, member: str, instance: str | None, client: str) -> None:
        play = self.play
        state = play.group.members[member]
        if play.state is State.PREPARING_REBALANCE and state.join is None:
            play.join(member, instance=instance, client=client, session_ms=self.session_ms)
        elif play.state is State.PREPARING_REBALANCE:
            pass  # it waits for the others
        elif self.synced.get(member) != play.generation:
            self.synced[member] = play.generation
            work = dict.fromkeys(play.group.members, "work") if member == play.leader else {}
            play.sync(member, instance=instance, **work)
        elif play.state is State.STABLE:
            play.heartbeat(member, instance=instance)


def played(seed: int, restarts: list[Restart], session_ms: int, *, static: bool) -> Logged:
    simulation = Simulation(Random(seed), session_ms, static=static)
    for client in CLIENTS:
        simulation.start(client)
    simulation.settle(20_000)
    for restart in restarts:
        simulation.stop(restart.client, crashes=restart.crashes)
        simulation.settle(restart.down_ms)
        simulation.start(restart.client)
        simulation.settle(APART_MS)
    return simulation.play


@pytest.mark.parametrize("seed", range(12))
def test_as_many_rebalances_are_left_as_static_members_would_have_had(seed: int) -> None:
    rng = Random(seed)
    session_ms = rng.choice([10_000, 30_000, 60_000])
    restarts = [
        Restart(rng.choice(CLIENTS), 1000.0 * rng.randrange(1, 90), rng.random() < 0.5)
        for _ in range(4)
    ]
    restarts = [one for one in restarts if abs(one.down_ms - session_ms) > 2_000]
    dynamic = played(seed, restarts, RAN_WITH_MS, static=False)
    static = played(seed, restarts, session_ms, static=True)
    found = Rebalances()
    for line in dynamic.lines:
        found.take(line)
    assert len(found.found) == len(dynamic.rebalances)
    pairs = absences(found.changes, RAN_WITH_MS, session_ms)
    left = len(found.found) - len(spared(found.found, pairs))
    assert left == len(static.rebalances), restarts
