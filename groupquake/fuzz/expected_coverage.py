"""The transitions and error codes that a campaign should reach, under the rules of a profile.

Those that need a broker that loads or unloads a group, or fails, are not included.
"""

from collections.abc import Iterator, Mapping

from kafka_protocol.errors import Error
from kafka_protocol.versions import FIRST_WITH_ERROR
from loadtest.wire import Versions
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.profiles import Profile

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


def moves(profile: Profile, *, bulky: bool) -> Iterator[str]:
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


def answers(profile: Profile, versions: Versions, *, bulky: bool) -> Iterator[str]:
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
