"""Why a member joins, as it says (KIP-423), and what a coordinator that listens makes of it.

The proposal's enum was never released. It travels in the free text of JoinGroup v8+ (KIP-800); any
other text, and none, means that the reason is unknown.
"""

from enum import StrEnum, auto

from kafka_protocol.versions import FIRST_JOIN_WITH_REASON
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.events import JoinReceived


class JoinReason(StrEnum):
    """The proposal's reasons, by their exact names."""

    RESTART = auto()
    TOPIC_METADATA_CHANGE = auto()
    UPGRADE = auto()
    UNKNOWN = auto()


def join_reason(event: JoinReceived) -> JoinReason:
    """Read the reason out of a JoinGroup."""
    given = event.reason if event.api_version >= FIRST_JOIN_WITH_REASON else None
    return JoinReason.__members__.get(given or "", JoinReason.UNKNOWN)


def wants_rebalance(
    context: Context, event: JoinReceived, *, leads: bool, otherwise: bool = False
) -> bool:
    """Tell whether a member that comes back unchanged to a Stable group makes it rebalance.

    `otherwise` is what holds for a member that gives no reason, or is not heard.
    """
    if not context.profile.join_reason_counts or event.group_instance_id is None:
        return otherwise
    match join_reason(event):
        case JoinReason.RESTART:
            return False
        case JoinReason.UPGRADE:
            return True
        case JoinReason.TOPIC_METADATA_CHANGE if leads:
            return True
    return otherwise
