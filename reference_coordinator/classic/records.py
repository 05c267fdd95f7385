"""A group's record in `__consumer_offsets`: GroupMetadataValue, as far as the rules need it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, overload

from kafka_protocol.group_record import StoredMember, batch_bytes
from reference_coordinator.classic.state import NO_CONFIG, GroupConfig, Member
from reference_coordinator.frozen import frozen_dataclass, replace_fields


class Source(NamedTuple):
    """What stored members are made of."""

    protocol: str | None
    assignment: Mapping[str, str] | None
    members: Mapping[str, Member]


class StoredMembers(Sequence[Member]):
    """Members as a record holds them, built when first read: few records ever are.

    They keep only the metadata of the selected protocol, and no pending requests. `assignment`
    replaces the members' own assignments, unless it is None. They are in no order: Kafka's is that
    of a hash map.
    """

    __slots__ = ("_stored", "source")

    def __init__(
        self,
        members: Mapping[str, Member],
        protocol: str | None,
        assignment: Mapping[str, str] | None = None,
    ) -> None:
        """Wrap members that do not change."""
        self.source = Source(protocol, assignment, members)
        self._stored: tuple[Member, ...] | None = None

    def _all(self) -> tuple[Member, ...]:
        if self._stored is None:
            self._stored = tuple(map(self._as_stored, self.source.members.values()))
        return self._stored

    def _as_stored(self, member: Member) -> Member:
        protocol, assignment, _ = self.source
        return replace_fields(
            member,
            join=None,
            sync=None,
            is_new=False,
            protocols=((protocol or "", member.metadata(protocol)),),
            assignment=member.assignment
            if assignment is None
            else assignment.get(member.member_id, ""),
        )

    def __len__(self) -> int:
        return len(self.source.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> Member: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Member, ...]: ...

    def __getitem__(self, index: int | slice) -> Member | tuple[Member, ...]:
        return self._all()[index]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, StoredMembers | tuple):
            return NotImplemented
        if isinstance(other, StoredMembers) and self.source == other.source:
            return True  # in two orders of events most members are the same objects
        return len(self) == len(other) and _by_id(self) == _by_id(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())


def _by_id(members: Sequence[Member]) -> Mapping[str, Member]:
    return {member.member_id: member for member in members}


@frozen_dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group as stored: all that a new coordinator knows after loading."""

    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: Sequence[Member]
    config: GroupConfig = NO_CONFIG

    def batch_bytes(self, group_id: str, hosts: Mapping[str, str]) -> int:
        """Return the size of the record's batch, see `kafka_protocol.group_record`.

        `hosts` are those of clients, by client id: the requests do not tell.
        """
        members = (
            StoredMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host or hosts.get(member.client_id, ""),
                member.metadata(self.protocol),
                member.assignment,
            )
            for member in self.members
        )
        return batch_bytes(group_id, self.protocol_type, self.protocol, self.leader, members)
