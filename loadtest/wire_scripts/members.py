"""The group of a wire script, its members, and what they do together.

Each member sends the requests that its script says, on its own connection. Real clients would not
send most of them: requests of fenced, removed or unknown members.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.consumer_protocol import Subscription
from kafka_protocol.errors import Error
from kafka_protocol.versions import (
    FIRST_FLEXIBLE,
    FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
    FIRST_LEAVE_WITH_REASON,
    FIRST_SYNC_WITH_PROTOCOL,
)
from loadtest.history import History
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
        return self.add(ScriptedMember, name, **more)

    def add(self, kind: type[M], name: str, **more: Any) -> M:
        """Make a member of a class, whose connection `close` closes at the latest."""
        fields = {
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
        }
        member = kind(**{**fields, **more})
        self._members.append(member)
        return member

    def close(self) -> None:
        """Close the connections of all processes, for good."""
        for member in self._members:
            member.is_over = True
            member.disconnect()


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
