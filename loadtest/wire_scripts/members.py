"""Group members that say exactly what a story has them say, on a connection of their own each.

A real client would not send most of it: requests of members that are fenced, gone or not there yet.
"""

import asyncio
import base64
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.errors import Error, name_of
from loadtest.wire import Connection, Versions, negotiate
from reference_coordinator.assignors import Subscription

HOST = "127.0.0.1"
APIS = (*COORDINATOR_APIS, "FIND_COORDINATOR", "METADATA")
BEAT_S = 0.5
PAUSE_S = 0.07
"""What lies between two requests, so that their times tell which was the first."""
LONGER = 1.4
"""So many times as long it may be: chance decides."""
DAWDLE_S = 0.8
"""How long members that hear of a rebalance go on: longer than a timer of a broker may be late."""


def subscription(user_data: bytes = b"", topics: tuple[str, ...] = ("orders",)) -> str:
    """Write a consumer's metadata; the Java coordinator chokes on what is none (seen on 4.3.0)."""
    return in_base64(Subscription(topics, user_data).encode(0))


def in_base64(data: bytes) -> str:
    """Write bytes as the request log does."""
    return base64.b64encode(data).decode()


class Unexpected(Exception):  # noqa: N818 (it is no error of ours)
    """A broker answered otherwise than the story says, so it would not show what it must."""


@dataclass
class Wire:
    """A connection; one request at a time. Waiting for an answer is left to a thread."""

    port: int
    client_id: str
    connection: Connection | None = None
    rng: Random = field(default_factory=Random)
    versions: Versions = field(default_factory=dict)

    async def ask(self, api: str, version: int, **body: Any) -> dict[str, Any]:
        """Send a request after a pause, and wait for its answer.

        To a broker that does not know its version yet it goes in the highest that this one knows.
        """
        await asyncio.sleep(PAUSE_S * self.rng.uniform(1, LONGER))
        if self.connection is None:
            self.connection = Connection(HOST, self.port, self.client_id)
            self.versions = await asyncio.to_thread(negotiate, self.connection, APIS)
        version = min(version, self.versions[api][1])
        return await asyncio.to_thread(self.connection.ask, api, version, body)

    def cut(self) -> None:
        """Close it, as a process that dies does."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@dataclass(kw_only=True)
class Member:
    """One process in a group; what its answers told it is kept as a client would keep it."""

    group: str
    name: str
    wire: Wire
    instance: str | None
    session_ms: int
    rebalance_ms: int
    join_version: int = 9
    metadata: str = subscription()
    reason: str | None = None
    member_id: str = ""
    generation: int = -1
    leader: str = ""
    members: tuple[Mapping[str, Any], ...] = ()
    skip_assignment: bool = False

    @property
    def leads(self) -> bool:
        """Whether it was told that it leads the group."""
        return bool(self.leader) and self.leader == self.member_id

    @property
    def told(self) -> tuple[str, ...]:
        """The ids of the members that it was told of."""
        return tuple(member["memberId"] for member in self.members)

    async def join(self, *expect: int) -> None:
        """Join with the id it has; a member without any is given one, and joins again with it."""
        answer = await self.wire.ask(
            "JOIN_GROUP",
            self.join_version,
            groupId=self.group,
            sessionTimeoutMs=self.session_ms,
            rebalanceTimeoutMs=self.rebalance_ms,
            memberId=self.member_id,
            groupInstanceId=self.instance,
            protocolType="consumer",
            protocols=[{"name": "range", "metadata": self.metadata}],
            reason=self.reason,
        )
        error = answer["errorCode"]
        if error == Error.MEMBER_ID_REQUIRED:
            self.member_id = answer["memberId"]
            if Error.MEMBER_ID_REQUIRED not in expect:
                await self.join(*expect)
            return
        self._check("join", error, *(expect or (Error.NONE,)))
        if error == Error.NONE:
            self.member_id, self.generation = answer["memberId"], answer["generationId"]
            self.leader = answer["leader"]
            self.skip_assignment = answer.get("skipAssignment", False)
            self.members = tuple(answer["members"])

    async def sync(self, expect: int = Error.NONE, *, generation: int | None = None) -> str:
        """Fetch the assignment (base64); the leader hands in everyone's before."""
        assigns = self.leads and not self.skip_assignment
        answer = await self.wire.ask(
            "SYNC_GROUP",
            5,
            **self._who(generation),
            protocolType="consumer",
            protocolName="range",
            assignments=[
                {"memberId": member_id, "assignment": in_base64(share)}
                for member_id, share in (self.shares() if assigns else {}).items()
            ],
        )
        self._check("sync", answer["errorCode"], expect)
        return str(answer["assignment"])

    def shares(self) -> dict[str, bytes]:
        """Make up a share for everyone it was told of."""
        return {member: f"share {number}".encode() for number, member in enumerate(self.told)}

    def _who(self, generation: int | None) -> dict[str, Any]:
        generation = self.generation if generation is None else generation
        return {
            "groupId": self.group,
            "generationId": generation,
            "generationIdOrMemberEpoch": generation,
            "memberId": self.member_id,
            "groupInstanceId": self.instance,
        }

    async def heartbeat(self, *expect: int, generation: int | None = None) -> int:
        """Show that it is alive; returns the error."""
        answer = await self.wire.ask("HEARTBEAT", 4, **self._who(generation))
        self._check("heartbeat", answer["errorCode"], *(expect or (Error.NONE,)))
        return int(answer["errorCode"])

    async def commit(self, *expect: int, generation: int | None = None, version: int = 8) -> None:
        """Commit an offset."""
        part = {"partitionIndex": 0, "committedOffset": 1, "committedMetadata": ""}
        topics = [{"name": "orders", "partitions": [part]}]
        answer = await self.wire.ask(
            "OFFSET_COMMIT", version, **self._who(generation), topics=topics
        )
        error = answer["topics"][0]["partitions"][0]["errorCode"]
        self._check("commit", error, *(expect or (Error.NONE,)))

    async def leave(self, expect: int = Error.NONE) -> None:
        """Leave under all the names it has."""
        await self.remove({(self.member_id, self.instance): expect})

    async def remove(
        self, members: dict[tuple[str, str | None], int], expect: int = Error.NONE
    ) -> None:
        """Send one LeaveGroup for several members, by (member id, instance id)."""
        who = [
            {"memberId": member_id, "groupInstanceId": instance, "reason": "the story"}
            for member_id, instance in members
        ]
        answer = await self.wire.ask("LEAVE_GROUP", 5, groupId=self.group, members=who)
        self._check("leave", answer["errorCode"], expect)
        for told, wanted in zip(answer["members"], members.values(), strict=True):
            self._check("leave", told["errorCode"], wanted)

    async def find(self, *but: int, ready: int = Error.NONE) -> None:
        """Connect to the group's coordinator, none of those brokers, once it is `ready`.

        It is when a heartbeat is answered so.
        """
        while True:
            answer = await self.wire.ask("FIND_COORDINATOR", 3, key=self.group, keyType=0)
            if answer["errorCode"] == Error.NONE and answer["nodeId"] not in but:
                break
            await asyncio.sleep(0.1)
        self.wire.cut()
        self.wire.port = answer["port"]
        for _ in range(100):
            if await self.heartbeat(Error.NONE, Error.NOT_COORDINATOR, ready) == ready:
                return
            await asyncio.sleep(0.1)
        raise Unexpected(f"{self.group}: its coordinator does not get ready")

    def _check(self, what: str, error: int, *expect: int) -> None:
        if error not in expect:
            wanted = " or ".join(map(name_of, expect))
            raise Unexpected(f"{self.group}: {what} of {self.name}: {name_of(error)}, not {wanted}")


async def beat(seconds: float, *members: Member) -> None:
    """Let members live for a while, undisturbed."""
    for _ in range(max(1, round(seconds / BEAT_S))):
        await asyncio.gather(*(member.heartbeat() for member in members))
        await asyncio.sleep(BEAT_S)


async def hear(*members: Member) -> None:
    """Let members send heartbeats until they are told of a rebalance."""
    for member in members:
        for _ in range(20):
            if (
                await member.heartbeat(Error.NONE, Error.REBALANCE_IN_PROGRESS)
                == Error.REBALANCE_IN_PROGRESS
            ):
                break
            await asyncio.sleep(BEAT_S / 5)
        else:
            raise Unexpected(f"{member.group}: {member.name} hears of no rebalance")


async def follow(*members: Member) -> None:
    """Let members hear of a rebalance, and take part in it."""
    await hear(*members)
    await rejoin(*members)


async def rejoin(*members: Member) -> None:
    """Let members join at the same time, and fetch their shares."""
    await asyncio.gather(*(member.join() for member in members))
    await share_out(*members)


async def share_out(*members: Member) -> None:
    """Let members sync, the leader last."""
    followers = [member for member in members if not member.leads]
    waiting = [await begin(member.sync()) for member in followers]
    for member in members:
        if member not in followers:
            await member.sync()
    await asyncio.gather(*waiting)


async def begin(request: Awaitable[Any], ahead_s: float = 0.15) -> asyncio.Task[Any]:
    """Send a request that waits for its answer; it is with the broker when this returns."""
    task = asyncio.ensure_future(request)
    await asyncio.sleep(ahead_s)
    return task


async def outlive(*members: Member) -> None:
    """Let members live until a rebalance begins, and take part in it after a while."""
    for _ in range(20):
        told = [
            await member.heartbeat(Error.NONE, Error.REBALANCE_IN_PROGRESS) for member in members
        ]
        if Error.REBALANCE_IN_PROGRESS in told:
            await asyncio.sleep(DAWDLE_S)
            await rejoin(*members)
            return
        await asyncio.sleep(BEAT_S)
    raise Unexpected(f"{members[0].group}: no rebalance came")
