"""Which JoinGroup of a member that the group knows starts a rebalance, and for which reason.

Three kinds of grounds count: what the member offers (protocols, subscription), what it leads, and
the reason that its JoinGroup gives (KIP-423, never released).
"""

from base64 import b64decode
from enum import StrEnum, auto

from kafka_protocol.bodies import LENGTH
from kafka_protocol.consumer_protocol import ConsumerProtocolError, Subscription
from kafka_protocol.versions import FIRST_JOIN_WITH_REASON
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import JoinReceived
from reference_coordinator.classic.rebalance import allowed_protocols
from reference_coordinator.classic.state import STABLE, Member


def known_member_reason(context: Context, event: JoinReceived, member: Member) -> Reason | None:
    """Return why a JoinGroup with a member id starts a rebalance in Stable or CompletingRebalance.

    None: the member gets the current generation again.
    """
    leads = context.group.leader == member.member_id
    unchanged = member.protocols == event.protocols
    if context.group.state is STABLE:
        rebalances = leads
        if unchanged:
            rebalances = join_reason_rebalances(context, event, leads=leads, otherwise=leads)
        if rebalances:
            return Reason.LEADER_REJOIN if leads else Reason.JOIN_REASON
    return None if unchanged else Reason.MEMBER_METADATA


def static_rejoin_reason(
    context: Context, event: JoinReceived, old: Member, new_id: str
) -> Reason | None:
    """Return why a static rejoin to a Stable group starts a rebalance; None where it does not."""
    group, profile = context.group, context.profile
    if profile.return_may_change_protocol and not protocol_stays(context, event):
        return Reason.PROTOCOL_CHANGE
    member = group.members[new_id]
    same = same_subscription(member.metadata(group.protocol), old.metadata(group.protocol))
    if not same and profile.changed_subscription_rebalances:
        return Reason.MEMBER_METADATA
    if join_reason_rebalances(context, event, leads=group.leader == new_id):
        return Reason.JOIN_REASON
    return None


def protocol_stays(context: Context, event: JoinReceived) -> bool:
    """Tell whether the group selects its protocol again; `choices.protocol` decides a tied vote."""
    allowed = allowed_protocols(context.group)
    picked = event.choices.protocol
    return context.group.protocol in allowed and (
        len(allowed) == 1 or picked in ("", context.group.protocol)
    )


def same_subscription(one: str, other: str) -> bool:
    """Tell whether two consumers' metadata (base64) name the same topics.

    Metadata that cannot be parsed must be equal; two of which the log gives only the lengths count
    as the same. Owned partitions and generation, which a restarted consumer no longer sends
    (KIP-429, KAFKA-13715), do not count.
    """
    if one == other or (LENGTH.fullmatch(one) and LENGTH.fullmatch(other)):
        return True
    try:
        return _topics(one) == _topics(other)
    except (ConsumerProtocolError, ValueError):
        return False


def _topics(metadata: str) -> frozenset[str]:
    return frozenset(Subscription.decode(b64decode(metadata, validate=True)).topics)


class JoinReason(StrEnum):
    """The reasons of KIP-423, by their exact names.

    They travel in the free text of JoinGroup v8+ (KIP-800); any other text counts as UNKNOWN.
    """

    RESTART = auto()
    TOPIC_METADATA_CHANGE = auto()
    UPGRADE = auto()
    UNKNOWN = auto()


def join_reason(event: JoinReceived) -> JoinReason:
    """Read the reason out of a JoinGroup."""
    given = event.reason if event.api_version >= FIRST_JOIN_WITH_REASON else None
    return JoinReason.__members__.get(given or "", JoinReason.UNKNOWN)


def join_reason_rebalances(
    context: Context, event: JoinReceived, *, leads: bool, otherwise: bool = False
) -> bool:
    """Tell whether an unchanged member's rejoin to a Stable group starts a rebalance (KIP-423).

    `otherwise` is the result where the member gives no reason, and under profiles without the rule.
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
