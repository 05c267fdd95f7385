"""What one release's coordinator does, as data: rules that changed, and the settings it runs with.

The logic never asks for a version: it asks for a rule by name. Each field says where it changed;
`releases` has the table of who has which.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from kafka_protocol.errors import Error

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may wait in JoinGroup (a constant in every release since 2.2)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Broker settings that the protocol depends on; times in ms, defaults as in Kafka's code."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2_147_483_647
    commit_timeout_ms: int = 5_000
    """How long a write waits for its replicas, one of group records no less than a commit."""

    _NAMES: ClassVar[dict[str, str]] = {
        "group.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
        "group.min.session.timeout.ms": "min_session_timeout_ms",
        "group.max.session.timeout.ms": "max_session_timeout_ms",
        "group.max.size": "max_size",
        "offsets.commit.timeout.ms": "commit_timeout_ms",
    }

    @classmethod
    def from_properties(cls, properties: dict[str, str | int | bool]) -> Self:
        """Read the settings out of broker properties; other properties are ignored."""
        known = {
            field: int(properties[name]) for name, field in cls._NAMES.items() if name in properties
        }
        return cls(**known)


@dataclass(frozen=True, slots=True)
class Profile:
    """The named rules of one coordinator, and the settings it runs with.

    The defaults are those of the newest Java coordinator. Where a field names no release, the rule
    parts the implementations and not the releases: Java has it from 3.7, its first, on, and Scala
    from 2.4 to 4.0, its last. What came with a version of a request (KIP-394, 559, 800, 814) is no
    field: the version in the request says it.
    """

    name: str
    settings: Settings = Settings()

    # Checks and answers.

    sync_while_loading: Error = Error.COORDINATOR_LOAD_IN_PROGRESS
    """Scala answers REBALANCE_IN_PROGRESS on purpose: old clients know no other error."""

    session_range_comes_first: bool = True
    """JoinGroup's session timeout is looked at before whether this broker serves the group at all;
    Scala looks at the broker first, and so does Java 3.7 (KAFKA-16615, 3.8)."""

    unserved_join_keeps_member_id: bool = False
    """A broker that does not serve the group (loads it, gave it up) repeats the member id of the
    JoinGroup it refuses; Java leaves the field empty."""

    unknown_instance_is_refused: bool = True
    """SyncGroup, Heartbeat, LeaveGroup and OffsetCommit with an instance id that nobody has are
    answered UNKNOWN_MEMBER_ID, as JoinGroup always was. Before 3.0 (which tidied the handling of
    instance ids up, without an issue of its own) the member id was all that counted then."""

    heartbeats_count_while_completing: bool = True
    """In CompletingRebalance a Heartbeat keeps its member alive. Before 2.6.1 (KAFKA-10134) it did
    not, and was answered REBALANCE_IN_PROGRESS."""

    failures_are_answered_in_every_version: bool = True
    """A request over which the coordinator fails is answered UNKNOWN_SERVER_ERROR. Before 2.5.0
    (which tidied up, without an issue of its own) the newest versions of then, JoinGroup v6 and
    SyncGroup v4 among them, had no such answer, and so had none at all."""

    describes_assignments_in_every_state: bool = True
    """DescribeGroups tells the members' assignments in every state; Scala only in Stable."""

    describes_static_to_old_clients: bool = True
    """DescribeGroups below v4, which has no field for instance ids, leaves them out. In 2.5.0, the
    first to look whether a version has a field (KAFKA-10239, 2.5.1), it failed with
    UNSUPPORTED_VERSION as soon as a member had one."""

    deleted_group_is_dead_first: bool = False
    """A group that DeleteGroups removes is Dead until its tombstone is written, and answers
    COORDINATOR_NOT_AVAILABLE as long; in Java it is gone at once."""

    describes_committed_records: bool = True
    """DescribeGroups knows a group once its first record is confirmed, until then it is Dead; and
    one that was deleted until that is confirmed. Scala knows both at once."""

    describes_latest_client: bool = False
    """DescribeGroups tells client id and host of who holds the member's place now. Kafka keeps
    those of its first JoinGroup whoever returns for it (KAFKA-15704, open): a departure. KIP-345
    takes instance ids into DescribeGroups "for better visibility for static members"."""

    # OffsetCommit.

    commit_to_unknown_group_v9: Error = Error.GROUP_ID_NOT_FOUND
    """OffsetCommit v9+ (KIP-848) to a group that does not exist; Scala: ILLEGAL_GENERATION."""

    empty_group_takes_any_commit: bool = True
    """OffsetCommit without a generation is accepted by an Empty group, whatever ids it names. From
    3.0 to 3.2 they were checked, and so were unknown (KAFKA-14201, mended in 3.3.0)."""

    transaction_creates_group: bool = False
    """TxnOffsetCommit creates a group that does not exist before its ids and generation are
    checked; in Java only one without a generation does, and others hear ILLEGAL_GENERATION."""

    transaction_is_checked_as_a_whole: bool = True
    """A TxnOffsetCommit (KIP-447) that names a member, an instance or a generation has to name all
    of them rightly. Before 3.0 each was checked on its own, and only if it was given."""

    oversized_commit: Error = Error.UNKNOWN_SERVER_ERROR
    """What OffsetCommit is answered with if its record is too large for the log; Scala:
    INVALID_COMMIT_OFFSET_SIZE."""

    # What is stored.

    stores_new_group: bool = True
    """The first join of a new group writes an empty record, generation 0; Scala writes nothing."""

    write_timeout: Error = Error.COORDINATOR_NOT_AVAILABLE
    """What a group record that its replicas did not confirm in time is answered with; Scala:
    REBALANCE_IN_PROGRESS, and REQUEST_TIMED_OUT for commits."""

    answers_wait_for_writes: bool = True
    """Whatever the answer, it is sent once everything written before it is confirmed; where that
    fails, its error is the answer. In Scala that goes for a request's own records alone."""

    unload_answers_waiting: bool = True
    """A broker that gives a group up answers the requests that wait with NOT_COORDINATOR. Java 3.7
    leaves them without an answer (KAFKA-16148, 3.8)."""

    # `group.max.size`.

    last_to_rejoin_are_refused: bool = True
    """Of a group that is too large, the first to join again stay. Before 2.6.0 (KAFKA-9885) the
    first were refused, until it was no longer too large; pending members always got in."""

    refused_instance_is_forgotten: bool = False
    """A JoinGroup refused for want of room takes the mapping of its instance id away, whoever has
    it: the member stays, as one whose instance nobody knows. And it takes no other away: a refused
    member whose JoinGroup names no instance leaves behind that of a member that is no more, which
    requests then fail over. So it was before 2.8.0 (which tidied up, without an issue of its own).
    """

    refused_pending_stays: bool = False
    """A pending member refused for want of room stays pending, and is waited for, until its timer
    removes it. So it was before 3.0 (without an issue of its own)."""

    removed_pending_timer_runs_on: bool = False
    """The timer of a pending member that left or was refused runs on in Scala, and when it runs out
    the coordinator says once more that it removed the member."""

    refused_join_may_end_join_phase: bool = False
    """Scala ends every JoinGroup with a look at the join phase; so a pending member that
    `group.max.size` refuses is not waited for any longer. Java looks after accepted joins alone."""

    instance_keeps_its_place: bool = False
    """A static member that returns to a full group takes the place it has. Kafka counts it as one
    more and refuses it: a departure. KIP-345: when a known member, that is a known instance id,
    joins again, "broker will return the cached assignment back to the member"."""

    # The initial delay.

    new_members_extend_every_initial_delay: bool = True
    """Who joins during the initial delay extends it, whenever the group was Empty; in Scala only
    before the first generation."""

    expiry_ends_initial_delay: bool = True
    """A member or pending member that expires during the initial delay lets the join phase end at
    once if all others have joined; in Scala the delay always runs out."""

    # Sessions and the pending-sync timer.

    sync_in_stable_restarts_session: bool = False
    """A SyncGroup answered in Stable is a sign of life in Scala, not in Java."""

    replaced_new_member_stays_new: bool = False
    """Whether a static member that returns before its first join phase has ended still counts as
    new. In Scala it does, so its session, started by its return, may end while it waits; in Java it
    lives as long as it waits, and so it did in Scala 2.4.0 (KAFKA-9232, 2.4.1)."""

    overtaken_expiry_counts: bool = False
    """A session that has run out ends its member even if a sign of life comes in between. In Scala
    a timer that has run out waits for the group's lock, and then looks whether its member waits for
    an answer, no more, or whether its member was pending when it was started; in Java one that was
    started anew meanwhile does nothing."""

    new_members_have_sessions: bool = True
    """The session of a new member begins when its first join phase ends. In 2.4.1 (KAFKA-9232) only
    its first sign of life after that starts one, so that who falls silent at once stays for good;
    KAFKA-9752 (2.5.0) mended it."""

    joins_update_timeouts: bool = True
    """The session and rebalance timeouts of a member are those of its latest JoinGroup. Before
    3.3.2 (KAFKA-14009) they were those of its first, even after it was replaced."""

    pending_sync_timer: bool = True
    """Who does not send SyncGroup within the rebalance timeout after the join phase is removed
    (KAFKA-12890, 2.8.1). Without, a group may be stuck in CompletingRebalance."""

    stale_sync_id_stops_timer: bool = False
    """The pending-sync timer fails at a member that it waited for and that was replaced meanwhile:
    an exception that 2.8.1 and 2.8.2 hide. Who stands before it in Scala's order is gone without a
    rebalance, and nobody else. From 3.0 on the group rebalances."""

    replaced_id_stays_pending_sync: bool = True
    """The id that a return in Stable replaced is waited for in vain by the pending-sync timer, so
    the group rebalances: a departure. KIP-345 knows four reasons for a rebalance (a new member, the
    leader's rejoin, a session's end, LeaveGroup), and this is none of them."""

    sync_timer_spares_statics: bool = False
    """The pending-sync timer removes dynamic members alone. In Kafka it removes static ones too,
    such as were absent from the join phase: a departure. KIP-345: "the member will only be removed
    due to session timeout"."""

    sessions_wait_for_clients: bool = False
    """The sessions of a group that a broker loads as it starts begin once it takes requests. In
    Kafka they begin with the load, which may be many seconds earlier (seen on 3.9.1), so that
    members are removed that could not say that they live: a departure. KIP-345: "the member will
    only be removed due to session timeout", and that puts "state persistence" over "liveness"."""

    # LeaveGroup.

    leave_is_one_step: bool = True
    """All members of a LeaveGroup are removed, then the group rebalances once, even for a pending
    member that had no part in it. Scala removes them one by one, each with a step of its own, so
    the group may change its state in between; a pending member that leaves makes none rebalance."""

    pending_may_name_an_instance: bool = True
    """A pending member leaves whatever instance id it names with its own. Before 3.0 it was fenced
    by an instance that somebody has, and by any other the whole request failed."""

    # The return of a static member.

    return_makes_completing_group_rebalance: bool = True
    """A return in CompletingRebalance starts a new rebalance. Before 2.5.0 (KAFKA-9801) it was
    answered with the generation of the old id, to which the leader then gave the assignment."""

    return_may_change_protocol: bool = True
    """A return in Stable that makes the group select another protocol starts a rebalance. Before
    2.6.1 (KAFKA-10284) none ever did."""

    return_is_stored: bool = True
    """The id that a return in Stable gives is in the group's record before it is answered. Before
    2.6.1 (KAFKA-10284) the next coordinator knew the old id."""

    store_answers_latest_return: bool = False
    """Where an instance returns again before the write of its first return is done, that write
    answers the second JoinGroup, with the first one's member id, by then replaced. Scala keeps one
    member object for all returns; Java makes a new one for each (since returns are stored)."""

    failed_replacement_restores_protocols: bool = True
    """If the write fails, the member gets its old protocols back with its old id. Scala means to,
    but notes them after they were overwritten (since 2.6.1)."""

    every_return_is_stored: bool = False
    """Outside Stable, too, the new id is written at once, into the record of the last generation
    that was stored. Kafka waits for the leader's assignment, and a crash before that leaves the
    live member fenced: a departure. KIP-345: to recover from a coordinator's failure the map of
    instance ids in memory "is not enough"; it is stored in the offsets topic and loaded again."""

    changed_subscription_rebalances: bool = False
    """A return in Stable with other metadata for the selected protocol starts a rebalance. In Kafka
    none does (KAFKA-12759, open): a departure, by KIP-423 more than by KIP-345, which thinks of
    restarts where nothing but the id changes. KIP-423 says what that left as it was: where "a known
    member joins with changed metadata", this "should require another rebalance"."""

    join_reason_counts: bool = False
    """A static member that rejoins a Stable group may say why (KIP-423, never released): `RESTART`
    starts no rebalance even if it leads, `TOPIC_METADATA_CHANGE` of the leader and `UPGRADE` do
    start one. What makes the group rebalance or not by other rules goes before, and dynamic members
    are as ever."""

    def timed_out_write(self, api: str) -> Error:
        """Return what a request of an API is answered with when its write times out.

        Scala maps the time-out of group records alone, and hands that of a commit on
        (`GroupMetadataManager.storeGroup`, `storeOffsets`); Java maps both
        (`CoordinatorOperationExceptionHelper`, 3.7 on).
        """
        if api == "OFFSET_COMMIT" and self.write_timeout is not Error.COORDINATOR_NOT_AVAILABLE:
            return Error.REQUEST_TIMED_OUT
        return self.write_timeout

    @property
    def failed_writes(self) -> frozenset[Error]:
        """The errors that tell of a record write that failed, as clients are told of it."""
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
