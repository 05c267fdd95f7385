"""The small scene: a group on its coordinator, its member processes, timers, writes, the log.

Time stands still while requests come in, and passes up to the next timer that expires.
"""

from enum import StrEnum
from typing import NamedTuple

from reference_coordinator.classic.events import Timer
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group
from reference_coordinator.frozen import frozen_dataclass


class Phase(StrEnum):
    """What a process does next, as Kafka's clients do."""

    OUT = "out"
    """JoinGroup, with its member id if it has one."""
    JOINING = "joining"
    """Its JoinGroup waits."""
    JOINED = "joined"
    """SyncGroup."""
    SYNCING = "syncing"
    """Its SyncGroup waits."""
    IN = "in"
    """It has its share of the partitions."""
    ENDED = "ended"
    """Nothing: its error is fatal."""


OUT, JOINING, JOINED, SYNCING, IN, ENDED = Phase
WAITING = (JOINING, SYNCING)
GROUP, OPERATOR, HOST = "g", "operator", "/127.0.0.1"
"""The group, who sends the requests of no process, and where from all requests come."""


@frozen_dataclass(frozen=True)
class Process:
    """One member process. `generation` is -1 and `member_id` empty until it is given them.

    `serial` tells generations with the same number apart. `leads` are the members that it was
    listed as their leader. `is_silent`: its last heartbeat was due before the last timer expired.
    """

    name: str
    instance: str | None
    phase: Phase = OUT
    member_id: str = ""
    generation: int = -1
    serial: int = 0
    leads: tuple[str, ...] = ()
    request: str = ""
    is_replaced: bool = False
    """Another process of its instance has sent a JoinGroup without a member id since."""
    is_silent: bool = False

    @property
    def has_joined(self) -> bool:
        """Whether it takes itself for a member."""
        return self.generation >= 0 and self.phase is not ENDED

    @property
    def beats(self) -> bool:
        """Whether it may send heartbeats."""
        return self.has_joined and self.phase not in WAITING

    @property
    def is_beating(self) -> bool:
        """Whether it sends heartbeats."""
        return self.beats and not self.is_silent


class Append(NamedTuple):
    """A record and the serial number of its generation; `request` waits until it is stored."""

    request: str
    record: GroupRecord | None
    serial: int
    at_ms: float


class Armed(NamedTuple):
    """A timer and when it expires."""

    timer: Timer
    deadline_ms: float


@frozen_dataclass(frozen=True)
class Scene:
    """All of it. `stored` is the last record in the log, `appends` are under way after it."""

    group: Group
    processes: tuple[Process, ...]
    now_ms: float = 0.0
    timers: tuple[Armed, ...] = ()
    appends: tuple[Append, ...] = ()
    stored: Append | None = None
    serial: int = 0
    """Of the group's generation."""
    count: int = 0
    """Of requests, ids and serial numbers given so far."""
    in_hand: frozenset[str] = frozenset()
    """Requests that the coordinator has not answered."""
    broker: int = 0
    is_closed: bool = False
    """The broker has loaded the group and takes no requests yet."""
    faults_left: int = 0


class Action(NamedTuple):
    """One thing that happens; `who` is a process by its place, `pick` a timer or an instance.

    `leader` is the member that Kafka picks where any may lead.
    """

    kind: str
    who: int = -1
    pick: str = ""
    leader: str = ""
