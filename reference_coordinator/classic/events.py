"""What goes into `step`: requests received, timers that expired, outcomes of record writes.

Every event carries its time, UTC epoch ms. What Kafka leaves open is an argument of the event
(`Choices`): a replay binds it from what was observed, a simulation draws it.
"""

from enum import StrEnum
from typing import NamedTuple

from kafka_protocol.errors import Error
from kafka_protocol.join_reason import JoinReason
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.frozen import frozen_dataclass


@frozen_dataclass(frozen=True, slots=True)
class Choices:
    """A value for each thing that Kafka leaves open; `step` takes it only where it is allowed."""

    new_member_id: str = ""
    leader: str = ""
    protocol: str = ""
    described: tuple[str, str] = ("", "")
    """The state and protocol type that the group has according to its committed records."""


NO_CHOICES = Choices()


@frozen_dataclass(frozen=True, slots=True)
class JoinReceived:
    """JoinGroup. `protocols` are (name, metadata as base64), in the client's order.

    `reason` is text for people (KIP-800), `join_reason` one to act by (KIP-423).
    """

    at_ms: float
    request: str
    api_version: int
    client_id: str
    member_id: str
    group_instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, str], ...]
    reason: str | None = None
    choices: Choices = NO_CHOICES
    client_host: str = ""
    join_reason: JoinReason = JoinReason.UNKNOWN

    @property
    def client_reason(self) -> str:
        """The client's reason, as a coordinator's line has it."""
        return self.join_reason.name if self.join_reason else self.reason or ""


@frozen_dataclass(frozen=True, slots=True)
class SyncReceived:
    """SyncGroup. `assignments` are (member id, assignment as base64); followers send none."""

    at_ms: float
    request: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: tuple[tuple[str, str], ...]
    api_version: int = 0
    choices: Choices = NO_CHOICES


@frozen_dataclass(frozen=True, slots=True)
class HeartbeatReceived:
    """Heartbeat."""

    at_ms: float
    request: str
    generation: int
    member_id: str
    group_instance_id: str | None


@frozen_dataclass(frozen=True, slots=True)
class LeaveReceived:
    """LeaveGroup. `members` are (member id, group.instance.id); versions 0 to 2 name one member.

    `reasons` are their clients' own (KIP-800), in the order of `members`; empty if none has one.
    """

    at_ms: float
    request: str
    api_version: int
    members: tuple[tuple[str, str | None], ...]
    choices: Choices = NO_CHOICES
    reasons: tuple[str | None, ...] = ()


@frozen_dataclass(frozen=True, slots=True)
class CommitReceived:
    """OffsetCommit, or TxnOffsetCommit; only what the coordinator checks of it."""

    at_ms: float
    request: str
    api_version: int
    generation: int
    member_id: str
    group_instance_id: str | None
    transactional: bool = False


@frozen_dataclass(frozen=True, slots=True)
class DescribeReceived:
    """DescribeGroups, as far as it concerns the group."""

    at_ms: float
    request: str
    api_version: int
    choices: Choices = NO_CHOICES


@frozen_dataclass(frozen=True, slots=True)
class DeleteReceived:
    """DeleteGroups, as far as it names the group."""

    at_ms: float
    request: str


@frozen_dataclass(frozen=True, slots=True)
class ConfigureReceived:
    """IncrementalAlterConfigs of the group, by a policy that Kafka never released.

    `changes` are (name, operation, value), in their order; a value that is deleted is None.
    """

    at_ms: float
    request: str
    changes: tuple[tuple[str, int, str | None], ...]


class TimerKind(StrEnum):
    """The timers of a group; `SESSION` also covers pending and new members, as in Kafka.

    `WAIT` ends the wait for expected instance ids, which no release knows.
    """

    SESSION = "session"
    JOIN = "join"
    SYNC = "sync"
    WAIT = "wait"


SESSION_TIMER, JOIN_TIMER, SYNC_TIMER, WAIT_TIMER = TimerKind


class Timer(NamedTuple):
    """A timer's key: one join and one sync timer a group, one session timer a member."""

    kind: TimerKind
    member_id: str = ""


@frozen_dataclass(frozen=True, slots=True)
class TimerFired:
    """An armed timer expired.

    `of_pending`: its member was pending when the timer was armed, though it need not be now; see
    `overtaken_expiry_counts`.
    """

    at_ms: float
    timer: Timer
    choices: Choices = NO_CHOICES
    of_pending: bool = False


@frozen_dataclass(frozen=True, slots=True)
class RecordWritten:
    """The outcome of the write that `request` started."""

    at_ms: float
    request: str
    error: Error = Error.NONE
    choices: Choices = NO_CHOICES


@frozen_dataclass(frozen=True, slots=True)
class LoadStarted:
    """The broker begins to load the group's partition."""

    at_ms: float


@frozen_dataclass(frozen=True, slots=True)
class Loaded:
    """The broker finished loading; `record` is the group as last stored, None if it never was.

    `requests_disabled`: the broker has just started and takes no requests yet.
    """

    at_ms: float
    record: GroupRecord | None
    requests_disabled: bool = False


@frozen_dataclass(frozen=True, slots=True)
class RequestsEnabled:
    """The broker, which loaded the group while it started, takes requests from now on."""

    at_ms: float


@frozen_dataclass(frozen=True, slots=True)
class Unloaded:
    """The broker resigns as the coordinator of the group's partition."""

    at_ms: float


@frozen_dataclass(frozen=True, slots=True)
class Expired:
    """The broker removes the group, which is Empty and whose offsets have expired."""

    at_ms: float


Request = (
    JoinReceived
    | SyncReceived
    | HeartbeatReceived
    | LeaveReceived
    | CommitReceived
    | DescribeReceived
    | DeleteReceived
    | ConfigureReceived
)
Event = (
    Request
    | TimerFired
    | RecordWritten
    | LoadStarted
    | Loaded
    | RequestsEnabled
    | Unloaded
    | Expired
)
