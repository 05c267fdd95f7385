"""Which client is leased to whom: all clients of a load, each with one holder at most.

Locust makes a new user object at every spawn. A static member must keep its instance id over these,
or the broker takes it for a new member (KIP-345). So users lease a client and return it. With
several Locust processes the master has the table, and the holders are its workers.
"""

import heapq

from loadtest.configs import ClientConfig, ClientConfigs, ClientKind
from loadtest.errors import LoadtestError


class LeaseTable:
    """Leases each client to one holder at a time; of the free ones of a kind, always the first."""

    def __init__(self, configs: ClientConfigs) -> None:
        self._clients = tuple(configs.by_name().values())
        self._places = {client.name: place for place, client in enumerate(self._clients)}
        self._holders: dict[str, str] = {}
        self._free: dict[ClientKind, list[int]] = {"static": [], "dynamic": [], "producer": []}
        for place, client in enumerate(self._clients):
            self._free[client.kind].append(place)

    def lease(self, kind: ClientKind, holder: str = "") -> ClientConfig | None:
        """Return the first free client of a kind, or None if all are leased."""
        if not (free := self._free[kind]):
            return None
        client = self._clients[heapq.heappop(free)]
        self._holders[client.name] = holder
        return client

    def release(self, name: str, holder: str = "") -> None:
        """Take a client back. Raises LoadtestError if this holder does not have it."""
        if self._holders.get(name) != holder:
            raise LoadtestError(
                f"{name!r} was released, but is not leased to {holder or 'a user'};"
                " release each lease once"
            )
        del self._holders[name]
        place = self._places[name]
        heapq.heappush(self._free[self._clients[place].kind], place)

    def holder(self, name: str) -> str | None:
        """Return who has a client; None if it is free or unknown."""
        return self._holders.get(name)

    def held_by(self, holder: str) -> tuple[ClientConfig, ...]:
        """Return the clients that one has, in the order of the load."""
        return tuple(one for one in self._clients if self._holders.get(one.name) == holder)

    def __contains__(self, name: object) -> bool:
        return name in self._places
