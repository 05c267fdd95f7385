"""What comes out of `step`: answers, timers, transitions with their reason, records."""

from enum import StrEnum

from reference_coordinator.classic.events import Timer
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import State
from reference_coordinator.frozen import frozen_dataclass


class Reason(StrEnum):
    """Why a group enters PreparingRebalance: the class of Kafka's reason text."""

    NEW_MEMBER = "new_member"
    LEADER_REJOIN = "leader_rejoin"
    MEMBER_METADATA = "member_metadata"
    STATIC_REPLACED = "static_replaced"
    PROTOCOL_CHANGE = "protocol_change"
    SESSION_EXPIRED = "session_expired"
    LEAVE = "leave"
    PENDING_SYNC = "pending_sync"
    OVER_CAPACITY = "over_capacity"
    JOIN_REASON = "join_reason"
    ASSIGNMENT_ERROR = "assignment_error"
    GROUP_CONFIG = "group_config"
    """What an operator has asked of the group (never released)."""


REJOINS = (Reason.MEMBER_METADATA, Reason.LEADER_REJOIN, Reason.JOIN_REASON)
"""The reasons of rebalances that begin with a JoinGroup of a member that knows its id."""


@frozen_dataclass(frozen=True)  # without slots, for `changed`
class JoinResponse:
    """JoinGroup's response. `members` are (member id, instance id, metadata), in no order."""

    error: int
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: frozenset[tuple[str, str | None, str]] = frozenset()


@frozen_dataclass(frozen=True, slots=True)
class SyncResponse:
    """SyncGroup's response."""

    error: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: str = ""


@frozen_dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """Heartbeat's response."""

    error: int


@frozen_dataclass(frozen=True, slots=True)
class LeaveResponse:
    """LeaveGroup's response; `members` are (member id, instance id, error), in request order.

    Versions 0 to 2 have no members: `error` is that of their one member.
    """

    error: int
    members: tuple[tuple[str, str | None, int], ...] = ()


@frozen_dataclass(frozen=True, slots=True)
class CommitResponse:
    """OffsetCommit's response: one error for all partitions of the request."""

    error: int
    every_partition_alike: bool = True


@frozen_dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member in the response of DescribeGroups; metadata and assignment as base64."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: str
    assignment: str


@frozen_dataclass(frozen=True)  # without slots, for `changed`
class DescribeResponse:
    """DescribeGroups' response about the group; `members` in no order."""

    error: int
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: frozenset[DescribedMember] = frozenset()


@frozen_dataclass(frozen=True, slots=True)
class DeleteResponse:
    """DeleteGroups' response about the group."""

    error: int


@frozen_dataclass(frozen=True, slots=True)
class ConfigureResponse:
    """IncrementalAlterConfigs' response about the group."""

    error: int


Response = (
    JoinResponse
    | SyncResponse
    | HeartbeatResponse
    | LeaveResponse
    | CommitResponse
    | DescribeResponse
    | DeleteResponse
    | ConfigureResponse
)


@frozen_dataclass(frozen=True, slots=True)
class Answer:
    """The coordinator answers a request, received just now or pending until now."""

    request: str
    response: Response


@frozen_dataclass(frozen=True, slots=True)
class Arm:
    """A timer starts, replacing one of the same key."""

    timer: Timer
    deadline_ms: float


@frozen_dataclass(frozen=True, slots=True)
class Disarm:
    """A timer stops; nothing happens if it was not armed."""

    timer: Timer


@frozen_dataclass(frozen=True, slots=True)
class Transition:
    """The group changes its state. A transition into PreparingRebalance is a *rebalance*."""

    before: State
    after: State
    generation: int
    """The generation after the transition."""
    reason: Reason | None = None
    member_id: str = ""
    """The member that caused the transition, if one did."""
    members: int = 0
    static_members: int = 0


@frozen_dataclass(frozen=True, slots=True)
class AssignmentReceived:
    """The coordinator accepts the leader's SyncGroup; the counts are those of Kafka's line."""

    leader: str
    generation: int
    members: int
    static_members: int


@frozen_dataclass(frozen=True, slots=True)
class Persist:
    """The coordinator writes the group's record, or its tombstone (None).

    `request` is the request whose response waits for the outcome, None if none does.
    """

    request: str | None
    record: GroupRecord | None


@frozen_dataclass(frozen=True, slots=True)
class Bound:
    """Something that Kafka leaves open got a `value`; `refused`: a choice that is not allowed."""

    kind: str
    value: str
    refused: str = ""


Effect = Answer | Arm | Disarm | Transition | AssignmentReceived | Persist | Bound
