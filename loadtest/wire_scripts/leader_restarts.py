"""Stories of a static leader that restarts while its topic gets more partitions (KIP-814).

Their members assign partitions in earnest, and whoever knows that it leads watches the topic as
real clients do. When partitions are added is for the experiment to say, and who gets them for the
verdict: any answer will do.
"""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_protocol.errors import Error
from loadtest.wire_scripts.members import (
    BEAT_S,
    Member,
    Unexpected,
    Wire,
    beat,
    in_base64,
)
from loadtest.wire_scripts.protocol_corners import Group, form
from reference_coordinator import assignors
from reference_coordinator.assignors import ASSIGNORS, Assignment, Subscription

TOPIC = "orders"
GROWS_WITHIN_S = 120
NOTICED_S = 6.0
"""How long members live on with a topic that has grown: a leader that watches has seen it."""
CHANGED = "cached metadata has changed"
FOLLOWING = "group is already rebalancing"
"""What Java clients give as their reasons (KIP-800)."""


@dataclass(kw_only=True)
class Client(Member):
    """A member that leads as real clients do, and sees partitions that are added while it leads."""

    metadata: str = in_base64(Subscription((TOPIC,)).encode())
    partitions: Mapping[str, int] = field(default_factory=dict)
    """What it knew of the topic when it last joined."""

    async def look(self) -> Mapping[str, int]:
        """Ask how many partitions the topic has."""
        answer = await self.wire.ask(
            "METADATA", 4, topics=[{"name": TOPIC}], allowAutoTopicCreation=False
        )
        return {topic["name"]: len(topic["partitions"]) for topic in answer["topics"]}

    async def join(self, *expect: int) -> None:
        """Join, and look at the topic, from now on for changes."""
        await super().join(*expect)
        self.partitions = await self.look()

    def shares(self) -> dict[str, bytes]:
        """Assign by range."""
        members = [
            assignors.Member(
                member["memberId"],
                Subscription.decode(base64.b64decode(member["metadata"])),
                member["groupInstanceId"],
            )
            for member in self.members
        ]
        shares = ASSIGNORS["range"](members, self.partitions)
        return {member: Assignment(tuple(share)).encode() for member, share in shares.items()}

    async def live(self, over: asyncio.Event) -> None:
        """Send heartbeats, and join again when there is a reason to."""
        while not over.is_set():
            if self.leads and await self.look() != self.partitions:
                await self.rejoin(CHANGED)
            elif await self.heartbeat(Error.NONE, Error.REBALANCE_IN_PROGRESS) != Error.NONE:
                await self.rejoin(FOLLOWING)
            await asyncio.sleep(BEAT_S)

    async def rejoin(self, reason: str) -> None:
        """Take part in a rebalance, and say why."""
        self.reason = reason
        await self.join()
        await self.sync()


async def leader_returns(group: Group) -> None:
    """The leader is back, and then the topic grows."""
    await _restart(group, version=9, grows_before=False)


async def leader_misses(group: Group) -> None:
    """The topic grows while the leader is down: KIP-814 leaves that unseen."""
    await _restart(group, version=9, grows_before=True)


async def old_leader_returns(group: Group) -> None:
    """The leader is back, and then the topic grows; it speaks JoinGroup v5, as librdkafka does."""
    await _restart(group, version=5, grows_before=False)


async def _restart(group: Group, *, version: int, grows_before: bool) -> None:
    group.session_ms, group.rebalance_ms = 120_000, 10_000

    def client(name: str) -> Client:
        port = group.ports[group.coordinator]
        return Client(
            group=group.name,
            name=name,
            wire=Wire(port, f"{group.name}-{name}", rng=group.rng),
            instance=name,
            session_ms=group.session_ms,
            rebalance_ms=group.rebalance_ms,
            join_version=version,
        )

    leader, follower = client("a"), client("b")
    await form(leader, follower)
    if not leader.leads:
        leader, follower = follower, leader
    await beat(1, leader, follower)
    over = asyncio.Event()
    follows = asyncio.create_task(follower.live(over))
    leader.wire.cut()
    grown = _growth(client("watcher"), leader.partitions)
    if grows_before:
        await grown
    back = client(leader.name)
    await back.join()
    await back.sync()
    if not grows_before and back.partitions != leader.partitions:
        raise Unexpected(f"{group.name}: the topic has grown before the leader was back")
    lives = asyncio.create_task(back.live(over))
    if not grows_before:
        await grown
    await asyncio.sleep(NOTICED_S)
    over.set()
    await asyncio.gather(follows, lives)


async def _growth(client: Client, before: Mapping[str, int]) -> None:
    """Wait until the topic is not what it was before."""
    for _ in range(round(GROWS_WITHIN_S / BEAT_S)):
        if await client.look() != before:
            return
        await asyncio.sleep(BEAT_S)
    raise Unexpected(f"{client.group}: the topic does not grow")


LEADERS = (leader_returns, leader_misses, old_leader_returns)
