"""Sticky where subscriptions differ: Kafka's `GeneralAssignmentBuilder` (KIP-54).

Members keep what they had and still subscribe to, free partitions are assigned, and then partitions
move one by one until no member could take one from another that has two more.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from reference_coordinator.assignors.claims import Settled
from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.jvm_order import units
from reference_coordinator.assignors.members import Member, partitions_of
from reference_coordinator.assignors.partition_movements import Movements

Shares = dict[str, list[TopicPartition]]


class AssignorError(Exception):
    """There is no assignment; `str()` says why."""


def assign_general(
    members: Sequence[Member], settled: Settled, partitions: Mapping[str, int]
) -> Shares:
    """Assign the existing partitions of the topics that each member subscribes to."""
    return _Balancing(members, settled, partitions).result()


class _Balancing:
    """An assignment under way."""

    def __init__(
        self, members: Sequence[Member], settled: Settled, partitions: Mapping[str, int]
    ) -> None:
        """Start from what members had and still want."""
        self.takers = {
            topic: [m.member_id for m in members if topic in m.subscription.topics]
            for topic in partitions
        }
        self.wants = {
            member.member_id: [t for t in member.subscription.topics if t in partitions]
            for member in members
        }
        self.sizes = partitions
        self.room = {
            member_id: sum(partitions[topic] for topic in topics)
            for member_id, topics in self.wants.items()
        }
        self.former = settled.former
        self.shares: Shares = {
            member_id: [had for had in owned if had.topic in self.wants[member_id]]
            for member_id, owned in settled.owned.items()
        }
        self.drops = any(
            len(owned) > len(self.shares[member_id]) for member_id, owned in settled.owned.items()
        )
        self.holders = {had: member_id for member_id, share in self.shares.items() for had in share}
        self.line = sorted(map(self._place, self.shares))
        self.movements = Movements()

    def _place(self, member_id: str) -> tuple[int, bytes, str]:
        """Return the sort key of a member: the one with the fewest partitions comes first."""
        return len(self.shares[member_id]), units(member_id), member_id

    def result(self) -> Shares:
        """Hand out what is free, then even out; if that gained nothing, it was for nothing.

        In some ten thousand random groups it always gained something.
        """
        begins = not any(self.shares.values())
        topics = sorted(self.takers, key=lambda topic: (len(self.takers[topic]), units(topic)))
        partitions = partitions_of(topics, self.sizes)
        free = [partition for partition in partitions if partition not in self.holders]
        for partition in free:
            self._hand_out(partition)
        settled = {member_id: self.shares[member_id] for member_id in self._settled()}
        for member_id in settled:
            self._leave_line(member_id)
            del self.shares[member_id]
        before = {member_id: list(share) for member_id, share in self.shares.items()}
        if not self.drops:
            self._even_out(self._movable(free))
        moved = self._even_out(self._movable(partitions))
        if moved and not begins and _unevenness(self.shares) >= _unevenness(before):
            return before | settled
        return self.shares | settled

    def _hand_out(self, partition: TopicPartition) -> None:
        """Give a partition to the first in line that wants it, if anybody does."""
        taker = self._first_taker(partition)
        if taker is not None:
            self._leave_line(taker)
            self.shares[taker].append(partition)
            self.holders[partition] = taker
            self._join_line(taker)

    def _first_taker(self, partition: TopicPartition) -> str | None:
        wanting = (member for *_, member in self.line if partition.topic in self.wants[member])
        return next(wanting, None)

    def _leave_line(self, member_id: str) -> None:
        del self.line[bisect_left(self.line, self._place(member_id))]

    def _join_line(self, member_id: str) -> None:
        insort(self.line, self._place(member_id))

    def _settled(self) -> list[str]:
        """List the members that have all they can have, and nothing that others could have."""
        return [
            member_id
            for member_id, share in self.shares.items()
            if len(share) == self.room[member_id] and not self._movable(share)
        ]

    def _movable(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Pick those that more than one member wants."""
        return [movable for movable in partitions if len(self.takers[movable.topic]) > 1]

    def _even_out(self, partitions: Sequence[TopicPartition]) -> bool:
        """Go over partitions until none of them moves any more; return whether any did."""
        moved, moving = False, True
        while moving:
            moving = False
            for partition in partitions:
                if self._is_even():
                    break
                moving |= self._move(partition)
            moved |= moving
        return moved

    def _move(self, partition: TopicPartition) -> bool:
        """Move a partition to its former owner or to the first in line, if it has two less.

        Kafka does not ask whether the former owner still wants the topic, or takes part at all.
        """
        holder = self.holders[partition]
        former = self.former.get(partition)
        if former is not None and former not in self.shares:
            raise AssignorError(
                f"{former}, which had {partition.topic}-{partition.partition}, is settled;"
                " Kafka's assignor fails here with a NullPointerException"
            )
        taker = self._first_taker(partition)
        if former is not None and self._has_two_more(holder, former):
            taker = former
        elif taker is None or not self._has_two_more(holder, taker):
            return False
        self._reassign(self.movements.best(partition, holder, taker), taker)
        return True

    def _has_two_more(self, one: str, other: str) -> bool:
        return len(self.shares[one]) > len(self.shares[other]) + 1

    def _reassign(self, partition: TopicPartition, taker: str) -> None:
        holder = self.holders[partition]
        self._leave_line(holder)
        self._leave_line(taker)
        self.movements.note(partition, holder, taker)
        self.shares[holder].remove(partition)
        self.shares[taker].append(partition)
        self.holders[partition] = taker
        self._join_line(holder)
        self._join_line(taker)

    def _is_even(self) -> bool:
        """Whether no member could take a partition from one that has two more."""
        if self.line[0][0] >= self.line[-1][0] - 1:
            return True
        most: dict[str, int] = {}
        for share in self.shares.values():
            for topic in {partition.topic for partition in share}:
                most[topic] = max(len(share), most.get(topic, 0))
        return not any(
            most.get(topic, 0) > len(share) + 1
            for member_id, share in self.shares.items()
            if len(share) != self.room[member_id]
            for topic in self.wants[member_id]
        )


def _unevenness(shares: Shares) -> int:
    """By how much the shares of all pairs of members differ."""
    sizes = map(len, shares.values())
    return sum(abs(one - other) for one, other in combinations(sizes, 2))
