"""A group's members by id, with counts over all of them that rules need at every join.

The number of pending JoinGroups, the supported protocols and the longest rebalance timeout are
kept up to date with each change, so no rule has to visit every member: this module alone is built
for speed.
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
    """Members by id, in the order of joining; an immutable value, like all of a group's state.

    A change returns another value. It copies the map as a whole, which costs little compared with
    a visit to each member.
    """

    __slots__ = ("_preferences", "_timeouts", "awaiting", "by_id")

    def __init__(
        self,
        by_id: dict[str, "Member"] | None = None,
        preferences: Mapping[tuple[str, ...], int] = NONE_YET,
        timeouts: Mapping[int, int] = NONE_YET,
        awaiting: int = 0,
    ) -> None:
        """Take members with their counts; `of` counts members that come without."""
        self.by_id: Final = by_id or {}
        """The members as a plain map, which is faster for many look-ups."""
        self._preferences = preferences
        self._timeouts = timeouts
        self.awaiting = awaiting
        """How many members have a pending JoinGroup."""

    @classmethod
    def of(cls, members: Iterable["Member"]) -> "Members":
        """Build the value from members alone."""
        by_id = {member.member_id: member for member in members}
        preferences = Counter(map(_preference, by_id.values()))
        timeouts = Counter(member.rebalance_timeout_ms for member in by_id.values())
        return cls(by_id, preferences, timeouts, sum(map(_waits, by_id.values())))

    def put(self, member: "Member") -> "Members":
        """Add a member, or replace the one of the same id, which keeps its position."""
        return self._changed(member.member_id, member)

    def without(self, member_id: str) -> "Members":
        """Remove a member, if it is there."""
        return self._changed(member_id, None)

    def with_new_id(self, old_id: str, member: "Member") -> "Members":
        """Replace a member by one of another id, at the end of the order."""
        by_id = self.by_id.copy()
        before = by_id.pop(old_id)
        by_id[member.member_id] = member
        return self._counted(by_id, before, member)

    def each(self, change: Callable[["Member"], "Member"]) -> "Members":
        """Change every member; ids, protocols and timeouts stay."""
        by_id = {member_id: change(member) for member_id, member in self.by_id.items()}
        awaiting = sum([member.join is not None for member in by_id.values()])
        return Members(by_id, self._preferences, self._timeouts, awaiting)

    def _changed(self, member_id: str, after: "Member | None") -> "Members":
        before = self.by_id.get(member_id)
        if before is after:
            return self
        by_id = self.by_id.copy()
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
        """How many members prefer each of the common protocols."""
        if len(self._preferences) == 1:  # all have the same preferences
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
        return self.by_id[member_id]

    def __contains__(self, member_id: object) -> bool:
        return member_id in self.by_id

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_id)

    def __len__(self) -> int:
        return len(self.by_id)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Mapping) and self.items() == other.items()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Members({self.by_id!r})"

    @overload
    def get(self, member_id: str, /) -> "Member | None": ...

    @overload
    def get(self, member_id: str, /, default: "Member | Other") -> "Member | Other": ...

    def get(
        self, member_id: str, /, default: "Member | Other | None" = None
    ) -> "Member | Other | None":
        """Return a member; the default if there is none of this id."""
        return self.by_id.get(member_id, default)

    def keys(self) -> KeysView[str]:
        """Return all ids."""
        return self.by_id.keys()

    def values(self) -> ValuesView["Member"]:
        """Return all members."""
        return self.by_id.values()

    def items(self) -> ItemsView[str, "Member"]:
        """Return all members with their ids."""
        return self.by_id.items()


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
    """Update counts for one member that was added, changed or removed (None: not there)."""
    old = None if before is None else of(before)
    new = None if after is None else of(after)
    if old == new:
        return counts
    recounted = dict(counts)
    if new is not None:
        recounted[new] = recounted.get(new, 0) + 1
    if old is not None:
        recounted[old] -= 1
        if not recounted[old]:
            del recounted[old]
    return recounted
