"""The witness: what the brokers' own logs say about a member, independent of the injector.

A member's name is its `client.id`, and that stands in every request line of a `group.log`, which
is one of these (`written_ms` reads them all):

    <sn> <epoch ms> <nanos> <thread> DEBUG Completed request:{…} (kafka.request.logger)    4.x
    <date> <time>,<ms> <thread> DEBUG Completed request:{…} (kafka.request.logger)         3.x, UTC
    <date> <time>,<ms> <thread> DEBUG Completed request:RequestHeader(…) -- {…},…          to 2.7

What counts is when a request *arrived*. A broker answers and logs a pending JoinGroup long after
the client that sent it has ended; such a line does not show that the client is alive.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from chaos.clusters.releases import SHUTDOWN_LINES
from chaos.tail import Tail
from chaos.timing import CLOCK_SET_MS, LOG_CUT_MS
from kafka_protocol import request_log
from kafka_protocol.coordinator_lines import finder_of
from kafka_protocol.errors import NOT_SERVED, Error
from kafka_protocol.log_line import monotonic_ms, written_ms
from scenarios.fields import GroupStateName

_STATES: Mapping[str, GroupStateName] = {
    "preparing": "PreparingRebalance",
    "stabilized": "CompletingRebalance",
    "assignment": "Stable",
    "empty": "Empty",
}
"""The lines that say which state a group enters. One without members has no leader, either."""
_STATE_LINES = finder_of(*_STATES)
_SHUTDOWN_LINES = tuple(SHUTDOWN_LINES.values())
_SWAPPED = 100
"""How many lines a thread may be late with its own."""


class LineTimes:
    """Tells when a broker wrote the lines of its log, whether its wall clock is set off or not.

    They are given in the order of its log. A line shows the wall clock, and from 4.0 on the
    monotonic clock, which nothing sets. It has no fixed zero: how far the two are apart is learned
    from the lines of a process, until they part.
    """

    def __init__(self) -> None:
        self._number = 0
        self._apart_ms: float | None = None

    def at_ms(self, line: str) -> int:
        """Return when a line was written, in UTC epoch ms. Raises ValueError for half a line."""
        shown_ms = written_ms(line)
        if (monotonic := monotonic_ms(line)) is None:
            return shown_ms
        number, at_ms = monotonic
        if number == 1 or number < self._number - _SWAPPED:
            self._apart_ms, self._number = None, 0  # another process
        self._number = max(number, self._number)
        apart_ms = shown_ms - at_ms
        if self._apart_ms is None:
            self._apart_ms = apart_ms
        if abs(apart_ms - self._apart_ms) > CLOCK_SET_MS:
            return round(at_ms + self._apart_ms)
        # The monotonic clock is read last, and the thread may be suspended before.
        self._apart_ms = max(apart_ms, self._apart_ms)
        return shown_ms


@dataclass(frozen=True, slots=True)
class Request:
    """A request that a broker completed, and its place in the log.

    `arrived_ms` is the latest time that the log's whole milliseconds allow. `error_code` is that of
    the response; a commit's is the first of its partitions that is not NONE, or None without
    partitions. `instance_id` is of the request, `member_id` of the response. `removed` pairs the
    instance ids of a LeaveGroup with their error codes. `leads` is the generation that the member
    of a JoinGroup leads. `connection` is the broker's name for it:
    `<local host>:<port>-<remote host>:<port>-<numbers>`.
    """

    client: str
    api: str
    group: str
    arrived_ms: float
    completed_ms: int
    error_code: int | None
    instance_id: str | None
    member_id: str
    removed: tuple[tuple[str, int], ...]
    leads: int | None
    connection: str
    broker: int
    line: int

    @property
    def place(self) -> str:
        """Where the line stands."""
        return f"group.log of broker {self.broker}, line {self.line}"


class GroupState(NamedTuple):
    """The state that a group entered last, by a coordinator's line and its place."""

    at_ms: int
    broker: int
    line: int
    state: GroupStateName

    @property
    def place(self) -> str:
        """Where the line stands."""
        return f"group.log of broker {self.broker}, line {self.line}"


class Witness:
    """Follows the `group.log` of every broker (by id), from its first line; usable in any thread.

    `poll` reads what was appended since; the other methods answer from what was read. A file that
    does not exist yet is read once it does.
    """

    def __init__(self, logs: Mapping[int, Path]) -> None:
        self._tails = {broker: Tail(path) for broker, path in logs.items()}
        self._times = {broker: LineTimes() for broker in logs}
        self._clients: dict[str, dict[tuple[str, int | None], Request]] = {}
        """The latest requests of each client, by API and error code."""
        self._leaders: dict[str, tuple[int, int, str]] = {}
        self._last_completed: dict[int, int] = {}
        self._coordinators: dict[str, tuple[int, int]] = {}
        self._states: dict[str, GroupState] = {}
        self._served: dict[tuple[str, int], Request] = {}
        self._shutdowns: dict[int, int] = {}
        self._lock = threading.Lock()
        self._polled_s = float("-inf")
        """When the latest poll began."""

    def poll(self) -> None:
        """Read what the brokers wrote since the last poll; a line without its end waits.

        Hundreds of threads may ask at once, one for each member of a wave: those that waited while
        another one read have its result, if it began after they had asked.
        """
        asked_s = time.monotonic()
        with self._lock:
            if self._polled_s > asked_s:
                return
            self._polled_s = time.monotonic()
            for broker, tail in self._tails.items():
                for line in tail.appended():
                    self._take(broker, tail.lines, line)

    def lines(self, broker: int) -> int:
        """Return how many whole lines the log of a broker had at the last poll."""
        return self._tails[broker].lines

    def last_shutdown(self, broker: int) -> int:
        """Return the number of the last line in which a coordinator shut down; 0 if none did."""
        return self._shutdowns.get(broker, 0)

    @property
    def has_requests(self) -> bool:
        """Whether any request was read: an external cluster may have no log to read."""
        return bool(self._clients)

    def latest(
        self,
        client: str,
        since_ms: float = float("-inf"),
        api: str | None = None,
        error_code: int | None = None,
    ) -> Request | None:
        """Return a client's latest request to arrive, if it arrived at that time or later.

        It may have to be of an API, or answered with an error code, or both.
        """
        return self._since(since_ms, self._answered(client, api, error_code))

    def fenced_since(self, client: str, since_ms: float) -> Request | None:
        """Return a client's latest request that was fenced, if it was answered then or later.

        The time of arrival does not matter, since a JoinGroup may have been pending.
        """
        fenced = self._answered(client, error_code=Error.FENCED_INSTANCE_ID)
        return fenced if fenced and fenced.completed_ms >= since_ms else None

    def leader(self, group: str) -> str | None:
        """Return the client that leads a group, or None if the group has no leader.

        The leader is the client whose latest JoinGroup was answered so. A static leader that
        rejoins within its session still leads: from JoinGroup v9 on the answer says so, and it
        assigns nothing (KIP-814); before, the answer names its former member id (KIP-345).
        """
        _, _, client = self._leaders.get(group, (0, 0, ""))
        return client or None

    def state(self, group: str) -> GroupState | None:
        """Return the state that a group entered last, or None if no log mentions it."""
        return self._states.get(group)

    def coordinator(self, group: str) -> tuple[int, int]:
        """Return the broker that completed a group's latest request, and the time of its last.

        The latter may be of any group. Raises KeyError if no log mentions the group.
        """
        _, broker = self._coordinators[group]
        return broker, self._last_completed[broker]

    def served_since(self, group: str, broker: int, since_ms: float) -> Request | None:
        """Return the latest request of a group that a broker served, if it came then or later."""
        served = self._served.get((group, broker))
        return self._since(since_ms, served)

    def _answered(
        self, client: str, api: str | None = None, error_code: int | None = None
    ) -> Request | None:
        """Return a client's latest request of an API, with an error code, or both."""
        with self._lock:
            of = dict(self._clients.get(client, {}))
        found = [
            request
            for known, request in of.items()
            if api in (None, known[0]) and error_code in (None, known[1])
        ]
        return max(found, key=_arrival, default=None)

    @staticmethod
    def _since(since_ms: float, request: Request | None) -> Request | None:
        return request if request and request.arrived_ms >= since_ms else None

    def _take(self, broker: int, number: int, text: str) -> None:
        if text.rstrip().endswith(_SHUTDOWN_LINES):
            self._shutdowns[broker] = number
        try:
            at_ms = self._times[broker].at_ms(text)
            if request_log.COMPLETED in text:
                self._take_request(_request(broker, number, text, at_ms))
            elif found := _STATE_LINES.find(text):
                self._take_state(broker, number, at_ms, *found)
        except (ValueError, LookupError, TypeError, AttributeError):
            return  # a killed broker leaves half a line, and appends to it when it restarts

    def _take_state(
        self, broker: int, number: int, at_ms: int, name: str, values: Mapping[str, Any]
    ) -> None:
        group = values["group"]
        entered = GroupState(at_ms, broker, number, _STATES[name])
        # a group may move to another broker, so the latest line need not be read last
        self._states[group] = max(entered, self._states.get(group, entered))
        if name == "empty":
            self._note_leader(group, (at_ms, int(values["generation"]), ""))

    def _take_request(self, request: Request) -> None:
        broker, at_ms = request.broker, request.completed_ms
        self._last_completed[broker] = max(at_ms, self._last_completed.get(broker, 0))
        served = (0 if request.error_code in NOT_SERVED else at_ms, broker)
        known = self._coordinators.get(request.group, served)
        self._coordinators[request.group] = max(served, known)
        if request.error_code not in NOT_SERVED:
            self._served[request.group, broker] = request
        of, kind = self._clients.setdefault(request.client, {}), (request.api, request.error_code)
        of[kind] = max(of.get(kind, request), request, key=_arrival)
        if request.leads is not None:
            self._note_leader(request.group, (at_ms, request.leads, request.client))

    def _note_leader(self, group: str, elected: tuple[int, int, str]) -> None:
        # A group may move to another broker, so the latest line need not be read last.
        self._leaders[group] = max(elected, self._leaders.get(group, elected))


def _arrival(request: Request) -> float:
    return request.arrived_ms


def _request(broker: int, number: int, text: str, completed_ms: int) -> Request:
    start = text.index(request_log.COMPLETED)
    content: dict[str, Any] = request_log.parsed(text[start : text.rindex(" (")])
    header, request, response = content["requestHeader"], content["request"], content["response"]
    return Request(
        client=header["clientId"],
        api=header["requestApiKeyName"],
        group=request.get("groupId") or _configured(request),
        arrived_ms=completed_ms + LOG_CUT_MS - content["totalTimeMs"],
        completed_ms=completed_ms,
        error_code=_error_code(response),
        instance_id=request.get("groupInstanceId"),
        member_id=response.get("memberId", ""),
        removed=_removed(response),
        leads=_led(response),
        connection=content["connection"],
        broker=broker,
        line=number,
    )


def _configured(request: Mapping[str, Any]) -> str:
    """Return the group that IncrementalAlterConfigs names."""
    return next((resource["resourceName"] for resource in request.get("resources", ())), "")


def _led(response: Mapping[str, Any]) -> int | None:
    """Return the generation that a member is to lead by the answer to its JoinGroup."""
    leads = response.get("leader") and response["leader"] == response["memberId"]
    return response["generationId"] if leads and response["errorCode"] == Error.NONE else None


def _error_code(response: Mapping[str, Any]) -> int | None:
    if "responses" in response:  # IncrementalAlterConfigs
        response = response["responses"][0]
    if "topics" not in response:
        return response.get("errorCode")
    codes = [part["errorCode"] for topic in response["topics"] for part in topic["partitions"]]
    return next(filter(None, codes), Error.NONE if codes else None)


def _removed(response: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return what a LeaveGroup response says of members named by instance id (v3+)."""
    return tuple(
        (member["groupInstanceId"], member["errorCode"])
        for member in response.get("members", ())
        if "errorCode" in member and member["groupInstanceId"]
    )
