"""Every change of a group's state that `step` can make, as a table.

The table describes, it does not drive: `step` decides, tests check that `step` takes no transition
that is not in the table and that each row is taken. `page` is the page of the docs; a test compares
its picture. The Kafka methods are those of `GroupCoordinator` (Scala) and `GroupMetadataManager`
(Java).
"""

from enum import StrEnum
from typing import NamedTuple

from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.state import State

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = (str(state) for state in State)
NO_GROUP = "no group"
"""This broker is the coordinator, and does not know the group."""
LOADING_GROUP = "loading"
NOT_COORDINATOR = "not coordinator"
ANY = "any state"


class Cause(StrEnum):
    """What makes a group change its state."""

    JOIN = "JoinGroup"
    LEAVE = "LeaveGroup"
    COMMIT = "OffsetCommit"
    DELETE = "DeleteGroups"
    CONFIGURE = "IncrementalAlterConfigs"
    SESSION_TIMER = "session timer"
    JOIN_TIMER = "join timer"
    SYNC_TIMER = "pending-sync timer"
    WAIT_TIMER = "wait timer"
    STORED = "record written"
    NOT_STORED = "record write failed"
    OFFSETS_EXPIRED = "offsets expired"
    LOAD_STARTED = "load started"
    LOADED = "group loaded"
    UNLOADED = "coordinator resigned"


class Row(NamedTuple):
    """A transition; `reason` where it is a rebalance, `rule` the field of `Profile` that allows it.

    A rule named with a leading `not` must be False.
    """

    before: str
    cause: Cause
    after: str
    when: str
    source: str
    reason: Reason | None = None
    rule: str = ""


NEVER = "KIP-345, future work (never released)"
"""The source of transitions that the picture leaves out."""
_AWAITS = "awaits_expected_instances"
_PREPARE = "prepareRebalance in both coordinators"
_COMPLETE = "onCompleteJoin (Scala), completeClassicGroupJoin (Java)"
_SESSION = "onExpireHeartbeat (Scala), expireClassicGroupMemberHeartbeat (Java)"

TABLE: tuple[Row, ...] = (
    # a group begins
    Row(NO_GROUP, Cause.JOIN, EMPTY, "the first JoinGroup creates the group", "KIP-62"),
    Row(NO_GROUP, Cause.CONFIGURE, EMPTY, "an operator names the instance ids that are to come",
        NEVER, rule=_AWAITS),
    Row(NO_GROUP, Cause.COMMIT, EMPTY, "a commit without a generation creates the group",
        "simple consumers; TxnOffsetCommit: KIP-447"),
    # into PreparingRebalance: a rebalance
    Row(EMPTY, Cause.JOIN, PREPARING, "a new member joins: the initial delay begins",
        "KIP-134", Reason.NEW_MEMBER),
    Row(COMPLETING, Cause.JOIN, PREPARING, "a new member joins", _PREPARE, Reason.NEW_MEMBER),
    Row(STABLE, Cause.JOIN, PREPARING, "a new member joins", _PREPARE, Reason.NEW_MEMBER),
    Row(STABLE, Cause.JOIN, PREPARING, "the leader rejoins with its member id",
        "KIP-345, doJoinGroup (Scala)", Reason.LEADER_REJOIN),
    Row(COMPLETING, Cause.JOIN, PREPARING, "a member rejoins with other protocols",
        _PREPARE, Reason.MEMBER_METADATA),
    Row(STABLE, Cause.JOIN, PREPARING, "a member rejoins with other protocols",
        _PREPARE, Reason.MEMBER_METADATA),
    Row(COMPLETING, Cause.JOIN, PREPARING, "a static member rejoins without its member id",
        "KAFKA-9801 (2.5.0)", Reason.STATIC_REPLACED, "return_makes_completing_group_rebalance"),
    Row(STABLE, Cause.JOIN, PREPARING, "a static rejoin makes the group select another protocol",
        "KAFKA-10284 (2.6.1)", Reason.PROTOCOL_CHANGE, "return_may_change_protocol"),
    Row(STABLE, Cause.JOIN, PREPARING, "a member gives a reason that asks for a rebalance",
        "KIP-423 (never released)", Reason.JOIN_REASON, "join_reason_counts"),
    Row(COMPLETING, Cause.LEAVE, PREPARING, "a member leaves or is removed", "KIP-345",
        Reason.LEAVE),
    Row(STABLE, Cause.LEAVE, PREPARING, "a member leaves or is removed", "KIP-345", Reason.LEAVE),
    Row(COMPLETING, Cause.SESSION_TIMER, PREPARING, "a member's session expires", _SESSION,
        Reason.SESSION_EXPIRED),
    Row(STABLE, Cause.SESSION_TIMER, PREPARING, "a member's session expires", _SESSION,
        Reason.SESSION_EXPIRED),
    Row(COMPLETING, Cause.SYNC_TIMER, PREPARING, "a member has not sent SyncGroup",
        "KAFKA-12890 (2.8.1)", Reason.PENDING_SYNC, "pending_sync_timer"),
    Row(STABLE, Cause.SYNC_TIMER, PREPARING, "a member has not sent SyncGroup",
        "KAFKA-12890 (2.8.1)", Reason.PENDING_SYNC, "pending_sync_timer"),
    Row(COMPLETING, Cause.NOT_STORED, PREPARING, "the leader's assignment could not be stored",
        "storeGroup's callback (Scala), classicGroupSync (Java)", Reason.ASSIGNMENT_ERROR),
    Row(COMPLETING, Cause.UNLOADED, PREPARING, "the assignment under way is lost",
        "storeGroup's callback (Scala), classicGroupSync (Java)", Reason.ASSIGNMENT_ERROR),
    Row(STABLE, Cause.LOADED, PREPARING, "the loaded group is larger than group.max.size",
        "KIP-389", Reason.OVER_CAPACITY),
    *(
        Row(STABLE, cause, PREPARING, when, NEVER, Reason.GROUP_CONFIG, _AWAITS)
        for cause, when in (
            (Cause.JOIN, "the last expected member has come"),
            (Cause.LEAVE, "the last member to leave has left"),
            (Cause.SESSION_TIMER, "the last member to leave expires"),
            (Cause.WAIT_TIMER, "some have come or gone when the time is up"),
            (Cause.CONFIGURE, "an operator waits for no more than have come and gone"),
            (Cause.STORED, "all had come or gone before the assignment was stored"),
        )
    ),
    Row(STABLE, Cause.LOADED, PREPARING, "more or fewer members work than the target size says",
        NEVER, Reason.GROUP_CONFIG, "standbys_hold_no_partitions"),
    *(
        Row(EMPTY, cause, PREPARING, "members had waited for others as the last one left", NEVER,
            Reason.NEW_MEMBER, _AWAITS)
        for cause in (Cause.LEAVE, Cause.SESSION_TIMER, Cause.JOIN_TIMER, Cause.SYNC_TIMER)
    ),
    # the join phase completes
    Row(PREPARING, Cause.JOIN, COMPLETING, "the last member has joined", _COMPLETE),
    Row(PREPARING, Cause.LEAVE, COMPLETING, "the last absent member leaves", _COMPLETE),
    Row(PREPARING, Cause.SESSION_TIMER, COMPLETING, "the last absent member expires", _COMPLETE),
    Row(PREPARING, Cause.JOIN_TIMER, COMPLETING, "the rebalance timeout or initial delay expires",
        f"KIP-134, {_COMPLETE}"),
    Row(PREPARING, Cause.LEAVE, EMPTY, "the last member leaves", _COMPLETE),
    Row(PREPARING, Cause.SESSION_TIMER, EMPTY, "the last member expires", _COMPLETE),
    Row(PREPARING, Cause.SYNC_TIMER, EMPTY, "the last member is removed by the timer",
        "KAFKA-12890 (2.8.1)", rule="pending_sync_timer"),
    Row(PREPARING, Cause.JOIN_TIMER, EMPTY, "no member is left when the join phase ends",
        _COMPLETE),
    # the assignment
    Row(COMPLETING, Cause.STORED, STABLE, "the leader's assignment is stored",
        "storeGroup's callback (Scala), classicGroupSync (Java)"),
    # a group ends
    Row(EMPTY, Cause.DELETE, DEAD, "an operator deletes the group", "KIP-229",
        rule="deleted_group_is_dead_first"),
    Row(DEAD, Cause.STORED, NO_GROUP, "the tombstone is written", "cleanupGroupMetadata (Scala)",
        rule="deleted_group_is_dead_first"),
    Row(EMPTY, Cause.DELETE, NO_GROUP, "an operator deletes the group", "KIP-229",
        rule="not deleted_group_is_dead_first"),
    Row(EMPTY, Cause.OFFSETS_EXPIRED, NO_GROUP, "the group's last offset has expired", "KIP-211"),
    # failover
    Row(ANY, Cause.LOAD_STARTED, LOADING_GROUP, "this broker becomes the coordinator", "KIP-345"),
    Row(ANY, Cause.LOADED, STABLE, "the stored record has members", "onGroupLoaded (Scala)"),
    Row(ANY, Cause.LOADED, EMPTY, "the stored record has no members", "onGroupLoaded (Scala)"),
    Row(ANY, Cause.LOADED, NO_GROUP, "no record is stored", "onGroupLoaded (Scala)"),
    Row(ANY, Cause.UNLOADED, NOT_COORDINATOR, "another broker becomes the coordinator",
        "onGroupUnloaded (Scala)"),
)  # fmt: skip
"""All transitions, in the order of a group's life."""

_INTRODUCTION = """\
# State machine of a classic group

![States of a classic group and causes of their transitions](images/state-machine.svg)

A transition into PreparingRebalance is a *rebalance*; its reason is the class of the reason in
Kafka's log line. A rule is a field of `Profile`: the transition exists where it is true (`not`:
where it is false). `step` makes no other transition: every test of the oracle checks that. The
picture leaves out what [no release ever had](never-shipped.md).

| from | cause | to | when | reason | rule | source |
|---|---|---|---|---|---|---|"""


def page() -> str:
    """Write the page of the docs: the picture, and the table with the source of each transition."""
    rows = [
        f"| {row.before} | {row.cause} | {row.after} | {row.when} "
        f"| {_code(row.reason)} | {_code(row.rule)} | {row.source} |"
        for row in TABLE
    ]
    return "\n".join((_INTRODUCTION, *rows, ""))


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""
