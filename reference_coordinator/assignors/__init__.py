"""Assignors: which member of a group gets which partitions, as Kafka's Java clients compute it.

In go the members as a leader is told of them, in the order of its JoinGroup answer, and how many
partitions each topic has; out comes each member's share, in the order the leader writes it.
It knows nothing of ours besides itself, and no clock, randomness or network.

The rules are those of Java clients from 3.7.1 to 4.3. What other clients do otherwise:

- Range and round robin know instance ids from 2.4 on (KAFKA-8355, KAFKA-8356); before, members
  are laid out by member id alone. The sticky assignors know none, in any release.
- From 3.5 on range and the sticky assignors see to racks, if members have one and not every
  partition is in every rack (KIP-881; KAFKA-14451, KAFKA-14452). Range then hands out topics of
  as many partitions and the same members alike (KAFKA-14891). Racks are not modelled here: the
  rules are those for members without one.
- The sticky assignors had one way for all groups before 2.5.1 (KAFKA-9987); moved more partitions
  than need be where all members want the same (before 3.0: KAFKA-12464); could give a partition
  to two members (before 2.8.1 and 3.0: KAFKA-13081, KAFKA-12984); believed members that had missed
  a generation (before 3.4.1: KAFKA-14639); misjudged what is even (before 3.6: KAFKA-15106); and
  let a member that has too many give up the later ones of its own list, not the ones with the
  highest numbers (before 3.7.1: KAFKA-16277).
- librdkafka compares two members by instance id if both have one, and else by member id, so static
  members are not ahead of dynamic ones: `members.in_order_of_librdkafka`.
"""

from collections.abc import Callable, Mapping, Sequence

from reference_coordinator.assignors import range_, round_robin, sticky
from reference_coordinator.assignors.consumer_protocol import (
    Assignment,
    ConsumerProtocolError,
    Subscription,
    TopicPartition,
)
from reference_coordinator.assignors.members import Member
from reference_coordinator.assignors.unlike import AssignorError

Assign = Callable[[Sequence[Member], Mapping[str, int]], dict[str, list[TopicPartition]]]
"""Members and the number of partitions of each topic that exists, to partitions by member id.

The order of members and partitions is the one that a Java leader comes to. Raises AssignorError
where Kafka's assignor fails too.
"""

ASSIGNORS: Mapping[str, Assign] = {
    "range": range_.assign,
    "roundrobin": round_robin.assign,
    "sticky": sticky.assign,
    "cooperative-sticky": sticky.assign_cooperatively,
}
"""By the names under which members propose them."""

__all__ = [
    "ASSIGNORS",
    "Assign",
    "Assignment",
    "AssignorError",
    "ConsumerProtocolError",
    "Member",
    "Subscription",
    "TopicPartition",
]
