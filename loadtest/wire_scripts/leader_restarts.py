"""Wire scripts of a static leader that restarts while its topic gets more partitions (KIP-814).

The leader assigns partitions by range, and watches the topic as real clients do. The experiment
decides when partitions are added. The verdict judges who owns them, so scripts accept any response.
"""

import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Event

from kafka_protocol.consumer_protocol import Subscription
from kafka_protocol.errors import Error
from loadtest.timing import GROWS_WITHIN_S, HEARTBEAT_S, NOTICED_S
from loadtest.wire.leader import members_of, shares
from loadtest.wire.member import JoinedMembers, UnexpectedResponse
from loadtest.wire_scripts.members import (
    NONE_OR_REBALANCE,
    Group,
    ScriptedMember,
    form_group,
    gather,
    keep_alive,
    start,
)

TOPIC = "orders"
CHANGED = "cached metadata has changed"
FOLLOWING = "group is already rebalancing"
"""The join reasons of Java clients (KIP-800)."""


@dataclass(kw_only=True)
class Client(ScriptedMember):
    """A member that assigns partitions and, while it leads, rejoins when its topic grows."""

    partitions: Mapping[str, int] = field(default_factory=dict)
    """The partition count of its topic at its last join."""

    def __post_init__(self) -> None:
        """Assign partitions by range."""
        metadata = b64encode(Subscription((TOPIC,)).encode()).decode()
        self.protocols, self.assign = (("range", metadata),), self._by_range

    def _by_range(self, _: str, joined: JoinedMembers) -> Mapping[str, str]:
        assigned = shares("range", members_of(joined), self.partitions)
        return {member_id: b64encode(share).decode() for member_id, share in assigned.items()}

    def look(self) -> Mapping[str, int]:
        """Request the partition count of the topic."""
        answer = self.ask("METADATA", topics=[{"name": TOPIC}], allowAutoTopicCreation=False)
        return {topic["name"]: len(topic["partitions"]) for topic in answer["topics"]}

    def join(self, *expect: int) -> int:
        """Join, and remember the topic's partition count."""
        error = super().join(*expect)
        self.partitions = self.look()
        return error

    def live(self, over: Event) -> None:
        """Send heartbeats; rejoin on a rebalance, or as the leader when the topic changes."""
        while not over.is_set():
            if self.is_leader and self.look() != self.partitions:
                self.rejoin(CHANGED)
            elif self.heartbeat(*NONE_OR_REBALANCE) != Error.NONE:
                self.rejoin(FOLLOWING)
            time.sleep(HEARTBEAT_S)


def leader_returns(group: Group) -> None:
    """The leader restarts, then the topic grows."""
    _restart(group, version=9, grows_before=False)


def leader_misses(group: Group) -> None:
    """The topic grows while the leader is down: under KIP-814 no member notices."""
    _restart(group, version=9, grows_before=True)


def old_leader_returns(group: Group) -> None:
    """The leader restarts, then the topic grows; JoinGroup v5, as librdkafka sends it."""
    _restart(group, version=5, grows_before=False)


def _restart(group: Group, *, version: int, grows_before: bool) -> None:
    group.session_ms, group.rebalance_ms = 120_000, 10_000

    def client(name: str) -> Client:
        return group.add(Client, name, instance_id=name, most={"JOIN_GROUP": version})

    leader, follower = client("a"), client("b")
    form_group(leader, follower)
    if not leader.is_leader:
        leader, follower = follower, leader
    keep_alive(1, leader, follower)
    over = Event()
    try:
        follows = start(follower.live, over)
        leader.disconnect()
        await_growth = partial(_await_growth, client("watcher"), leader.partitions)
        if grows_before:
            await_growth()
        back = client(leader.name)
        back.rejoin()
        if not grows_before and back.partitions != leader.partitions:
            raise UnexpectedResponse(
                f"{group.name}: the topic has grown before the leader rejoined; add them later"
            )
        lives = start(back.live, over)
        if not grows_before:
            await_growth()
        time.sleep(NOTICED_S)
    finally:  # else a thread would live on, and the process with it
        over.set()
    gather(follows, lives)


def _await_growth(client: Client, before: Mapping[str, int]) -> None:
    """Wait until the topic has another partition count."""
    for _ in range(round(GROWS_WITHIN_S / HEARTBEAT_S)):
        if client.look() != before:
            return
        time.sleep(HEARTBEAT_S)
    raise UnexpectedResponse(f"{client.group}: no partitions were added within {GROWS_WITHIN_S} s")


LEADER_RESTARTS = (leader_returns, leader_misses, old_leader_returns)
