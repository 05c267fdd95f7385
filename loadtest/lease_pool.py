"""Clients that Locust's users lease.

Locust makes a new user object at every spawn. A static member must keep its instance id over these,
or the broker takes it for a new member (KIP-345). So users lease a client and return it.
"""

import heapq
from collections.abc import Iterable
from typing import Generic, TypeVar

from loadtest.errors import LoadtestError

T = TypeVar("T")


class LeasePool(Generic[T]):
    """Leases each item to one user at a time; of the free items, always the first."""

    def __init__(self, identities: Iterable[T]) -> None:
        self._identities = tuple(identities)
        self._places = {id(identity): place for place, identity in enumerate(self._identities)}
        self._free = list(range(len(self._identities)))
        self._leased: set[int] = set()

    def lease(self) -> T | None:
        """Return the first free item, or None if all are leased."""
        if not self._free:
            return None
        place = heapq.heappop(self._free)
        self._leased.add(place)
        return self._identities[place]

    def release(self, identity: T) -> None:
        """Take an item back. Raises LoadtestError if it is not leased."""
        place = self._places.get(id(identity))
        if place not in self._leased:
            raise LoadtestError(
                f"{identity!r} was released, but is not leased; release each lease once"
            )
        self._leased.remove(place)
        heapq.heappush(self._free, place)
