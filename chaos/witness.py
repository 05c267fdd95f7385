"""The witness: what the brokers' own logs say about a member, whatever its injector claims.

A member's name is its `client.id`, and that stands in every request line of a `group.log`:

    <sn> <epoch ms> <nanos> <thread> DEBUG Completed request:{…} (kafka.request.logger)

What counts is when a request *arrived*. A broker answers a JoinGroup that it holds back, and logs
it, long after the client that sent it is gone; such a line is no sign of life.
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NONE = 0
"""Kafka's error code for no error."""

_CHUNK = 1 << 20
_CUT_MS = 1  # the log cuts times to whole milliseconds, so this much later it may have been
_REQUEST = "Completed request:"
# The leader's SyncGroup (3.0 and later name the leader), and the end of the last leader's reign.
_LED = re.compile(r"Assignment received from leader (\S+) for group (\S+) for generation (\d+)\.")
_EMPTY = re.compile(r"Group ()(\S+) with generation (\d+) is now empty\.")


@dataclass(frozen=True, slots=True)
class Request:
    """A request that a broker completed, and where it says so.

    `arrived_ms` is the latest time that the log's whole milliseconds allow. `error_code` is None
    for the APIs that give one per partition. `member_id` is the answer's.
    """

    client: str
    api: str
    group: str
    arrived_ms: float
    completed_ms: int
    error_code: int | None
    member_id: str
    broker: int
    line: int

    @property
    def place(self) -> str:
        """Where the broker says so."""
        return f"group.log of broker {self.broker}, line {self.line}"


@dataclass(slots=True)
class _Tail:
    """A log and how far it was read."""

    path: Path
    offset: int = 0
    lines: int = 0
    partial: bytes = b""


@dataclass(slots=True)
class _Client:
    """The latest requests of one client."""

    last: Request
    accepted: dict[str, Request] = field(default_factory=dict)
    """By API: the latest that was answered without an error."""


class Witness:
    """Follows the `group.log` of every broker (by id), from its first line; usable in any thread.

    `poll` reads what was appended since; the other methods answer from what was read. A file that
    is not there yet is read once it is.
    """

    def __init__(self, logs: Mapping[int, Path]) -> None:
        self._tails = {broker: _Tail(path) for broker, path in logs.items()}
        self._clients: dict[str, _Client] = {}
        self._client_of: dict[str, str] = {}
        self._leaders: dict[str, tuple[int, int, str]] = {}
        self._lock = threading.Lock()

    def poll(self) -> None:
        """Read what the brokers wrote since the last poll; a line without its end waits."""
        with self._lock:
            for broker, tail in self._tails.items():
                for line in _appended(tail):
                    self._take(broker, tail.lines, line)

    def last_request(self, client: str) -> Request | None:
        """Return the latest request of a client to arrive, whatever the API and the answer."""
        seen = self._clients.get(client)
        return seen.last if seen else None

    def silent_since(self, client: str, since_ms: float) -> bool:
        """Tell whether no request of a client arrived at that time or later."""
        last = self.last_request(client)
        return last is None or last.arrived_ms < since_ms

    def joined_since(self, client: str, since_ms: float) -> Request | None:
        """Return a client's latest JoinGroup without an error, if it arrived then or later."""
        return self._accepted_since("JOIN_GROUP", client, since_ms)

    def synced_since(self, client: str, since_ms: float) -> Request | None:
        """Return a client's latest SyncGroup without an error, if it arrived then or later."""
        return self._accepted_since("SYNC_GROUP", client, since_ms)

    def leader(self, group: str) -> str | None:
        """Return the client that leads a group, or None if nobody does.

        The leader is the member whose assignment was taken last. A static leader that comes back
        within its session gets a new member id and no new assignment is taken (KIP-345): the old
        id still tells the client, which still leads.
        """
        _, _, member_id = self._leaders.get(group, (0, 0, ""))
        return self._client_of.get(member_id)

    def _accepted_since(self, api: str, client: str, since_ms: float) -> Request | None:
        seen = self._clients.get(client)
        request = seen.accepted.get(api) if seen else None
        return request if request and request.arrived_ms >= since_ms else None

    def _take(self, broker: int, number: int, line: bytes) -> None:
        text = line.decode(errors="replace")
        try:
            if _REQUEST in text:
                self._take_request(_request(broker, number, text))
            elif match := _LED.search(text) or _EMPTY.search(text):
                member_id, group, generation = match.groups()
                # A group may move to another broker, so the latest line need not be read last.
                reign = (int(text.split(" ", 2)[1]), int(generation), member_id)
                self._leaders[group] = max(reign, self._leaders.get(group, reign))
        except (ValueError, LookupError, TypeError, AttributeError):
            return  # a killed broker leaves half a line, and goes on behind it: no evidence

    def _take_request(self, request: Request) -> None:
        client = self._clients.setdefault(request.client, _Client(request))
        client.last = max(client.last, request, key=_arrival)
        if request.error_code == NONE:
            before = client.accepted.get(request.api, request)
            client.accepted[request.api] = max(before, request, key=_arrival)
        if request.member_id:
            self._client_of[request.member_id] = request.client


def _arrival(request: Request) -> float:
    return request.arrived_ms


def _appended(tail: _Tail) -> Iterator[bytes]:
    """Yield the whole lines that were appended, counting them."""
    try:
        log = tail.path.open("rb")
    except FileNotFoundError:
        return
    with log:
        log.seek(tail.offset)
        while chunk := log.read(_CHUNK):
            tail.offset += len(chunk)
            *lines, tail.partial = (tail.partial + chunk).split(b"\n")
            for line in lines:
                tail.lines += 1
                yield line


def _request(broker: int, number: int, text: str) -> Request:
    completed_ms = int(text.split(" ", 2)[1])
    start = text.index(_REQUEST) + len(_REQUEST)
    content: dict[str, Any] = json.loads(text[start : text.rindex(" (")])
    header, response = content["requestHeader"], content["response"]
    return Request(
        client=header["clientId"],
        api=header["requestApiKeyName"],
        group=content["request"].get("groupId", ""),
        arrived_ms=completed_ms + _CUT_MS - content["totalTimeMs"],
        completed_ms=completed_ms,
        error_code=response.get("errorCode"),
        member_id=response.get("memberId", ""),
        broker=broker,
        line=number,
    )
