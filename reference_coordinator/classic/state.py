"""The state of one group on one coordinator: plain frozen data, Kafka's names.

Deadlines are not here: `step` returns which timers to arm, and its caller keeps them. So a
heartbeat leaves the state as it is, whatever the size of the group.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, TypedDict

from reference_coordinator.classic.members import Members
from reference_coordinator.frozen import frozen_dataclass
from reference_coordinator.timing import EXPECTED_WITHIN_MS

if TYPE_CHECKING:
    from reference_coordinator.classic.events import JoinReceived
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


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = State
ABSENT, LOADING, ACTIVE = Service


@frozen_dataclass(frozen=True)
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
    """The JoinGroup request that waits for its response, if any."""
    sync: str | None = None
    """The SyncGroup request that waits for its response, if any."""
    is_new: bool = False
    """Whether its first join phase has not ended yet."""
    client_id: str = ""
    client_host: str = ""
    is_standby: bool = False
    """Whether it holds no partitions until another member is gone (a rule of the `Profile`)."""
    is_called: bool = False
    """Whether it is to join again, for the partitions of a member that is gone."""

    @property
    def is_static(self) -> bool:
        """Whether the member has a group.instance.id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def is_awaiting(self) -> bool:
        """Whether a pending request keeps the member alive without heartbeats."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol: str | None) -> str:
        """Return the member's metadata for a protocol, empty if it does not support it."""
        return dict(self.protocols).get(protocol or "", "")


class MemberFields(TypedDict, total=False):
    """Fields of a `Member` that change together."""

    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, str], ...]
    join: str | None
    sync: str | None
    is_new: bool
    client_id: str
    client_host: str
    is_called: bool


@frozen_dataclass(frozen=True, slots=True)
class Write:
    """A record write under way, with what follows from its outcome.

    `request` is the request whose response waits for the outcome. The write stores one of three
    things: `member_id`, the new id of the static member that was `replaced`; the tombstone of the
    group, if it `deletes`; else the leader's assignment of `generation`.
    """

    request: str
    generation: int
    member_id: str | None = None
    replaced: Member | None = None
    skip_assignment_version: bool = False
    leader_before: str | None = None
    assignment: Mapping[str, str] = field(default_factory=dict)
    deletes: bool = False


@frozen_dataclass(frozen=True, slots=True)
class GroupConfig:
    """What an operator has asked of the group (`group_config`); no release knows it.

    `expected` are the instance ids that it is to have, None while it waits for none; so many
    members as the `target_size` get partitions, None for all.
    """

    expected: frozenset[str] | None = None
    wait_ms: int = EXPECTED_WITHIN_MS
    target_size: int | None = None


NO_CONFIG = GroupConfig()


@frozen_dataclass(frozen=True)
class Group:
    """One group. `leader` is None while the group is empty or its leader is still open.

    When the leader is removed, Kafka takes the next key of a hash map: any of the others. Responses
    show the pick when the join phase ends; until then `open_leaders` holds the candidates.
    """

    group_id: str
    service: Service = Service.ACTIVE
    sessions_deferred: bool = False
    """Whether its sessions begin only when the broker takes requests (a rule of the `Profile`)."""
    exists: bool = False
    created_ms: float = field(default=float("-inf"), compare=False)
    """When it was created; DescribeGroups may miss it until its first record is committed."""
    removed: "Group | None" = None
    """The group of the same name that was deleted before it; None if there was none."""
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
    """Ids given by MEMBER_ID_REQUIRED (KIP-394) with which no member has joined yet."""
    removed_pending_joins: frozenset[str] = frozenset()
    """Removed pending members whose timers run on (a rule of the `Profile`)."""
    pending_syncs: frozenset[str] = frozenset()
    """Members of the generation whose SyncGroup the pending-sync timer awaits (KAFKA-12890)."""
    new_member_added: bool = False
    writes: Mapping[str, Write] = field(default_factory=dict)
    stored: "GroupRecord | None" = None
    """The record written last, or found on loading."""
    initial_delay_left_ms: int = 0
    config: GroupConfig = NO_CONFIG
    held_back: Mapping[str, "JoinReceived"] = field(default_factory=dict)
    """The JoinGroups that wait for others, by instance id."""
    owes_rebalance: bool = False
    """Whether members were removed since the last rebalance that is still to follow."""

    @property
    def is_unsettled(self) -> bool:
        """Whether it waits for expected instance ids, or has a rebalance for them before it."""
        return bool(self.held_back) or self.owes_rebalance or self.config.expected is not None

    @property
    def workers(self) -> int:
        """How many members are no standbys."""
        return sum(not member.is_standby for member in self.members.values())

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
        """Whether every member and every pending member has joined the rebalance."""
        return not self.pending_joins and self.members.awaiting == len(self.members)

    @property
    def extends_delay(self) -> bool:
        """Whether the initial delay goes on when its timer runs out, instead of ending."""
        return (
            self.state is PREPARING_REBALANCE
            and self.previous_state is EMPTY
            and self.new_member_added
            and self.initial_delay_left_ms > 0
        )


class GroupFields(TypedDict, total=False):
    """Fields of a `Group` that change together."""

    exists: bool
    sessions_deferred: bool
    created_ms: float
    removed: Group | None
    removed_ms: float
    state: State
    previous_state: State
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    open_leaders: frozenset[str]
    members: Members
    static_ids: Mapping[str, str]
    pending_joins: frozenset[str]
    removed_pending_joins: frozenset[str]
    pending_syncs: frozenset[str]
    new_member_added: bool
    writes: Mapping[str, Write]
    stored: "GroupRecord | None"
    initial_delay_left_ms: int
    config: GroupConfig
    held_back: Mapping[str, "JoinReceived"]
    owes_rebalance: bool
