"""Identities that outlive the users who carry them.

Locust makes a new user for every spawn. A static member that came back under another instance id
would be a new member to the broker (KIP-345), so users lease an identity and give it back.
"""

import heapq
from collections.abc import Iterable
from typing import Generic, TypeVar

from loadtest.errors import LoadtestError

T = TypeVar("T")


class LeasePool(Generic[T]):
    """Hands each identity to one holder at a time; of the free ones, always the first."""

    def __init__(self, identities: Iterable[T]) -> None:
        self._identities = tuple(identities)
        self._free = list(range(len(self._identities)))

    def lease(self) -> T | None:
        """Return the first free identity, or None while all are out."""
        return self._identities[heapq.heappop(self._free)] if self._free else None

    def release(self, identity: T) -> None:
        """Take an identity back. Raises LoadtestError if it is not out."""
        for place, known in enumerate(self._identities):
            if known is identity and place not in self._free:
                heapq.heappush(self._free, place)
                return
        raise LoadtestError(f"{identity!r} was given back, but is not out; release a lease once")
