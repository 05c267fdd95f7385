"""Sticky: balanced first, then each member keeps as much as possible of what it had (KIP-54).

The cooperative assignor computes the same, then takes out the partitions that another member has to
revoke first: they are assigned in the rebalance that follows the revocation (KIP-429).
"""

from collections.abc import Callable, Mapping, Sequence

from reference_coordinator.assignors.claims import settle
from reference_coordinator.assignors.consumer_protocol import Subscription, TopicPartition
from reference_coordinator.assignors.members import Member, in_hash_order_of_ids
from reference_coordinator.assignors.sticky_constrained import assign_constrained
from reference_coordinator.assignors.sticky_data import Claim, cooperative_claim, sticky_claim
from reference_coordinator.assignors.sticky_general import assign_general

Shares = dict[str, list[TopicPartition]]


def assign(members: Sequence[Member], partitions: Mapping[str, int]) -> Shares:
    """Assign by the partitions that members claim in their user data."""
    return _assign(members, partitions, sticky_claim)[0]


def assign_cooperatively(members: Sequence[Member], partitions: Mapping[str, int]) -> Shares:
    """Assign by what members own, without what changes hands."""
    shares, moving = _assign(members, partitions, cooperative_claim)
    if moving is None:
        moving = _moving(members, shares)
    for partition, taker in moving.items():
        shares[taker].remove(partition)
    return shares


def _assign(
    members: Sequence[Member],
    partitions: Mapping[str, int],
    claim_of: Callable[[Subscription], Claim],
) -> tuple[Shares, dict[TopicPartition, str] | None]:
    """Return the shares, and the partitions that change hands with their takers, if known."""
    walked = in_hash_order_of_ids(members)
    wanted = {topic for member in members for topic in member.subscription.topics}
    existing = {topic: count for topic, count in partitions.items() if topic in wanted and count}
    claims = {member.member_id: claim_of(member.subscription) for member in walked}
    settled = settle(walked, claims, existing)
    if _want_the_same(walked):
        return assign_constrained(settled, existing)
    return assign_general(walked, settled, existing), None


def _want_the_same(members: Sequence[Member]) -> bool:
    """Whether all have the same topics; those before the first that has any do not count."""
    topics: set[str] = set()
    for member in members:
        topics = topics or set(member.subscription.topics)
        if topics != set(member.subscription.topics):
            return False
    return True


def _moving(members: Sequence[Member], shares: Shares) -> dict[TopicPartition, str]:
    """Find what one member gets that another has and does not keep."""
    given_up: set[TopicPartition] = set()
    got: dict[TopicPartition, str] = {}
    for member in members:
        share, owned = set(shares[member.member_id]), set(member.subscription.owned)
        given_up |= owned - share
        got |= dict.fromkeys(share - owned, member.member_id)
    return {partition: taker for partition, taker in got.items() if partition in given_up}
