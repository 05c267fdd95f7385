"""Which client is leased to whom: the names of all clients of a load, each with one holder at most.

Locust makes a new user object at every spawn. A static member must keep its instance id over these,
or the broker takes it for a new member (KIP-345). So users lease a client and return it. With
several Locust processes the master has the table, and the holders are its workers.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

from loadtest.client_configs import ClientConfigs, ClientKind
from loadtest.errors import LoadtestError


@dataclass(slots=True)
class LeaseTable:
    """Leases each name to one holder at a time; of the free names of a kind, always the first."""

    _kinds: Mapping[str, ClientKind]
    _free: dict[ClientKind, list[tuple[int, str]]] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _holders: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with every name free."""
        self._places = {name: place for place, name in enumerate(self._kinds)}
        for name, kind in self._kinds.items():
            self._free.setdefault(kind, []).append((self._places[name], name))

    @classmethod
    def of(cls, configs: ClientConfigs) -> "LeaseTable":
        """Return the table of all clients of a load."""
        members = {member.name: member.kind for member in configs.members}
        producers: Mapping[str, ClientKind] = dict.fromkeys(
            (producer.name for producer in configs.producers), "producer"
        )
        return cls({**members, **producers})

    def lease(self, kind: ClientKind, holder: str = "") -> str | None:
        """Return the first free name of a kind, or None if all are leased."""
        if not (free := self._free.get(kind)):
            return None
        _, name = heapq.heappop(free)
        self._holders[name] = holder
        return name

    def release(self, name: str, holder: str = "") -> None:
        """Take a name back. Raises LoadtestError if this holder does not have it."""
        if self._holders.get(name) != holder:
            raise LoadtestError(
                f"{name!r} was released, but is not leased to {holder or 'a user'};"
                " release each lease once"
            )
        del self._holders[name]
        heapq.heappush(self._free[self._kinds[name]], (self._places[name], name))

    def holder(self, name: str) -> str | None:
        """Return who has a name; None if it is free or unknown."""
        return self._holders.get(name)

    def held_by(self, holder: str) -> tuple[str, ...]:
        """Return the names that one has, in the order of the load."""
        return tuple(name for name in self._kinds if self._holders.get(name) == holder)

    def __contains__(self, name: object) -> bool:
        return name in self._kinds
