"""A group's members by id, with what is asked of all of them at every join.

How many wait in JoinGroup, who supports which protocol, how long the longest rebalance timeout is:
counted along as members come, change and go, so that no rule has to look at each of them.
"""

from collections import Counter
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

if TYPE_CHECKING:
    from reference_coordinator.classic.state import Member

Key = TypeVar("Key")
Other = TypeVar("Other")

NONE_YET: Final[Mapping[Any, int]] = MappingProxyType({})


class Members(Mapping[str, "Member"]):
    """Members by id, in the order in which they came; a value, like all of a group's state.

    What changes it returns another. That takes a copy of the map, which is done in one go and so is
    cheap next to a look at each member.
    """

    __slots__ = ("_by_id", "_preferences", "_timeouts", "awaiting")

    def __init__(
        self,
        by_id: dict[str, "Member"] | None = None,
        preferences: Mapping[tuple[str, ...], int] = NONE_YET,
        timeouts: Mapping[int, int] = NONE_YET,
        awaiting: int = 0,
    ) -> None:
        """Take over what is known of them; `of` finds it out."""
        self._by_id = by_id or {}
        self._preferences = preferences
        self._timeouts = timeouts
        self.awaiting = awaiting
        """How many wait in JoinGroup."""

    @classmethod
    def of(cls, members: Iterable["Member"]) -> "Members":
        """Count members that were not counted before."""
        by_id = {member.member_id: member for member in members}
        preferences = Counter(map(_preference, by_id.values()))
        timeouts = Counter(member.rebalance_timeout_ms for member in by_id.values())
        return cls(by_id, preferences, timeouts, sum(map(_waits, by_id.values())))

    def put(self, member: "Member") -> "Members":
        """Add a member, or replace the one of the same id in its place."""
        return self._changed(member.member_id, member)

    def without(self, member_id: str) -> "Members":
        """Take a member out, if it is there."""
        return self._changed(member_id, None)

    def swapped(self, old_id: str, member: "Member") -> "Members":
        """Take a member out that is there, and add one of another id."""
        by_id = self._by_id.copy()
        before = by_id.pop(old_id)
        by_id[member.member_id] = member
        return self._counted(by_id, before, member)

    def each(self, change: Callable[["Member"], "Member"]) -> "Members":
        """Change every member, by the same id."""
        return Members.of(map(change, self._by_id.values()))

    def _changed(self, member_id: str, after: "Member | None") -> "Members":
        before = self._by_id.get(member_id)
        if before is after:
            return self
        by_id = self._by_id.copy()
        if after is None:
            del by_id[member_id]
        else:
            by_id[member_id] = after
        return self._counted(by_id, before, after)

    def _counted(
        self, by_id: dict[str, "Member"], before: "Member | None", after: "Member | None"
    ) -> "Members":
        preferences = self._preferences
        if before is None or after is None or before.protocols != after.protocols:
            preferences = _recounted(preferences, before, after, _preference)
        timeouts = _recounted(self._timeouts, before, after, _timeout)
        return Members(by_id, preferences, timeouts, self.awaiting - _waits(before) + _waits(after))

    @property
    def by_id(self) -> Mapping[str, "Member"]:
        """The same as a plain map, for who looks many up."""
        return self._by_id

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout, 0 without members."""
        return max(self._timeouts, default=0)

    @property
    def common_protocols(self) -> frozenset[str]:
        """The protocols that every member supports; none without members."""
        if not self._preferences:
            return frozenset()
        return frozenset.intersection(*map(frozenset, self._preferences))

    @property
    def votes(self) -> Mapping[str, int]:
        """How many members like each common protocol best."""
        if len(self._preferences) == 1:  # all like the same best
            ((names, count),) = self._preferences.items()
            return {names[0]: count}
        common = self.common_protocols
        votes: dict[str, int] = {}
        for names, count in self._preferences.items():
            vote = next(name for name in names if name in common)
            votes[vote] = votes.get(vote, 0) + count
        return votes

    def all_support(self, protocol: str | None) -> bool:
        """Tell whether every member supports a protocol."""
        return all(protocol in names for names in self._preferences)

    def __getitem__(self, member_id: str) -> "Member":
        return self._by_id[member_id]

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._by_id

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Mapping) and self.items() == other.items()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Members({self._by_id!r})"

    @overload
    def get(self, member_id: str, /) -> "Member | None": ...

    @overload
    def get(self, member_id: str, /, default: "Member | Other") -> "Member | Other": ...

    def get(
        self, member_id: str, /, default: "Member | Other | None" = None
    ) -> "Member | Other | None":
        """Return a member; the default if there is none of this id."""
        return self._by_id.get(member_id, default)

    def keys(self) -> KeysView[str]:
        """Return all ids."""
        return self._by_id.keys()

    def values(self) -> ValuesView["Member"]:
        """Return all members."""
        return self._by_id.values()

    def items(self) -> ItemsView[str, "Member"]:
        """Return all members with their ids."""
        return self._by_id.items()


def _waits(member: "Member | None") -> bool:
    return member is not None and member.join is not None


def _preference(member: "Member") -> tuple[str, ...]:
    return tuple([name for name, _ in member.protocols])


def _timeout(member: "Member") -> int:
    return member.rebalance_timeout_ms


def _recounted(
    counts: Mapping[Key, int],
    before: "Member | None",
    after: "Member | None",
    of: Callable[["Member"], Key],
) -> Mapping[Key, int]:
    """Count a member as it is after a change, if it is, and no longer as it was before."""
    gone = None if before is None else of(before)
    come = None if after is None else of(after)
    if gone == come:
        return counts
    recounted = dict(counts)
    if come is not None:
        recounted[come] = recounted.get(come, 0) + 1
    if gone is not None:
        recounted[gone] -= 1
        if not recounted[gone]:
            del recounted[gone]
    return recounted
