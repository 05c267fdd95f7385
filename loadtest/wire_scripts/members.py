"""Scripted group members: each sends the requests that its wire script says, on its own connection.

Real clients would not send most of them: requests of fenced, removed or unknown members.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.consumer_protocol import Subscription
from kafka_protocol.errors import Error
from kafka_protocol.versions import (
    FIRST_FLEXIBLE,
    FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
    FIRST_LEAVE_WITH_REASON,
    FIRST_SYNC_WITH_PROTOCOL,
)
from loadtest.timing import (
    ARRIVES_S,
    HEARTBEAT_S,
    LONGEST_PAUSE_S,
    PAUSE_S,
    REJOIN_DELAY_S,
    REQUEST_S,
)
from loadtest.wire import Connection, WireError, negotiate
from loadtest.wire.member import JoinedMembers, UnexpectedResponse, WireMember

HOST = "127.0.0.1"
OFFSET = {("orders", 0): 1}
"""What members commit."""
NONE_OR_REBALANCE = (Error.NONE, Error.REBALANCE_IN_PROGRESS)
"""The error codes of a heartbeat that a member of the group may get."""
_APIS = (*COORDINATOR_APIS, "FIND_COORDINATOR", "METADATA")
_MOST = {
    "JOIN_GROUP": FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
    "SYNC_GROUP": FIRST_SYNC_WITH_PROTOCOL,
    "HEARTBEAT": FIRST_FLEXIBLE["HEARTBEAT"],
    "OFFSET_COMMIT": FIRST_FLEXIBLE["OFFSET_COMMIT"],
    "LEAVE_GROUP": FIRST_LEAVE_WITH_REASON,
} | {"FIND_COORDINATOR": 3, "METADATA": 4}
"""The versions that members speak; a broker that lacks one gets its highest."""
_WAITING = ThreadPoolExecutor(100)
"""A thread for each member, over all scripts, that may wait for a response at the same time."""


def subscription(user_data: bytes = b"", topics: tuple[str, ...] = ("orders",)) -> str:
    """Encode a subscription. The Java coordinator needs a valid one (tried on 4.3.0)."""
    return b64encode(Subscription(topics, user_data).encode(0)).decode()


def numbered_shares(_: str, members: JoinedMembers) -> dict[str, str]:
    """Assign another text to each member."""
    return {
        str(member["memberId"]): b64encode(f"share {number}".encode()).decode()
        for number, member in enumerate(members)
    }


@dataclass(kw_only=True)
class ScriptedMember(WireMember):
    """A member that connects when it first has to, pauses before each request, and expects NONE."""

    port: int
    client_id: str
    rng: Random = field(default_factory=Random)
    most: Mapping[str, int] = field(default_factory=dict)
    """The versions in which it differs from `_MOST`."""
    is_over: bool = False  # a thread that waits for a response may ask once more

    def ask(self, api: str, within_s: float = REQUEST_S, **body: Any) -> dict[str, Any]:
        """Send a request after a pause, and wait for its response."""
        time.sleep(self.rng.uniform(PAUSE_S, LONGEST_PAUSE_S))
        if self.is_over:
            raise WireError(f"{self.client_id}: its script is over")
        if self.connection is None:
            self.connection = Connection(HOST, self.port, self.client_id)
            shared = negotiate(self.connection, _APIS)
            most = {**_MOST, **self.most}
            self.versions = {
                name: min(most.get(name, highest), highest) for name, (_, highest) in shared.items()
            }
        return super().ask(api, within_s, **body)

    def rejoin(self, reason: str | None = None) -> None:
        """Join and sync."""
        self.reason = reason
        self.join()
        self.sync()

    def commit_offset(self, *expect: int, **body: Any) -> None:
        """Commit an offset."""
        self.commit(OFFSET, *expect, **body)

    def remove_members(self, members: Mapping[tuple[str, str | None], int]) -> None:
        """Send one LeaveGroup for several members, by (member id, instance id).

        Raises UnexpectedResponse if one gets another error than the one here.
        """
        for got, wanted in zip(
            self.remove(members, "wire script"), (Error.NONE, *members.values()), strict=True
        ):
            self._checked("leave", got, (wanted,))

    def find(self, *but: int, ready: int = Error.NONE) -> int:
        """Connect to the group's coordinator, which is not one of the brokers `but`; return its id.

        Returns when a heartbeat gets the error code `ready`.
        """
        while True:
            answer = self.ask("FIND_COORDINATOR", key=self.group, keyType=0)
            if answer["errorCode"] == Error.NONE and answer["nodeId"] not in but:
                break
            time.sleep(HEARTBEAT_S / 5)
        self.move(answer["port"])
        for _ in range(100):
            if self.heartbeat(Error.NONE, Error.NOT_COORDINATOR, ready) == ready:
                return int(answer["nodeId"])
            time.sleep(HEARTBEAT_S / 5)
        raise UnexpectedResponse(f"{self.group}: its coordinator does not serve it")

    def move(self, port: int) -> None:
        """Send what follows to another broker."""
        self.disconnect()
        self.port = port


def start(call: Callable[..., Any], *arguments: Any, ahead_s: float = ARRIVES_S) -> Future[Any]:
    """Start a request that the broker does not answer yet; it has arrived when this returns."""
    started = _WAITING.submit(call, *arguments)
    time.sleep(ahead_s)
    return started


def together(calls: Iterable[Callable[[], Any]]) -> None:
    """Send requests at the same time; return when all are answered. Raises the first's error."""
    gather(*map(_WAITING.submit, calls))


def gather(*started: Future[Any]) -> None:
    """Return when all requests are answered. Raises the first's error."""
    for one in wait(started, return_when=FIRST_EXCEPTION).done:
        one.result()


def keep_alive(seconds: float, *members: WireMember) -> None:
    """Send heartbeats of members for some seconds; each must get NONE."""
    for _ in range(round(seconds / HEARTBEAT_S)):
        together(member.heartbeat for member in members)
        time.sleep(HEARTBEAT_S)


def await_rebalance(*members: WireMember) -> None:
    """Send heartbeats until each member gets REBALANCE_IN_PROGRESS."""
    for member in members:
        for _ in range(20):
            if member.heartbeat(*NONE_OR_REBALANCE) == Error.REBALANCE_IN_PROGRESS:
                break
            time.sleep(HEARTBEAT_S / 5)
        else:
            raise UnexpectedResponse(f"{member.group}: {member.name} got no REBALANCE_IN_PROGRESS")


def join_rebalance(*members: WireMember) -> None:
    """Await a rebalance, then join and sync."""
    await_rebalance(*members)
    rejoin_all(*members)


def rejoin_all(*members: WireMember) -> None:
    """Join at the same time, then sync."""
    together(member.join for member in members)
    sync_all(*members)


def sync_all(*members: WireMember) -> None:
    """Sync, the leader last."""
    followers = [member for member in members if not member.is_leader]
    waiting = [start(member.sync) for member in followers]
    for member in members:
        if member not in followers:
            member.sync()
    gather(*waiting)


def heartbeats_for(seconds: float, *members: WireMember) -> None:
    """Send heartbeats, and let all rejoin once one hears of a rebalance."""
    for _ in range(round(seconds / HEARTBEAT_S)):
        errors = [member.heartbeat(*NONE_OR_REBALANCE) for member in members]
        if Error.REBALANCE_IN_PROGRESS in errors:
            rejoin_all(*members)
        time.sleep(HEARTBEAT_S)


def await_expiry_rebalance(*members: WireMember) -> None:
    """Send heartbeats until a rebalance begins, then rejoin after a delay."""
    for _ in range(20):
        errors = [member.heartbeat(*NONE_OR_REBALANCE) for member in members]
        if Error.REBALANCE_IN_PROGRESS in errors:
            time.sleep(REJOIN_DELAY_S)
            rejoin_all(*members)
            return
        time.sleep(HEARTBEAT_S)
    raise UnexpectedResponse(f"{members[0].group}: no rebalance began")
