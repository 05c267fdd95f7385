"""Coverage of a campaign: rules of the profile, transitions, and error codes.

A rule is covered if responses of the broker contradict a profile with only this rule changed.
Transitions and error codes that need a broker that loads or unloads a group, or fails, are not
expected.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import fields, replace

from kafka_protocol.errors import Error
from kafka_protocol.releases import number
from kafka_protocol.versions import (
    FIRST_COMMIT_WITH_GROUP_ERRORS,
    FIRST_JOIN_WITH_JOIN_REASON,
    FIRST_WITH_ERROR,
)
from loadtest.wire import Versions
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROFILES

OUT_OF_REACH: Mapping[str, str] = {
    "sync_while_loading": "needs a broker that loads the group",
    "session_range_comes_first": "needs a broker that does not serve the group",
    "unserved_join_keeps_member_id": "needs a broker that does not serve the group",
    "unload_answers_waiting": "needs a broker that gives the group up",
    "write_timeout": "needs replicas that do not confirm",
    "transaction_creates_group": "TxnOffsetCommit is not sent",
    "transaction_to_unknown_group_v6": "TxnOffsetCommit is not sent",
    "transaction_is_checked_as_a_whole": "TxnOffsetCommit is not sent",
    "every_return_is_stored": "shows only after a failover",
    "stores_new_group": "shows only after a failover",
    "return_is_stored": "shows only after a failover",
    "sessions_wait_for_clients": "needs a broker that is started",
    "removed_pending_timer_runs_on": "shows in the coordinator's log alone",
}
"""Rules that a single healthy broker does not show."""

ALLOWS_MORE: Mapping[str, str] = {
    "answers_wait_for_writes=true": "what was written before may have been confirmed at once",
    "deleted_group_is_dead_first=true": "the tombstone may have been written at once",
    "describes_committed_records=true": "the first record may have been confirmed at once",
    "failures_are_answered_in_every_version=true": "what was not answered may have been lost",
    "overtaken_expiry_counts=true": "no sign of life need have come in between",
    "store_answers_latest_return=false": "where one broker writes, no return comes in between",
    "oversized_commit=INVALID_COMMIT_OFFSET_SIZE": "where answers wait for the writes before them, "
    "those of commits may be any record's failure",
}
"""Other values of rules that no response contradicts, and why."""

FIRST_EXACT = number("4.1.0")
"""From this release on Java's coordinator knows how large a batch is before the log does (tried on
4.1.1 and 4.3.0; 3.9.1 forgets the batch's header)."""


def moot(profile: Profile, versions: Versions, kafka: str) -> Mapping[str, str]:
    """List the rules that have no effect with this release, its API versions or other rules."""
    found: dict[str, str] = {}
    if number(kafka) >= FIRST_EXACT:
        found["answers_wait_for_writes"] = "what is too large for the log is a batch of its own"
    if not profile.return_is_stored:
        kept = ("failed_replacement_restores_protocols", "store_answers_latest_return")
        found |= dict.fromkeys(kept, "no return is stored")
    if not profile.pending_sync_timer:
        timed = ("replaced_id_stays_pending_sync", "stale_sync_id_stops_timer")
        found |= dict.fromkeys((*timed, "sync_timer_spares_statics"), "there is no such timer")
    if not profile.last_to_rejoin_are_refused:
        found["refused_pending_stays"] = "no pending member is refused"
    if versions["OFFSET_COMMIT"][1] < FIRST_COMMIT_WITH_GROUP_ERRORS:
        found["commit_to_unknown_group_v9"] = "OffsetCommit v9 is not spoken"
    if versions["JOIN_GROUP"][1] < FIRST_JOIN_WITH_JOIN_REASON:
        found["join_reason_counts"] = "JoinGroup v10 is not spoken"
    return found


def flips(
    profile: Profile, but: Container[str] = OUT_OF_REACH
) -> Iterator[tuple[str, str, Profile]]:
    """Yield each rule with every other value that some profile has: (rule, value, such a profile).

    The profile differs in this rule alone. Rules that do not show can be left out.
    """
    for field in fields(Profile):
        if field.name in ("name", "settings") or field.name in but:
            continue
        own = getattr(profile, field.name)
        others = {getattr(other, field.name) for other in PROFILES.values()} - {own}
        if isinstance(own, bool):
            others = {not own}
        for value in sorted(others):
            text = value.name if isinstance(value, Error) else str(value).lower()
            if f"{field.name}={text}" not in ALLOWS_MORE:
                yield field.name, text, replace(profile, **{field.name: value})


BETWEEN = ("PreparingRebalance -> CompletingRebalance", "PreparingRebalance -> Empty")
COMMON = (Reason.NEW_MEMBER, Reason.LEAVE, Reason.SESSION_EXPIRED, Reason.MEMBER_METADATA)
IDS = (Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID)
ERRORS: Mapping[str, tuple[Error, ...]] = {
    "JOIN_GROUP": (
        *IDS,
        Error.MEMBER_ID_REQUIRED,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_SESSION_TIMEOUT,
    ),
    "SYNC_GROUP": (*IDS, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS),
    "HEARTBEAT": (*IDS, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS),
    "LEAVE_GROUP": IDS,
    "OFFSET_COMMIT": (*IDS, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS),
    "DESCRIBE_GROUPS": (Error.NONE,),
    "DELETE_GROUPS": (Error.NONE, Error.NON_EMPTY_GROUP, Error.GROUP_ID_NOT_FOUND),
}
"""The error codes that every coordinator returns, by API."""


def expected_moves(profile: Profile, *, bulky: bool) -> Iterator[str]:
    """List the transitions; with `bulky`, records may be too large for the log."""
    yield from BETWEEN
    yield f"Empty -> PreparingRebalance ({Reason.NEW_MEMBER})"
    yield "CompletingRebalance -> Stable"
    stable, completing = {*COMMON, Reason.LEADER_REJOIN}, set(COMMON)
    if profile.pending_sync_timer:
        stable.add(Reason.PENDING_SYNC)
        completing.add(Reason.PENDING_SYNC)
    if profile.return_may_change_protocol:
        stable.add(Reason.PROTOCOL_CHANGE)
    if profile.return_makes_completing_group_rebalance:
        completing.add(Reason.STATIC_REPLACED)
    if bulky:
        completing.add(Reason.ASSIGNMENT_ERROR)
    yield from (f"Stable -> PreparingRebalance ({reason})" for reason in stable)
    yield from (f"CompletingRebalance -> PreparingRebalance ({reason})" for reason in completing)


def expected_answers(profile: Profile, versions: Versions, *, bulky: bool) -> Iterator[str]:
    """List the error codes, each as `API ERROR`."""
    for api, errors in ERRORS.items():
        yield from (f"{api} {error.name}" for error in errors)
    newer = {api for api, first in FIRST_WITH_ERROR.items() if versions[api][1] >= first}
    if "SYNC_GROUP" in newer:
        yield f"SYNC_GROUP {Error.INCONSISTENT_GROUP_PROTOCOL.name}"
    if "OFFSET_COMMIT" in newer:
        yield f"OFFSET_COMMIT {profile.commit_to_unknown_group_v9.name}"
    if "DESCRIBE_GROUPS" in newer:
        yield f"DESCRIBE_GROUPS {Error.GROUP_ID_NOT_FOUND.name}"
    if not profile.describes_static_to_old_clients:
        yield f"DESCRIBE_GROUPS {Error.UNSUPPORTED_VERSION.name}"
    if bulky:
        yield f"OFFSET_COMMIT {profile.oversized_commit.name}"
        yield f"SYNC_GROUP {Error.UNKNOWN_SERVER_ERROR.name}"
    if bulky and profile.return_is_stored:
        yield f"JOIN_GROUP {Error.UNKNOWN_SERVER_ERROR.name}"
