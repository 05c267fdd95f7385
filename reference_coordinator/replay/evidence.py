"""The input of a replay: a group's requests as its brokers logged them, hints and epoch events.

All times are UTC epoch ms with fractions, of one broker's clock.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from reference_coordinator.frozen import frozen_dataclass

LAST_MS = 1e15
"""Far beyond any clock's time, and exact to a fraction of a millisecond; in files it is never."""
Ms = Annotated[float, Meta(ge=0, le=LAST_MS)]
"""A time, as event files may have it (`event_files.reading`)."""

ONLY_RESTART_TIMERS = frozenset({"HEARTBEAT", "OFFSET_COMMIT"})
"""The most frequent requests; they change nothing but the deadlines of sessions."""


@frozen_dataclass(frozen=True, slots=True)
class ObservedRequest:
    """One request and its response.

    The coordinator acted on it somewhere in [earliest_ms, latest_ms], most likely at at_ms;
    `request` and `response` are the bodies of Kafka's JSON request log. Without a response nothing
    is known of what became of it: it may have been acted on at any time from at_ms on, or never.
    """

    id: str
    broker: str
    api: str
    api_version: int
    client_id: str
    connection: str
    earliest_ms: float
    at_ms: float
    latest_ms: float
    answered_ms: float
    request: Mapping[str, Any]
    response: Mapping[str, Any] | None
    serial: int = 0
    """Its place on its connection (the correlation id): a broker serves them one by one."""
    client_host: str = ""
    taken_ms: float = float("-inf")
    """When the broker took it up, by the times in its line. It stands only where `earliest_ms` is
    earlier than that because the broker may have written the line late."""

    @property
    def started_ms(self) -> float:
        """The earliest start of the time that it took, which the broker itself measured."""
        return max(self.earliest_ms, self.taken_ms)

    @property
    def handled_ms(self) -> float:
        """When the broker had handled it: `at_ms` is in the middle of the handling."""
        return 2 * self.at_ms - self.started_ms

    @property
    def response_fields(self) -> Mapping[str, Any]:
        """The response's fields; empty if there is no response."""
        return self.response or {}


class HintKind(StrEnum):
    """Coordinator lines that show when a timer expired or a request was acted on.

    `PERSIST_FAILED`: when a static member got its old id back. `REJOINED`: when a rebalance began
    with the JoinGroup of a member.
    """

    PREPARING = "preparing"
    SESSION_EXPIRED = "session_expired"
    JOIN_PHASE_ENDED = "join_phase_ended"
    NOBODY_REJOINED = "nobody_rejoined"
    SYNC_EXPIRED = "sync_expired"
    JOINED = "joined"
    PENDING_JOINED = "pending_joined"
    REJOINED = "rejoined"
    REPLACED = "replaced"
    LEFT = "left"
    ASSIGNED = "assigned"
    PERSIST_FAILED = "persist_failed"


@frozen_dataclass(frozen=True, slots=True)
class Hint:
    """One such line: `subject` is a member id or, where one was replaced, an instance id.

    `generation` is the one that begins when a join phase ends, and the old one before.

    Without a `broker` it counts for every broker.
    """

    at_ms: Ms
    kind: HintKind
    subject: str = ""
    generation: int = -1
    broker: str = ""


@frozen_dataclass(frozen=True, slots=True)
class EpochEvent:
    """A broker started, began to load, loaded, or gave up the partition that holds the group.

    `opened`: the process that started the broker saw it accept requests. `ended`: the last time
    that any line of the broker process shows. An `AppendError`: the broker could not write to the
    partition (Java), or a record of the group (Scala).
    """

    at_ms: Ms
    broker: str
    kind: str
    """`started`, `opened`, `loading`, `loaded`, `unloaded`, `ended`, or an `AppendError`."""
    epoch: int | None = None
    """The leader epoch of a `loaded` partition, from 2.8 on."""
    earliest_ms: Ms | None = None
    """No line tells of it, but answers do: it happened from then to `latest_ms`."""
    latest_ms: Ms | None = None

    @property
    def is_logged(self) -> bool:
        """Whether a line tells of it."""
        return self.latest_ms is None


@frozen_dataclass(frozen=True, slots=True)
class Stall:
    """A time in which a broker stood still: a fault paused it, or the machine gave it no time.

    It is `proven` where a source says so. It is possible where nothing shows that the broker
    worked; a replay with possible stalls shows what lateness alone explains.
    """

    broker: str
    from_ms: Ms
    until_ms: Ms
    proven: bool = True


@frozen_dataclass(frozen=True, slots=True)
class Outage:
    """A time in which a broker was broken on purpose, or had not caught up: writes may fail."""

    from_ms: Ms
    until_ms: Ms

    def has(self, at_ms: float) -> bool:
        """Tell whether an instant lies in it, its ends among it."""
        return self.from_ms <= at_ms <= self.until_ms


@frozen_dataclass(frozen=True, slots=True)
class Parting:
    """A time in which a broker was cut off from the others, while clients reached it.

    Its packets began to be lost at some time from `earliest_ms` to `from_ms`, and passed again at
    `healed_ms`: what it wrote meanwhile reached no replica, and a broker that took over has none
    of it. `from_ms` is infinity where packets are only late. Until `until_ms` the broker may not
    know of an election.
    """

    broker: str
    earliest_ms: Ms
    from_ms: Ms
    healed_ms: Ms
    until_ms: Ms

    @property
    def unaware(self) -> Stall:
        """When it may not have learned of elections."""
        return Stall(self.broker, self.earliest_ms, self.until_ms, proven=False)

    def lost_from(self, over_ms: float) -> float:
        """Return from when on nothing that it wrote counts for who takes over at a time."""
        return self.from_ms if self.from_ms <= over_ms <= self.healed_ms else over_ms


@frozen_dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of one group, requests in order of `at_ms`."""

    group: str
    requests: tuple[ObservedRequest, ...]
    hints: tuple[Hint, ...] = ()
    epoch_events: tuple[EpochEvent, ...] = ()
    stalls: tuple[Stall, ...] = ()
    outages: tuple[Outage, ...] = ()
    loading: tuple[Stall, ...] = ()
    """When brokers loaded any partition, and could not give another one up meanwhile (Scala)."""
    reconnects_ms: float = 0.0
    """How long a broker may wait before it asks its ZooKeeper again, where it has one."""
    partings: tuple[Parting, ...] = ()
    """When faults cut brokers off from the others."""
