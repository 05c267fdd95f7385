"""What members of the sticky assignor write into the user data of their subscription.

Its rebalances are eager: a member has given all away when it joins, so it tells here what it had.
Version 1 ends in the generation (KIP-341, from 2.3 on); no version stands in the data.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from struct import pack

from reference_coordinator.assignors.consumer_protocol import (
    ConsumerProtocolError,
    Reader,
    Subscription,
    TopicPartition,
    write_partitions,
)

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Claim:
    """The partitions that a member claims, and their generation; None if it gives none."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int | None = None


def encode(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """Write the data of a sticky member: what it had, and in which generation it got it."""
    return write_partitions(partitions) + pack(">i", generation)


def sticky_claim(subscription: Subscription) -> Claim:
    """Read what a member of the sticky assignor claims; data that cannot be read claims nothing."""
    if not subscription.user_data:
        return Claim()
    reader = Reader(subscription.user_data)
    try:
        partitions = reader.partitions()
    except ConsumerProtocolError:
        return Claim(generation=NO_GENERATION)
    try:
        return Claim(partitions, reader.int32())
    except ConsumerProtocolError:
        return Claim(partitions)


def cooperative_claim(subscription: Subscription) -> Claim:
    """Read the claim of a cooperative member: the owned partitions of its subscription.

    Before version 2 of that its generation stands in the user data.
    """
    owned = subscription.owned
    if subscription.generation >= 0:
        return Claim(owned, subscription.generation)
    if subscription.user_data is None:
        return Claim(owned)
    try:
        return Claim(owned, Reader(subscription.user_data).int32())
    except ConsumerProtocolError:
        return Claim(owned, NO_GENERATION)
