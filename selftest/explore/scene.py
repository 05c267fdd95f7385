"""The small scene: a group on its coordinator, its member processes, writes, the log.

Time stands still while requests come in, and passes up to the next timer that expires.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from kafka_protocol.errors import Error
from kafka_protocol.releases import Release, number
from kafka_protocol.versions import (
    FIRST_JOIN_WITH_PROTOCOL_TYPE,
    FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
    FIRST_SYNC_WITH_PROTOCOL,
)
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import (
    Answer,
    Bound,
    Effect,
    LeaveResponse,
    Response,
    Transition,
)
from reference_coordinator.classic.events import (
    Choices,
    Event,
    LoadStarted,
    RecordWritten,
    Timer,
    TimerFired,
    TimerKind,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import COMPLETING_REBALANCE, EMPTY, Group
from reference_coordinator.classic.step import Step
from reference_coordinator.driving.client import JOINED, WAITING, Asked, Client
from reference_coordinator.driving.driver import Driver, Write
from reference_coordinator.frozen import frozen_dataclass, replace_fields

GROUP = "g"
OPERATOR = Client("operator")
"""Who sends the requests of no process."""
FIRST_WITH_JOIN_7: Release = (2, 5, 0)
"""The first release with JoinGroup v7 and SyncGroup v5 (KIP-559)."""
FIRST_WITH_JOIN_9: Release = (3, 2, 0)
"""The first release with JoinGroup v8 (KIP-800) and v9 (KIP-814)."""


@frozen_dataclass(frozen=True)
class Process(Client):
    """One member process. `serial` tells generations with the same number apart."""

    serial: int = 0
    is_replaced: bool = False
    """Another process of its instance has sent a JoinGroup without a member id since."""
    is_silent: bool = False
    """Its last heartbeat was due before the last timer expired."""

    @property
    def beats(self) -> bool:
        """Whether it may send heartbeats."""
        return self.has_joined and self.phase not in WAITING

    @property
    def is_beating(self) -> bool:
        """Whether it sends heartbeats."""
        return self.beats and not self.is_silent

    def next_process(self) -> Self:
        """Return another process of its name, which has just started."""
        fresh = {"serial": 0, "is_replaced": False, "is_silent": False}
        return replace_fields(self.restarted(), **fresh)  # type: ignore[arg-type]


class Action(NamedTuple):
    """One thing that happens; `who` is a process by its place, `pick` a timer or an instance.

    `leader` is the member that Kafka picks where any may lead.
    """

    kind: str
    who: int = -1
    pick: str = ""
    leader: str = ""


@frozen_dataclass(frozen=True)
class Append(Write):
    """A write, and the serial number of its record's generation."""

    serial: int = 0


class Stepped(NamedTuple):
    """One step of the coordinator: the scene before and after, the event and its effects.

    `asked` is the request, if it is one; `known` the group that clients knew before a failover.
    """

    before: "Scene"
    event: Event
    effects: tuple[Effect, ...]
    after: "Scene"
    asked: Asked | None
    known: Group | None

    @property
    def answers(self) -> list[Answer]:
        """Its answers to requests."""
        return [effect for effect in self.effects if isinstance(effect, Answer)]

    @property
    def begins_generation(self) -> bool:
        """Whether a generation began."""
        return any(
            isinstance(effect, Transition) and effect.after is COMPLETING_REBALANCE
            for effect in self.effects
        )

    @property
    def cause(self) -> str:
        """What its event is, in words."""
        if isinstance(self.event, TimerFired):
            return f"the {self.event.timer.kind} timer"
        if isinstance(self.event, RecordWritten):
            return "a write that failed" if self.event.error != Error.NONE else "a write"
        return {"Loaded": "a failover"}.get(type(self.event).__name__, type(self.event).__name__)


class Scene(Driver):
    """All of it. A `fork` is changed by one action, and keeps in `log` what happened then."""

    def __init__(
        self, processes: tuple[Process, ...], profile: Profile, coordinator: Step, faults: int
    ) -> None:
        super().__init__(Group(GROUP), profile, coordinator)
        self.processes = list(processes)
        self.versions = versions_of(profile)
        self.serial = 0
        """Of the group's generation."""
        self.count = 0
        """Of requests, ids and serial numbers given so far."""
        self.in_hand: frozenset[str] = frozenset()
        """Requests that the coordinator has not answered."""
        self.broker = 0
        self.is_closed = False
        """The broker has loaded the group and takes no requests yet."""
        self.faults_left = faults
        self.begin("")

    def begin(self, leader: str) -> None:
        """Begin an action; `leader` is the member to pick where any may lead."""
        self.log: list[Stepped] = []
        self.leader = leader
        self.leaders: frozenset[str] = frozenset()
        """Members that may lead, if several may."""
        self.is_refused = False
        """Whether that member may not."""

    def fork(self) -> Self:
        """Copy what an action may change."""
        forked = object.__new__(type(self))
        vars(forked).update(vars(self))
        forked.processes, forked.writes = self.processes.copy(), self.writes.copy()
        forked.timers = self.timers.copy()
        return forked

    def picks(self, new_member_id: str = "") -> Choices:
        """Let the member lead that the action names."""
        return Choices(new_member_id, self.leader)

    def put(self, place: int, **fields: Any) -> None:
        """Change fields of a process."""
        self.processes[place] = replace_fields(self.processes[place], **fields)

    def name(self) -> str:
        """Name a new request."""
        self.count += 1
        return f"r{self.count}"

    # Steps of the coordinator.

    def ask(self, client: Client, api: str, request: str, **more: Any) -> None:
        """Let a request come in."""
        version = self.versions[api]
        body = client.body(api, GROUP, version, **more)
        asked = Asked(request, client, api, version, body, self.now_ms)
        self.in_hand |= {request}
        new_id = f"{client.instance or client.name}-{self.count:04}"
        self.take(CLASSIC.event_of(asked, self.now_ms, self.picks(new_id)), asked)

    def take(
        self, event: Event, asked: Asked | None = None, known: Group | None = None
    ) -> tuple[Effect, ...]:
        """Let the coordinator take a step; `known` is the group that clients knew before a load."""
        before = self._before = self.fork()
        effects = super().take(event)
        if not isinstance(event, LoadStarted):
            self.log.append(Stepped(before, event, effects, self.fork(), asked, known))
        return effects

    def absorb(self, effect: Effect) -> None:
        """Answer processes, and tell generations apart."""
        super().absorb(effect)
        match effect:
            case Answer():
                self.in_hand -= {effect.request}
                for place, p in enumerate(self.processes):
                    if p.request == effect.request:
                        self._hear(place, p, effect.response)
            case Transition() if effect.after in (COMPLETING_REBALANCE, EMPTY):
                self.count += 1
                self.serial = self.count
            case Bound(kind="leader"):
                before = self._before.group.members
                self.leaders = frozenset(before) | frozenset(self.group.members)
                self.is_refused = bool(self.leader) and effect.value != self.leader

    def _hear(self, place: int, p: Process, response: Response) -> None:
        if isinstance(response, LeaveResponse):
            self.processes[place] = p.next_process()
            return
        self.processes[place] = heard = p.hearing(response)
        if heard.phase is JOINED:
            self.put(place, serial=self.serial)

    def begin_write(self, write: Write) -> None:
        """Begin a write of the group's generation, or of the last that was stored."""
        record, serial = write.record, self.serial
        earlier = [*self.writes, *filter(None, [self.stored])]
        if record is not None and record.generation != self.group.generation and earlier:
            serial = serial_of(earlier[0])
        super().begin_write(Append(write.request, record, write.began_ms, serial))

    # Processes that beat.

    def beats(self, p: Process) -> bool:
        """Tell whether a process sends heartbeats, and the broker takes them."""
        return p.is_beating and not self.is_closed

    def next_timers(self) -> tuple[float, list[Timer]] | None:
        """Return when the next timers expire, and which; none of a process that beats counts.

        None where no timer runs, or a write has to end before.
        """
        beating = {p.member_id for p in self.processes if self.beats(p)}
        left = {
            timer: deadline_ms
            for timer, deadline_ms in self.timers.items()
            if timer.kind is not TimerKind.SESSION or timer.member_id not in beating
        }
        if not left:
            return None
        until_ms = min(left.values())
        write_ms = self.profile.settings.commit_timeout_ms
        if self.writes and until_ms > self.writes[0].began_ms + write_ms:
            return None
        return until_ms, [timer for timer in left if left[timer] == until_ms]


def error_of(response: Response) -> str:
    """Name the error of an answer, or that of the first member in it."""
    members = response.members if isinstance(response, LeaveResponse) else ()
    return Error(response.error or (members[0][2] if members else 0)).name


def serial_of(write: Write | None) -> int:
    """Return the serial number of a record's generation; 0 if there is no record."""
    return write.serial if isinstance(write, Append) else 0


def versions_of(profile: Profile) -> Mapping[str, int]:
    """Return the newest versions that the release of a profile knows."""
    found = re.match(r"\d+\.\d+", profile.name.removeprefix("kip-345-"))
    release = FIRST_WITH_JOIN_9 if found is None else number(found[0])
    has_join_9, lacks_join_7 = release >= FIRST_WITH_JOIN_9, release < FIRST_WITH_JOIN_7
    join = FIRST_JOIN_WITH_SKIP_ASSIGNMENT if has_join_9 else FIRST_JOIN_WITH_PROTOCOL_TYPE
    return {
        "JOIN_GROUP": join - lacks_join_7,
        "SYNC_GROUP": FIRST_SYNC_WITH_PROTOCOL - lacks_join_7,
        "HEARTBEAT": 4,
        "LEAVE_GROUP": 4,
        "OFFSET_COMMIT": 8,
        "DESCRIBE_GROUPS": 5,
        "DELETE_GROUPS": 2,
    }
