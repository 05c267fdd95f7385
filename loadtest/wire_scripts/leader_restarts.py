"""Wire scripts of a static leader that restarts while its topic gets more partitions (KIP-814).

The leader assigns partitions by range, and watches the topic as real clients do. The experiment
decides when partitions are added. The verdict judges who owns them, so scripts accept any response.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_protocol.consumer_protocol import Subscription
from kafka_protocol.errors import Error
from loadtest.wire.leader import members_of, shares
from loadtest.wire_scripts.members import (
    HEARTBEAT_INTERVAL_S,
    Member,
    UnexpectedResponse,
    in_base64,
    keep_alive,
)
from loadtest.wire_scripts.protocol_corners import Group, form_group

TOPIC = "orders"
GROWS_WITHIN_S = 120
NOTICED_S = 6.0
"""How long members run on after the topic has grown: enough for a leader to notice."""
CHANGED = "cached metadata has changed"
FOLLOWING = "group is already rebalancing"
"""The join reasons of Java clients (KIP-800)."""


@dataclass(kw_only=True)
class Client(Member):
    """A member that assigns partitions and, while it leads, rejoins when its topic grows."""

    metadata: str = in_base64(Subscription((TOPIC,)).encode())
    partitions: Mapping[str, int] = field(default_factory=dict)
    """The partition count of its topic at its last join."""

    async def look(self) -> Mapping[str, int]:
        """Request the partition count of the topic."""
        answer = await self.wire.ask(
            "METADATA", 4, topics=[{"name": TOPIC}], allowAutoTopicCreation=False
        )
        return {topic["name"]: len(topic["partitions"]) for topic in answer["topics"]}

    async def join(self, *expect: int) -> None:
        """Join, and remember the topic's partition count."""
        await super().join(*expect)
        self.partitions = await self.look()

    def shares(self) -> dict[str, bytes]:
        """Assign partitions by range."""
        return shares("range", members_of(self.members), self.partitions)

    async def live(self, over: asyncio.Event) -> None:
        """Send heartbeats; rejoin on a rebalance, or as the leader when the topic changes."""
        while not over.is_set():
            if self.leads and await self.look() != self.partitions:
                await self.rejoin_all(CHANGED)
            elif await self.heartbeat(Error.NONE, Error.REBALANCE_IN_PROGRESS) != Error.NONE:
                await self.rejoin_all(FOLLOWING)
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)

    async def rejoin_all(self, reason: str) -> None:
        """Join and sync, with a reason."""
        self.reason = reason
        await self.join()
        await self.sync()


async def leader_returns(group: Group) -> None:
    """The leader restarts, then the topic grows."""
    await _restart(group, version=9, grows_before=False)


async def leader_misses(group: Group) -> None:
    """The topic grows while the leader is down: under KIP-814 no member notices."""
    await _restart(group, version=9, grows_before=True)


async def old_leader_returns(group: Group) -> None:
    """The leader restarts, then the topic grows; JoinGroup v5, as librdkafka sends it."""
    await _restart(group, version=5, grows_before=False)


async def _restart(group: Group, *, version: int, grows_before: bool) -> None:
    group.session_ms, group.rebalance_ms = 120_000, 10_000

    def client(name: str) -> Client:
        return Client(
            group=group.name,
            name=name,
            wire=group.wire(name, group.coordinator),
            instance=name,
            session_ms=group.session_ms,
            rebalance_ms=group.rebalance_ms,
            join_version=version,
        )

    leader, follower = client("a"), client("b")
    await form_group(leader, follower)
    if not leader.leads:
        leader, follower = follower, leader
    await keep_alive(1, leader, follower)
    over = asyncio.Event()
    follows = asyncio.create_task(follower.live(over))
    leader.wire.disconnect()
    grown = _growth(client("watcher"), leader.partitions)
    if grows_before:
        await grown
    back = client(leader.name)
    await back.join()
    await back.sync()
    if not grows_before and back.partitions != leader.partitions:
        raise UnexpectedResponse(
            f"{group.name}: the topic has grown before the leader rejoined; add them later"
        )
    lives = asyncio.create_task(back.live(over))
    if not grows_before:
        await grown
    await asyncio.sleep(NOTICED_S)
    over.set()
    await asyncio.gather(follows, lives)


async def _growth(client: Client, before: Mapping[str, int]) -> None:
    """Wait until the topic has another partition count."""
    for _ in range(round(GROWS_WITHIN_S / HEARTBEAT_INTERVAL_S)):
        if await client.look() != before:
            return
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)
    raise UnexpectedResponse(f"{client.group}: no partitions were added within {GROWS_WITHIN_S} s")


LEADER_RESTARTS = (leader_returns, leader_misses, old_leader_returns)
