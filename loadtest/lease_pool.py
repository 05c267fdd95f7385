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
        self._free = list(range(len(self._identities)))

    def lease(self) -> T | None:
        """Return the first free item, or None if all are leased."""
        return self._identities[heapq.heappop(self._free)] if self._free else None

    def release(self, identity: T) -> None:
        """Take an item back. Raises LoadtestError if it is not leased."""
        for place, known in enumerate(self._identities):
            if known is identity and place not in self._free:
                heapq.heappush(self._free, place)
                return
        raise LoadtestError(
            f"{identity!r} was released, but is not leased; release each lease once"
        )
