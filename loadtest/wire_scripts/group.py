"""The group of a wire script: how its members form it and complete its rebalances."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafka_protocol.errors import Error
from loadtest.history import History
from loadtest.wire_scripts.members import Member, Wire, await_rebalance, start_request, sync_all

MOST_WAITING = 100
"""The most members, over all scripts, that may wait for a response at the same time."""


def make_room() -> None:
    """Give the event loop a thread for each member that may wait for a response."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MOST_WAITING))


@dataclass
class Group:
    """The group of a wire script; `ports` are the brokers' ports by broker id."""

    name: str
    ports: dict[int, int]
    session_ms: int = 3_000
    rebalance_ms: int = 3_000
    rng: Random = field(default_factory=Random)
    history: History = field(default_factory=lambda: History(None))
    coordinator: int = field(init=False)
    _wires: list[Wire] = field(default_factory=list)

    async def find(self) -> None:
        """Find the group's coordinator, and wait until it serves the group."""
        self.coordinator = min(self.ports)
        scout = self.static("scout")
        await scout.find(ready=Error.UNKNOWN_MEMBER_ID)
        self.coordinator = next(id_ for id_, port in self.ports.items() if port == scout.wire.port)

    def static(self, name: str, **more: int) -> Member:
        """Make a static member; its instance id is its name."""
        return self._process(name, name, more)

    def dynamic(self, name: str, **more: int) -> Member:
        """Make a dynamic member."""
        return self._process(name, None, more)

    def _process(self, name: str, instance: str | None, more: dict[str, int]) -> Member:
        given: dict[str, Any] = {
            "session_ms": self.session_ms,
            "rebalance_ms": self.rebalance_ms,
            **more,
        }
        wire = self.wire(name, self.coordinator)
        return Member(group=self.name, name=name, wire=wire, instance=instance, **given)

    def wire(self, name: str, broker: int) -> Wire:
        """Make the connection of a process to a broker; `close` closes it at the latest."""
        wire = Wire(self.ports[broker], f"{self.name}-{name}", rng=self.rng)
        self._wires.append(wire)
        return wire

    def close(self) -> None:
        """Close the connections of all processes."""
        for wire in self._wires:
            wire.disconnect()


async def form_group(*members: Member) -> None:
    """Join members one after the other into a new group; the first one leads it."""
    joins = [await start_request(member.join()) for member in members]
    await asyncio.gather(*joins)
    await sync_all(*members)


def leader_first(*members: Member) -> list[Member]:
    """Return the members with the leader first: on a slow broker it may be any of them."""
    return sorted(members, key=lambda member: member.leader != member.member_id)


async def complete_rebalance(joins: list[asyncio.Task[None]], *members: Member) -> None:
    """Let members join the rebalance that `joins` wait in, and await the end of its join phase."""
    for member in members:
        await await_rebalance(member)
        joins.append(await start_request(member.join()))
    await asyncio.gather(*joins)
