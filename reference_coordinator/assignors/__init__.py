"""Assignors: which member of a group gets which partitions, as Kafka's Java clients compute it.

In go the members, in the order of the leader's JoinGroup response, and the number of partitions of
each topic; out comes the assignment of each member, in the order in which the leader writes it.
It knows nothing of ours but itself, and no clock, randomness or network.

The rules are those of Java clients from 3.7.1 to 4.3. Where other clients differ:

- Range and round robin order members by instance id from 2.4 on (KAFKA-8355, KAFKA-8356), before
  by member id alone. The sticky assignors ignore instance ids, in every release.
- From 3.5 on range and the sticky assignors consider racks, if members have one and not every
  partition is in every rack (KIP-881; KAFKA-14451, KAFKA-14452). Range then assigns topics
  with equal numbers of partitions and the same members alike (KAFKA-14891). Racks are not
  modelled here: the rules are those for members without one.
- The sticky assignors had one algorithm for all groups before 2.5.1 (KAFKA-9987); moved too many
  partitions where all subscriptions are equal (before 3.0: KAFKA-12464); could give a partition
  to two members (before 2.8.1 and 3.0: KAFKA-13081, KAFKA-12984); accepted claims of members that
  had missed a generation (before 3.4.1: KAFKA-14639); misjudged balance (before 3.6: KAFKA-15106);
  and let a member that has too many give up the later ones of its own list, not the ones with the
  highest numbers (before 3.7.1: KAFKA-16277).
- librdkafka compares two members by instance id if both have one, and else by member id, so static
  members do not come before dynamic ones.
"""

from collections.abc import Callable, Mapping, Sequence

from reference_coordinator.assignors import sticky
from reference_coordinator.assignors.consumer_protocol import (
    Assignment,
    ConsumerProtocolError,
    Subscription,
    TopicPartition,
)
from reference_coordinator.assignors.members import Member
from reference_coordinator.assignors.range_and_round_robin import (
    assign_ranges,
    assign_round_robin,
)
from reference_coordinator.assignors.sticky_general import AssignorError

Assign = Callable[[Sequence[Member], Mapping[str, int]], dict[str, list[TopicPartition]]]
"""Members and the number of partitions of each topic that exists, to partitions by member id.

The order of members and partitions is that of a Java leader. Raises AssignorError
where Kafka's assignor fails too.
"""

ASSIGNORS: Mapping[str, Assign] = {
    "range": assign_ranges,
    "roundrobin": assign_round_robin,
    "sticky": sticky.assign,
    "cooperative-sticky": sticky.assign_cooperatively,
}
"""All assignors, by the names under which members propose them."""

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
