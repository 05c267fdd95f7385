"""Scripted group members: each sends the requests that its wire script says, on its own connection.

Real clients would not send most of them: requests of fenced, removed or unknown members.
"""

import asyncio
import base64
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.consumer_protocol import Subscription
from kafka_protocol.errors import Error, name_of
from loadtest.wire import Connection, Versions, negotiate

HOST = "127.0.0.1"
APIS = (*COORDINATOR_APIS, "FIND_COORDINATOR", "METADATA")
HEARTBEAT_INTERVAL_S = 0.5
PAUSE_S = 0.07
"""The shortest pause before a request, so that the log times tell the order of requests."""
LONGEST_PAUSE = 1.4
"""The longest pause, as a multiple of `PAUSE_S`; drawn at random."""
REJOIN_DELAY_S = 0.8
"""How long members wait before they rejoin: longer than a broker's timer may be late."""


def subscription(user_data: bytes = b"", topics: tuple[str, ...] = ("orders",)) -> str:
    """Encode a subscription. The Java coordinator needs a valid one (tried on 4.3.0)."""
    return in_base64(Subscription(topics, user_data).encode(0))


def in_base64(data: bytes) -> str:
    """Encode bytes as the request log does."""
    return base64.b64encode(data).decode()


class UnexpectedResponse(Exception):  # noqa: N818 (the broker's response, no error of ours)
    """A broker's response differs from the script's, so its group does not show the rule."""


@dataclass
class Wire:
    """A connection with one request at a time; a thread waits for the response."""

    port: int
    client_id: str
    connection: Connection | None = None
    rng: Random = field(default_factory=Random)
    versions: Versions = field(default_factory=dict)

    async def ask(self, api: str, version: int, **body: Any) -> dict[str, Any]:
        """Send a request after a pause, and wait for its response.

        If the broker does not serve the version, the request has the broker's highest one.
        """
        await asyncio.sleep(PAUSE_S * self.rng.uniform(1, LONGEST_PAUSE))
        if self.connection is None:
            self.connection = Connection(HOST, self.port, self.client_id)
            self.versions = await asyncio.to_thread(negotiate, self.connection, APIS)
        version = min(version, self.versions[api][1])
        return await asyncio.to_thread(self.connection.ask, api, version, body)

    def disconnect(self) -> None:
        """Close the socket, as the crash of a process does."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@dataclass(kw_only=True)
class Member:
    """One client process in a group; it keeps the state that a client keeps."""

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
        """Whether it is the group's leader, by its last JoinGroup response."""
        return bool(self.leader) and self.leader == self.member_id

    @property
    def joined_member_ids(self) -> tuple[str, ...]:
        """The member ids in its last JoinGroup response."""
        return tuple(member["memberId"] for member in self.members)

    async def join(self, *expect: int) -> None:
        """Join; after MEMBER_ID_REQUIRED (KIP-394) join again with the new id.

        With that error in `expect`, join once only.
        """
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
        """Sync, as the leader with all assignments; return the own assignment (base64)."""
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
        """Return an assignment for every joined member."""
        return {
            member: f"share {number}".encode()
            for number, member in enumerate(self.joined_member_ids)
        }

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
        """Send a heartbeat; return its error code."""
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
        """Leave, by member id and instance id."""
        await self.remove({(self.member_id, self.instance): expect})

    async def remove(
        self, members: dict[tuple[str, str | None], int], expect: int = Error.NONE
    ) -> None:
        """Send one LeaveGroup for several members, by (member id, instance id)."""
        who = [
            {"memberId": member_id, "groupInstanceId": instance, "reason": "wire script"}
            for member_id, instance in members
        ]
        answer = await self.wire.ask("LEAVE_GROUP", 5, groupId=self.group, members=who)
        self._check("leave", answer["errorCode"], expect)
        for result, wanted in zip(answer["members"], members.values(), strict=True):
            self._check("leave", result["errorCode"], wanted)

    async def find(self, *but: int, ready: int = Error.NONE) -> None:
        """Connect to the group's coordinator, which is not one of the brokers `but`.

        Returns when a heartbeat gets the error code `ready`.
        """
        while True:
            answer = await self.wire.ask("FIND_COORDINATOR", 3, key=self.group, keyType=0)
            if answer["errorCode"] == Error.NONE and answer["nodeId"] not in but:
                break
            await asyncio.sleep(0.1)
        self.wire.disconnect()
        self.wire.port = answer["port"]
        for _ in range(100):
            if await self.heartbeat(Error.NONE, Error.NOT_COORDINATOR, ready) == ready:
                return
            await asyncio.sleep(0.1)
        raise UnexpectedResponse(f"{self.group}: its coordinator does not serve it")

    def _check(self, what: str, error: int, *expect: int) -> None:
        if error not in expect:
            wanted = " or ".join(map(name_of, expect))
            raise UnexpectedResponse(
                f"{self.group}: {what} of {self.name}: {name_of(error)}, not {wanted}"
            )


async def keep_alive(seconds: float, *members: Member) -> None:
    """Send heartbeats of members for some seconds; each must get NONE."""
    for _ in range(max(1, round(seconds / HEARTBEAT_INTERVAL_S))):
        await asyncio.gather(*(member.heartbeat() for member in members))
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)


async def await_rebalance(*members: Member) -> None:
    """Send heartbeats until each member gets REBALANCE_IN_PROGRESS."""
    for member in members:
        for _ in range(20):
            if (
                await member.heartbeat(Error.NONE, Error.REBALANCE_IN_PROGRESS)
                == Error.REBALANCE_IN_PROGRESS
            ):
                break
            await asyncio.sleep(HEARTBEAT_INTERVAL_S / 5)
        else:
            raise UnexpectedResponse(f"{member.group}: {member.name} got no REBALANCE_IN_PROGRESS")


async def join_rebalance(*members: Member) -> None:
    """Await a rebalance, then join and sync."""
    await await_rebalance(*members)
    await rejoin_all(*members)


async def rejoin_all(*members: Member) -> None:
    """Join at the same time, then sync."""
    await asyncio.gather(*(member.join() for member in members))
    await sync_all(*members)


async def sync_all(*members: Member) -> None:
    """Sync, the leader last."""
    followers = [member for member in members if not member.leads]
    waiting = [await start_request(member.sync()) for member in followers]
    for member in members:
        if member not in followers:
            await member.sync()
    await asyncio.gather(*waiting)


async def start_request(request: Awaitable[Any], ahead_s: float = 0.15) -> asyncio.Task[Any]:
    """Start a request that the broker does not answer yet; it has arrived when this returns."""
    task = asyncio.ensure_future(request)
    await asyncio.sleep(ahead_s)
    return task


async def await_expiry_rebalance(*members: Member) -> None:
    """Send heartbeats until a rebalance begins, then rejoin after a delay."""
    for _ in range(20):
        errors = [
            await member.heartbeat(Error.NONE, Error.REBALANCE_IN_PROGRESS) for member in members
        ]
        if Error.REBALANCE_IN_PROGRESS in errors:
            await asyncio.sleep(REJOIN_DELAY_S)
            await rejoin_all(*members)
            return
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)
    raise UnexpectedResponse(f"{members[0].group}: no rebalance began")
