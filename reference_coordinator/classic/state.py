"""The state of one group on one coordinator: plain frozen data, Kafka's names.

Deadlines are not here: `step` says which timers to arm, whoever drives it keeps them. So a
heartbeat leaves the state as it is, whatever the size of the group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from reference_coordinator.classic.members import Members

if TYPE_CHECKING:
    from reference_coordinator.classic.records import GroupRecord


class State(StrEnum):
    """A classic group's state, named as DescribeGroups names it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Service(StrEnum):
    """Whether this broker coordinates the group."""

    ABSENT = "absent"
    LOADING = "loading"
    ACTIVE = "active"


# for what is asked most often; see `errors.NO_ERROR`
EMPTY, STABLE, DEAD = State.EMPTY, State.STABLE, State.DEAD
PREPARING_REBALANCE, COMPLETING_REBALANCE = State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE
ABSENT, ACTIVE = Service.ABSENT, Service.ACTIVE


@dataclass(frozen=True)
class Member:
    """One member. `protocols` are (name, metadata) in the member's order of preference."""

    member_id: str
    group_instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, str], ...]
    assignment: str = ""
    join: str | None = None
    """The JoinGroup request it waits in, if any."""
    sync: str | None = None
    """The SyncGroup request it waits in, if any."""
    is_new: bool = False
    client_id: str = ""
    client_host: str = ""

    @property
    def is_static(self) -> bool:
        """Whether the member has a group.instance.id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def waits(self) -> bool:
        """Whether a parked request keeps the member alive without heartbeats."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def supports(self, protocol: str | None) -> bool:
        """Tell whether the member offered a protocol."""
        return any(name == protocol for name, _ in self.protocols)

    def metadata(self, protocol: str | None) -> str:
        """Return the member's metadata for a protocol, empty if it does not support it."""
        return dict(self.protocols).get(protocol or "", "")


@dataclass(frozen=True, slots=True)
class Write:
    """A record write under way, with what follows from its outcome.

    `request` is the request whose answer waits for it; `member_id` the new id of the static member
    that was `replaced` (else None: the write stores the leader's assignment of `generation`, or
    `deletes` the group).
    """

    request: str
    generation: int
    member_id: str | None = None
    replaced: Member | None = None
    skip_assignment_version: bool = False
    leader_before: str | None = None
    assignment: Mapping[str, str] = field(default_factory=dict)
    deletes: bool = False


@dataclass(frozen=True)
class Group:
    """One group. `leader` is None while the group is empty or its leader is still open.

    When the leader goes, Kafka takes the next key of a hash map: any of the others. The pick shows
    only when the join phase ends, so until then `open_leaders` holds those it may be.
    """

    group_id: str
    service: Service = Service.ACTIVE
    sessions_deferred: bool = False
    """Whether its sessions wait for the broker to take requests."""
    exists: bool = False
    created_ms: float = field(default=float("-inf"), compare=False)
    """When it was created; unlike deadlines, only for what is on its way to the disk meanwhile."""
    removed: "Group | None" = None
    """The group of the same name that was deleted before it, and when."""
    removed_ms: float = field(default=float("-inf"), compare=False)
    state: State = State.EMPTY
    previous_state: State = State.DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    open_leaders: frozenset[str] = frozenset()
    members: Members = field(default_factory=Members)
    static_ids: Mapping[str, str] = field(default_factory=dict)
    pending_joins: frozenset[str] = frozenset()
    forgotten_joins: frozenset[str] = frozenset()
    """Pending members that are gone while their timers run on (a rule of the `Profile`)."""
    pending_syncs: frozenset[str] = frozenset()
    new_member_added: bool = False
    writes: Mapping[str, Write] = field(default_factory=dict)
    stored: "GroupRecord | None" = None
    """The record written last, or found on loading."""
    initial_delay_left_ms: int = 0

    @property
    def all_support_protocol(self) -> bool:
        """Whether every member supports the protocol that was selected."""
        return self.members.all_support(self.protocol)

    @property
    def awaiting(self) -> int:
        """How many members wait in JoinGroup."""
        return self.members.awaiting

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return self.members.rebalance_timeout_ms

    @property
    def all_joined(self) -> bool:
        """Whether nobody is missing from the join phase."""
        return not self.pending_joins and self.members.awaiting == len(self.members)

    @property
    def extends_delay(self) -> bool:
        """Whether the initial delay goes on when its timer runs out, instead of ending."""
        return (
            self.state is State.PREPARING_REBALANCE
            and self.previous_state is State.EMPTY
            and self.new_member_added
            and self.initial_delay_left_ms > 0
        )
