"""Which JoinGroup of a member that the group knows starts a rebalance, and for which reason.

Three kinds of grounds count: what the member offers (protocols, subscription), what it leads, and
the reason that its JoinGroup gives (KIP-423, never released).
"""

from base64 import b64decode

from kafka_protocol.bodies import LENGTH
from kafka_protocol.consumer_protocol import ConsumerProtocolError, Subscription
from kafka_protocol.join_reason import JoinReason
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
        reason = heard(context, event)
        if reason is JoinReason.RESTART and wants_the_same(event, member):
            return None
        if leads:
            return Reason.LEADER_REJOIN
        if unchanged and demands_rebalance(reason, leads=False):
            return Reason.JOIN_REASON
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
    if demands_rebalance(heard(context, event), leads=group.leader == new_id):
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


def wants_the_same(event: JoinReceived, member: Member) -> bool:
    """Tell whether a JoinGroup names the protocols and topics of before (see `same_subscription`).

    A process that restarts forgets the rest of its metadata: what it owned, and when.
    """
    pairs = zip(member.protocols, event.protocols, strict=False)
    return len(member.protocols) == len(event.protocols) and all(
        before[0] == now[0] and same_subscription(before[1], now[1]) for before, now in pairs
    )


def heard(context: Context, event: JoinReceived) -> JoinReason:
    """Return the reason by which a JoinGroup is acted on; of dynamic members none is (KIP-423)."""
    counts = context.profile.join_reason_counts and event.group_instance_id is not None
    return event.join_reason if counts else JoinReason.UNKNOWN


def demands_rebalance(reason: JoinReason, *, leads: bool) -> bool:
    """Tell whether a rejoin to a Stable group starts a rebalance for its reason (KIP-423)."""
    return reason is JoinReason.UPGRADE or (reason is JoinReason.TOPIC_METADATA_CHANGE and leads)
