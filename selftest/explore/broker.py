"""One step of the coordinator: an event goes in, its effects come about in the scene."""

from dataclasses import dataclass, field
from typing import NamedTuple

from reference_coordinator.classic.effects import (
    Answer,
    Arm,
    Bound,
    Disarm,
    Effect,
    Persist,
    Response,
    Transition,
)
from reference_coordinator.classic.events import Event, Timer
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import COMPLETING_REBALANCE, EMPTY, Group
from reference_coordinator.frozen import replace_fields
from selftest.explore.clients import heard
from selftest.explore.invariants import Stepped, broken
from selftest.explore.rules import Rules
from selftest.explore.scene import Append, Armed, Process, Scene


class Happened(NamedTuple):
    """One step of the coordinator: the event, its effects, and what it breaks.

    `sender` sent the request, if it is one; `after` is the group after the step.
    """

    at_ms: float
    broker: int
    sender: str
    event: Event
    effects: tuple[Effect, ...]
    after: Group
    breaks: tuple[str, ...]


@dataclass
class Broker:
    """The coordinator's broker, as it works on one action."""

    scene: Scene
    rules: Rules
    log: list[Happened] = field(default_factory=list)
    """Its steps."""
    leader: str = ""
    """The member to pick where any may lead."""
    leaders: frozenset[str] = frozenset()
    """Members that may lead, if several may."""
    is_refused: bool = False
    """Whether that member may not."""

    def send(self, event: Event) -> None:
        """Let a request come in."""
        request: str = event.request  # type: ignore[union-attr]
        self.change(in_hand=self.scene.in_hand | {request})
        self.step(event)

    def step(self, event: Event, known: Group | None = None) -> None:
        """Let the coordinator take a step; `known` is the group that clients knew before a load."""
        before = self.scene
        group, effects = self.rules.step(before.group, event, self.rules.profile)
        self.change(group=group)
        for effect in effects:
            self._absorb(effect, before)
        stepped = Stepped(before, event, effects, self.scene, self.rules.profile, known)
        request = getattr(event, "request", "") or "-"
        sender = next((p.name for p in before.processes if p.request == request), "")
        self.log.append(Happened(
            before.now_ms, self.scene.broker, sender, event, effects, group, tuple(broken(stepped))
        ))  # fmt: skip

    def _absorb(self, effect: Effect, before: Scene) -> None:
        match effect:
            case Answer():
                self._answer(effect.request, effect.response)
            case Arm():
                self.disarm(effect.timer)
                armed = Armed(effect.timer, effect.deadline_ms)
                self.change(timers=(*self.scene.timers, armed))
            case Disarm():
                self.disarm(effect.timer)
            case Transition() if effect.after in (COMPLETING_REBALANCE, EMPTY):
                self.change(count=self.scene.count + 1, serial=self.scene.count + 1)
            case Persist():
                append = Append(
                    effect.request or "", effect.record, self._serial(effect.record),
                    self.scene.now_ms,
                )  # fmt: skip
                if effect.request is None and not self.scene.appends:
                    self.change(stored=append)
                else:
                    self.change(appends=(*self.scene.appends, append))
            case Bound(kind="leader"):
                self.leaders = frozenset(before.group.members) | frozenset(self.scene.group.members)
                self.is_refused = bool(self.leader) and effect.value != self.leader

    def disarm(self, timer: Timer) -> None:
        """Let a timer run no longer."""
        self.change(timers=tuple([t for t in self.scene.timers if t.timer != timer]))

    def _answer(self, request: str, response: Response) -> None:
        self.change(in_hand=self.scene.in_hand - {request})
        for place, p in enumerate(self.scene.processes):
            if p.request == request:
                self.put(place, heard(p, response, self.scene.serial))

    def _serial(self, record: GroupRecord | None) -> int:
        """Return the serial number of a record's generation: the group's, or the last stored."""
        earlier = [*self.scene.appends, *filter(None, [self.scene.stored])]
        if record is None or record.generation == self.scene.group.generation or not earlier:
            return self.scene.serial
        return earlier[0].serial

    def change(self, **fields: object) -> None:
        """Change fields of the scene."""
        self.scene = replace_fields(self.scene, **fields)  # type: ignore[arg-type]

    def update(self, place: int, **fields: object) -> None:
        """Change fields of a process."""
        self.put(place, replace_fields(self.scene.processes[place], **fields))  # type: ignore[arg-type]

    def put(self, place: int, process: Process) -> None:
        """Replace a process."""
        processes = list(self.scene.processes)
        processes[place] = process
        self.change(processes=tuple(processes))

    def name(self, prefix: str) -> str:
        """Name a new request."""
        self.change(count=self.scene.count + 1)
        return f"{prefix}{self.scene.count}"

    def fault(self) -> None:
        """Count a fault."""
        self.change(faults_left=self.scene.faults_left - 1)
