"""The group that a story is about, and how its members found it and follow into a rebalance."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafka_protocol.errors import Error
from loadtest.wire_scripts.members import Member, Wire, begin, hear, share_out

WAITING = 100
"""So many members of all stories may wait for an answer at the same time."""


def make_room() -> None:
    """Let as many members wait for an answer, each in a thread, as stories may have."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(WAITING))


@dataclass
class Group:
    """A group that a story is about; `ports` are those of the brokers, by their ids."""

    name: str
    ports: dict[int, int]
    session_ms: int = 3_000
    rebalance_ms: int = 3_000
    rng: Random = field(default_factory=Random)
    coordinator: int = field(init=False)

    async def find(self) -> None:
        """Find the broker that coordinates it, and wait until it does."""
        self.coordinator = min(self.ports)
        scout = self.static("scout")
        await scout.find(ready=Error.UNKNOWN_MEMBER_ID)
        self.coordinator = next(id_ for id_, port in self.ports.items() if port == scout.wire.port)

    def static(self, name: str, **more: int) -> Member:
        """Start a process with that instance id."""
        return self._process(name, name, more)

    def dynamic(self, name: str, **more: int) -> Member:
        """Start a process without an instance id."""
        return self._process(name, None, more)

    def _process(self, name: str, instance: str | None, more: dict[str, int]) -> Member:
        given: dict[str, Any] = {
            "session_ms": self.session_ms,
            "rebalance_ms": self.rebalance_ms,
            **more,
        }
        port = self.ports[self.coordinator]
        wire = Wire(port, f"{self.name}-{name}", rng=self.rng)
        return Member(group=self.name, name=name, wire=wire, instance=instance, **given)


async def form(*members: Member) -> None:
    """Let members found a group; the first one leads it."""
    joins = [await begin(member.join()) for member in members]
    await asyncio.gather(*joins)
    await share_out(*members)


def led(*members: Member) -> list[Member]:
    """Put the member that leads first: who came first to a slow broker does."""
    return sorted(members, key=lambda member: member.leader != member.member_id)


async def follow_into(joins: list[asyncio.Task[None]], *members: Member) -> None:
    """Let members hear of a rebalance that others wait in, and complete its join phase."""
    for member in members:
        await hear(member)
        joins.append(await begin(member.join()))
    await asyncio.gather(*joins)
