"""The group of a wire script: how its members form it and complete its rebalances."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from kafka_protocol.errors import Error
from loadtest.history import History
from loadtest.timing import ARRIVES_S
from loadtest.wire_scripts.members import (
    ScriptedMember,
    await_rebalance,
    gather,
    keep_alive,
    numbered_shares,
    start,
    subscription,
    sync_all,
)

M = TypeVar("M", bound=ScriptedMember)


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
    _members: list[ScriptedMember] = field(default_factory=list)

    def find(self) -> None:
        """Find the group's coordinator, and wait until it serves the group."""
        self.coordinator = min(self.ports)
        self.coordinator = self.static("scout").find(ready=Error.UNKNOWN_MEMBER_ID)

    @property
    def elsewhere(self) -> int:
        """The port of a broker that does not coordinate the group."""
        return next(port for id_, port in self.ports.items() if id_ != self.coordinator)

    def static(self, name: str, **more: Any) -> ScriptedMember:
        """Make a static member; its instance id is its name."""
        return self.dynamic(name, instance_id=name, **more)

    def dynamic(self, name: str, **more: Any) -> ScriptedMember:
        """Make a dynamic member; `more` are fields of it."""
        return self.add(ScriptedMember(**self.fields(name, **more)))

    def fields(self, name: str, **more: Any) -> dict[str, Any]:
        """Return the fields of a member of this group; `more` are others."""
        return {
            "group": self.name,
            "name": name,
            "client_id": f"{self.name}-{name}",
            "rng": self.rng,
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.rebalance_ms,
            "protocols": (("range", subscription()),),
            "assign": numbered_shares,
            "expects": (Error.NONE,),
            "port": self.ports[self.coordinator],
            **more,
        }

    def add(self, member: M) -> M:
        """Add a member, whose connection `close` closes at the latest."""
        self._members.append(member)
        return member

    def close(self) -> None:
        """Close the connections of all processes, for good."""
        for member in self._members:
            member.is_over = True
            member.disconnect()


def form_group(*members: ScriptedMember, alive_s: float = 0.0) -> None:
    """Join members one after the other into a new group; the first one leads it."""
    gather(*[start(member.join) for member in members])
    sync_all(*members)
    keep_alive(alive_s, *members)


def leader_first(*members: ScriptedMember) -> list[ScriptedMember]:
    """Return the members with the leader first: on a slow broker it may be any of them."""
    return sorted(members, key=lambda member: member.leader != member.member_id)


def rebalance(
    joining: ScriptedMember,
    *others: ScriptedMember,
    alive_s: float = 0.0,
    ahead_s: float = ARRIVES_S,
) -> None:
    """Let a member join its group, and the others the rebalance that it begins; all sync."""
    complete_rebalance([start(joining.join, ahead_s=ahead_s)], *others)
    sync_all(joining, *others)
    keep_alive(alive_s, joining, *others)


def complete_rebalance(joins: list[Future[Any]], *members: ScriptedMember) -> None:
    """Let members join the rebalance that `joins` wait in, and await the end of its join phase."""
    for member in members:
        await_rebalance(member)
        joins.append(start(member.join))
    gather(*joins)
