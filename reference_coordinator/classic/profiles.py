"""The rules of one release's coordinator as data, and the broker settings it runs with.

No rule compares versions: it reads a field of `Profile`. Each field says where it changed;
`releases` lists which release has which value.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error


@dataclass(frozen=True, slots=True)
class Settings:
    """Broker settings that the protocol depends on; times in ms, defaults as in Kafka's code."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2_147_483_647
    commit_timeout_ms: int = 5_000
    """How long a write waits for its replicas, one of group records no less than a commit."""
    max_metadata_size: int = 4_096
    """How many characters the metadata of a committed offset may have, as Java counts them."""
    replica_lag_ms: int = 30_000
    """How long a replica may lag and be in sync: 30,000 since 2.5 (KIP-537), 10,000 before."""

    NAMES: ClassVar[dict[str, str]] = {
        "group.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
        "group.min.session.timeout.ms": "min_session_timeout_ms",
        "group.max.session.timeout.ms": "max_session_timeout_ms",
        "group.max.size": "max_size",
        "offsets.commit.timeout.ms": "commit_timeout_ms",
        "offset.metadata.max.bytes": "max_metadata_size",
        "replica.lag.time.max.ms": "replica_lag_ms",
    }

    @classmethod
    def from_properties(cls, properties: dict[str, str | int | bool]) -> Self:
        """Read the settings out of broker properties; other properties are ignored.

        Raises TypeError, ValueError or OverflowError if a value is none that Kafka takes.
        """
        known = {
            field: int(properties[name]) for name, field in cls.NAMES.items() if name in properties
        }
        found = cls(**known)
        if min(found.commit_timeout_ms, found.replica_lag_ms) < 1:
            raise ValueError("offsets.commit.timeout.ms and replica.lag.time.max.ms are at least 1")
        return found


@dataclass(frozen=True, slots=True)
class Profile:
    """The named rules of one coordinator, and the settings it runs with.

    The defaults are those of the newest Java coordinator. Where a docstring names no release, the
    rule differs between the implementations, not between releases: Java has the default from 3.7,
    its first release, on; Scala has the other value from 2.4 to 4.0, its last. A change that came
    with a version of a request (KIP-394, 559, 800, 814) is no field: the request's version decides.
    """

    name: str
    settings: Settings = Settings()

    # Checks and answers.

    sync_while_loading: Error = Error.COORDINATOR_LOAD_IN_PROGRESS
    """SyncGroup while the group loads; Scala answers REBALANCE_IN_PROGRESS for old clients."""

    session_range_comes_first: bool = True
    """JoinGroup checks the session timeout before it checks whether this broker coordinates the
    group. Scala checks the broker first, and so does Java 3.7 (KAFKA-16615, 3.8)."""

    unserved_join_keeps_member_id: bool = False
    """A broker that does not coordinate the group (loads it, gave it up) repeats the member id of
    the JoinGroup that it refuses; Java leaves the field empty."""

    unknown_instance_is_refused: bool = True
    """SyncGroup, Heartbeat, LeaveGroup and OffsetCommit with an unknown instance id are answered
    UNKNOWN_MEMBER_ID, as JoinGroup always was. Before 3.0 (a refactoring of instance ids, without
    an issue of its own) only the member id counted then."""

    heartbeats_count_while_completing: bool = True
    """In CompletingRebalance a Heartbeat restarts the session. Before 2.6.1 (KAFKA-10134) it did
    not, and was answered REBALANCE_IN_PROGRESS."""

    failures_are_answered_in_every_version: bool = True
    """A request over which the coordinator fails is answered UNKNOWN_SERVER_ERROR. Before 2.5.0 (a
    refactoring, without an issue of its own) JoinGroup from v6 and SyncGroup from v4 on had no
    response in this case."""

    describes_assignments_in_every_state: bool = True
    """DescribeGroups shows the assignments in every state; Scala shows them in Stable alone."""

    describes_static_to_old_clients: bool = True
    """DescribeGroups below v4 has no field for instance ids and leaves them out. 2.5.0 was the
    first to check whether a version has a field, and failed with UNSUPPORTED_VERSION if a member
    had an instance id (KAFKA-10239, 2.5.1)."""

    deleted_group_is_dead_first: bool = False
    """A group that DeleteGroups removes is Dead until its tombstone is written, and answers
    COORDINATOR_NOT_AVAILABLE until then; in Java it is removed at once. Requests that are under way
    as a broker unloads a group find it Dead, too."""

    describes_committed_records: bool = True
    """DescribeGroups shows committed records: a new group is Dead until its first record is
    committed, and a deleted one stays until its tombstone is. Scala shows both at once."""

    describes_latest_client: bool = False
    """DescribeGroups shows client id and host of the latest JoinGroup. Kafka keeps those of the
    first JoinGroup, whichever client rejoins (KAFKA-15704, open): a departure. KIP-345 adds
    instance ids to DescribeGroups "for better visibility for static members"."""

    # OffsetCommit.

    commit_to_unknown_group_v9: Error = Error.GROUP_ID_NOT_FOUND
    """OffsetCommit v9+ (KIP-848) to a group that does not exist; Scala: ILLEGAL_GENERATION."""

    empty_group_takes_any_commit: bool = True
    """An Empty group accepts an OffsetCommit without a generation, whatever ids it has. From 3.0 to
    3.2 the ids were checked, and were unknown (KAFKA-14201, fixed in 3.3.0)."""

    transaction_creates_group: bool = False
    """TxnOffsetCommit creates an unknown group before its ids and generation are checked. In Java
    only one without a generation does; others are answered ILLEGAL_GENERATION."""

    transaction_to_unknown_group_v6: Error = Error.GROUP_ID_NOT_FOUND
    """TxnOffsetCommit v6+ with a generation to a group that does not exist (KIP-1319, 4.4.0); lower
    versions, and releases before: ILLEGAL_GENERATION."""

    transaction_is_checked_as_a_whole: bool = True
    """A TxnOffsetCommit (KIP-447) with a member id, instance id or generation needs all of them to
    be right. Before 3.0 each was checked on its own, and only if it was given."""

    oversized_commit: Error = Error.UNKNOWN_SERVER_ERROR
    """The error of an OffsetCommit whose record is too large for the log; Scala:
    INVALID_COMMIT_OFFSET_SIZE."""

    # What is stored.

    stores_new_group: bool = True
    """The first JoinGroup of a group writes an empty record, generation 0; Scala writes none."""

    write_timeout: Error = Error.COORDINATOR_NOT_AVAILABLE
    """What a group record that its replicas did not confirm in time is answered with; Scala:
    REBALANCE_IN_PROGRESS, and REQUEST_TIMED_OUT for commits."""

    answers_wait_for_writes: bool = True
    """Whatever the answer, it is sent once everything written before it is confirmed; where that
    fails, its error is the answer. In Scala this holds for a request's own records alone."""

    unload_answers_waiting: bool = True
    """A broker that gives a group up answers its pending requests NOT_COORDINATOR. Java 3.7 leaves
    them without a response (KAFKA-16148, 3.8)."""

    # `group.max.size`.

    last_to_rejoin_are_refused: bool = True
    """Of a group that is larger than allowed, the first members to rejoin stay. Before 2.6.0
    (KAFKA-9885) the first were refused until the group was small enough, and pending members were
    always accepted."""

    refused_instance_is_forgotten: bool = False
    """A JoinGroup that `group.max.size` refuses removes the mapping of its instance id, whichever
    member has it; that member stays, as one whose instance id is unknown. No other mapping is
    removed: a refused member whose JoinGroup has no instance id leaves the mapping of a member that
    does not exist, over which later requests fail. True before 2.8.0 (a refactoring, without an
    issue of its own)."""

    refused_pending_stays: bool = False
    """A pending member that `group.max.size` refuses stays pending, and the join phase awaits it
    until its timer expires. True before 3.0 (without an issue of its own)."""

    removed_pending_timer_runs_on: bool = False
    """The timer of a pending member that left or was refused is not stopped in Scala; when it
    expires the coordinator logs the removal once more."""

    refused_join_may_end_join_phase: bool = False
    """Scala checks after every JoinGroup whether the join phase is complete, so it no longer awaits
    a pending member that `group.max.size` refuses. Java checks after accepted JoinGroups alone."""

    instance_keeps_its_place: bool = False
    """A static member that rejoins a full group keeps its place. Kafka counts it as one more member
    and refuses it: a departure. KIP-345: when a known member, that is a known instance id, joins
    again, "broker will return the cached assignment back to the member"."""

    # The initial delay.

    new_members_extend_every_initial_delay: bool = True
    """A new member extends the initial delay of every group that was Empty; in Scala only before
    the first generation."""

    expiry_ends_initial_delay: bool = True
    """If a member or pending member expires during the initial delay and all others have joined,
    the join phase completes at once; in Scala the delay always runs to its end."""

    # Sessions and the pending-sync timer.

    sync_in_stable_restarts_session: bool = False
    """A SyncGroup that is answered in Stable restarts the session in Scala, not in Java."""

    replaced_new_member_stays_new: bool = False
    """A static member that rejoins before its first join phase has ended still counts as new. In
    Scala it does, so its session, which the rejoin started, may expire while its JoinGroup is
    pending; in Java a pending request keeps it alive, as in Scala 2.4.0 (KAFKA-9232, 2.4.1)."""

    overtaken_expiry_counts: bool = False
    """An expired session removes its member even if a heartbeat is handled in between. In Scala an
    expired timer waits for the group's lock, and then checks only whether its member has a pending
    request, or was pending when the timer was armed; in Java a timer that was armed again in the
    meantime does nothing."""

    new_members_have_sessions: bool = True
    """The session of a new member begins when its first join phase ends. In 2.4.1 (KAFKA-9232) only
    its first request after that started one, so a member that sent none stayed in the group;
    KAFKA-9752 (2.5.0) fixed it."""

    joins_update_timeouts: bool = True
    """The session and rebalance timeouts of a member are those of its latest JoinGroup. Before
    3.3.2 (KAFKA-14009) they were those of its first, even after it was replaced."""

    pending_sync_timer: bool = True
    """A member that does not send SyncGroup within the rebalance timeout after the join phase is
    removed (KAFKA-12890, 2.8.1). Without this rule a group may stay in CompletingRebalance."""

    stale_sync_id_stops_timer: bool = False
    """The pending-sync timer fails at a member that was replaced in the meantime, with an exception
    that 2.8.1 and 2.8.2 hide. Members before it in Scala's order are removed without a rebalance,
    and no others. From 3.0 on the group rebalances."""

    replaced_id_stays_pending_sync: bool = True
    """The pending-sync timer still awaits the id that a static rejoin in Stable replaced, so the
    group rebalances: a departure. KIP-345 knows four reasons for a rebalance (a new member, the
    leader's rejoin, a session's end, LeaveGroup), and this is none of them."""

    sync_timer_spares_statics: bool = False
    """The pending-sync timer removes dynamic members alone. In Kafka it removes static ones too,
    such as those that were absent from the join phase: a departure. KIP-345: "the member will only
    be removed due to session timeout"."""

    sessions_wait_for_clients: bool = False
    """The sessions of a group that a broker loads while it starts begin once it takes requests. In
    Kafka they begin with the load, which may be many seconds earlier (seen on 3.9.1), so members
    are removed before they can send a heartbeat: a departure. KIP-345: "the member will only be
    removed due to session timeout"; it prefers "state persistence" to "liveness"."""

    # LeaveGroup.

    leave_is_one_step: bool = True
    """All members of a LeaveGroup are removed, then the group rebalances once, even for a pending
    member that took no part in it. Scala removes them one by one, each in a step of its own, so the
    group may change its state in between; a pending member that leaves starts no rebalance."""

    pending_may_name_an_instance: bool = True
    """A pending member may leave with any instance id beside its own member id. Before 3.0 a known
    instance id fenced it, and with an unknown one the whole request failed."""

    # Static rejoin.

    return_makes_completing_group_rebalance: bool = True
    """A static rejoin in CompletingRebalance starts a rebalance. Before 2.5.0 (KAFKA-9801) it was
    answered with the generation of the old id, to which the leader then gave the assignment."""

    return_may_change_protocol: bool = True
    """A static rejoin in Stable that makes the group select another protocol starts a rebalance.
    Before 2.6.1 (KAFKA-10284) none did."""

    return_is_stored: bool = True
    """The new id of a static rejoin in Stable is in the group's record before the response. Before
    2.6.1 (KAFKA-10284) the next coordinator knew the old id."""

    store_answers_latest_return: bool = False
    """If an instance rejoins again before the write of its first rejoin is done, that write answers
    the second JoinGroup, with the first one's member id, which is replaced by then. Scala keeps one
    member object for all rejoins; Java makes a new one for each (since new ids are stored)."""

    failed_replacement_restores_protocols: bool = True
    """If the write fails, the member gets its old protocols back with its old id. Scala intends
    this, but saves the protocols after they were overwritten (since 2.6.1)."""

    every_return_is_stored: bool = False
    """Outside Stable, too, the new id is stored at once, in the record of the last stored
    generation. Kafka waits for the leader's assignment, and a crash before that fences the live
    member: a departure. KIP-345: to recover from a coordinator's failure the map of instance ids in
    memory "is not enough"; it is stored in the offsets topic and loaded again."""

    changed_subscription_rebalances: bool = False
    """A static rejoin in Stable with other metadata for the selected protocol starts a rebalance.
    In Kafka none does (KAFKA-12759, open): a departure, by KIP-423 more than by KIP-345, which
    covers restarts where only the member id changes. KIP-423 describes the rule that it keeps:
    where "a known member joins with changed metadata", this "should require another rebalance"."""

    join_reason_counts: bool = False
    """A static member that rejoins a Stable group may give a reason (KIP-423, never released; in
    JoinGroup v10): `RESTART` starts no rebalance even if it leads, or forgot what it owned;
    `TOPIC_METADATA_CHANGE` of the leader, and `UPGRADE`, start one. Other rules that start a
    rebalance come first. Dynamic members are not affected."""

    awaits_expected_instances: bool = False
    """A group whose operator names all instance ids that it is to have waits until those that it
    lacks have come and the others have gone, and rebalances once (`group_config`). KIP-345 names
    this pre-registration, as future work; never released."""

    standbys_hold_no_partitions: bool = False
    """Members beyond the target size that an operator gives a group hold no partitions until one is
    removed, whose place one of them takes without a rebalance (`hot_standby`). KIP-345 names this
    as future work; never released."""

    differing: ClassVar[frozenset[str]] = frozenset()
    """The rules whose reads are counted, see `NotedRules`."""
    reads: ClassVar[int] = 0

    def timed_out_write(self, api: str) -> Error:
        """Return the error of a request of an API whose write times out.

        Scala maps the time-out of group records alone, and hands that of a commit on
        (`GroupMetadataManager.storeGroup`, `storeOffsets`); Java maps both
        (`CoordinatorOperationExceptionHelper`, 3.7 on).
        """
        if api == "OFFSET_COMMIT" and self.write_timeout is not Error.COORDINATOR_NOT_AVAILABLE:
            return Error.REQUEST_TIMED_OUT
        return self.write_timeout

    def answers_to(self, error: AppendError, api: str) -> tuple[Error, ...]:
        """Return the errors of a request of an API whose record cannot be appended, by the error.

        A time-out is not among them. Scala has an error of its own for commits that are too large.
        """
        too_large = Error.UNKNOWN_SERVER_ERROR if api != "OFFSET_COMMIT" else self.oversized_commit
        match error:
            case AppendError.NOT_LEADER:
                return (Error.NOT_COORDINATOR,)
            case AppendError.NOT_REPLICATED | AppendError.APPENDED:
                return (Error.COORDINATOR_NOT_AVAILABLE,)
            case AppendError.TOO_LARGE:
                return (too_large,)
            case AppendError.UNNAMED:
                return (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, too_large)
        return ()

    @property
    def failed_writes(self) -> frozenset[Error]:
        """The errors by which a response shows that a record write failed."""
        timed_out = {self.write_timeout}
        if self.write_timeout is not Error.COORDINATOR_NOT_AVAILABLE:
            timed_out.add(Error.REQUEST_TIMED_OUT)
        return frozenset(
            {
                Error.UNKNOWN_SERVER_ERROR,
                Error.COORDINATOR_NOT_AVAILABLE,
                Error.NOT_COORDINATOR,
                self.oversized_commit,
                *timed_out,
            }
        )

    def with_settings(self, settings: Settings) -> "Profile":
        """Return this profile under other broker settings."""
        return replace(self, settings=settings)
