"""A group's members by its requests: who joined, was last accepted, was evicted or fenced."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reference_coordinator.replay.lateness import Lateness
from reports.judgement.parsing import HANDLING_DELAY_MS

Json = dict[str, Any]
LoggedRow = Mapping[str, Any]
"""A row of the table `requests` or, where it has a `template`, of `transitions`."""

JOINS = """
    group STRING, client_id STRING, member_id STRING, generation INT, answered_ms DOUBLE,
    static BOOLEAN
"""
"""Every JoinGroup with the response NONE."""
HEARD = "group STRING, member_id STRING, last_ms DOUBLE"
"""When a response last accepted a member id."""
EXPULSIONS = "group STRING, at_ms DOUBLE, subject STRING, api STRING"
"""Evictions of a member id (`api` is empty), and responses that fence a client."""

ACCEPTED = (None, Error.NONE, Error.REBALANCE_IN_PROGRESS)
"""Error codes of responses to members: NONE and REBALANCE_IN_PROGRESS. OffsetCommit has no
top-level error code."""
FENCED = re.compile(rf'"errorCode":{Error.FENCED_INSTANCE_ID}[,}}]')
"""FENCED_INSTANCE_ID (KIP-345) of a response, or of one of its members or partitions."""
EVICTED = "session_expired"
"""The template of the coordinator's line about a member whose session expired."""
OBSERVED_COLUMNS = (
    "id", "broker", "api", "api_version", "client_id", "connection", "earliest_ms", "at_ms",
    "latest_ms", "answered_ms", "correlation_id",
)  # fmt: skip

LOGGED_WITHIN_MS = 100.0
"""How soon a broker that goes on writes the line of a request that it had answered before."""


class Request:
    """A readable request with its bodies parsed; `observed` is what the oracle sees of it."""

    __slots__ = ("observed", "request", "response", "row")

    def __init__(self, row: LoggedRow) -> None:
        """Take a row of the table `requests`."""
        self.row = row
        self.request: Json = json.loads(row["request"])
        self.response: Json = json.loads(row["response"])
        seen = {name: row[name] for name in OBSERVED_COLUMNS}
        seen["serial"] = seen.pop("correlation_id")
        self.observed = ObservedRequest(**seen, request=self.request, response=self.response)

    def held_up(self, lateness: Lateness) -> ObservedRequest:
        """Return what the oracle sees, acted on as late as stalls of the broker allow.

        And as early: where the broker stood still between reading the clock and writing the line,
        the whole request seems to have come so much too late.
        """
        seen = self.observed
        latest_ms, earliest_ms = seen.latest_ms, seen.earliest_ms
        if latest_ms < seen.answered_ms:  # it may have waited for its turn, see `parsing`
            done_ms = latest_ms - HANDLING_DELAY_MS
            latest_ms = min(seen.answered_ms, lateness.latest(done_ms, HANDLING_DELAY_MS))
        for stall in lateness.proven:
            if abs(seen.answered_ms - stall.until_ms) <= LOGGED_WITHIN_MS:
                earliest_ms = min(earliest_ms, seen.earliest_ms - stall.until_ms + stall.from_ms)
        if (earliest_ms, latest_ms) == (seen.earliest_ms, seen.latest_ms):
            return seen
        taken_ms = seen.started_ms
        return replace(seen, earliest_ms=earliest_ms, latest_ms=latest_ms, taken_ms=taken_ms)

    @property
    def member_id(self) -> str | None:
        """The member id of the request: of LeaveGroup the first, of JoinGroup the new one."""
        members = self.request.get("members")
        named: list[str | None] = [members[0].get("memberId")] if members else []
        named += [self.response.get("memberId")] if self.row["api"] == "JOIN_GROUP" else []
        named += [self.request.get("memberId")]
        return next((name for name in named if name is not None), None)


def joins(requests: Iterable[Request]) -> Iterator[Json]:
    """Yield the rows of `JOINS`, without their group."""
    for one in requests:
        if one.row["api"] == "JOIN_GROUP" and one.row["error_code"] == 0:
            yield {
                "client_id": one.row["client_id"],
                "member_id": one.response.get("memberId"),
                "generation": one.response.get("generationId"),
                "answered_ms": one.row["answered_ms"],
                "static": one.request.get("groupInstanceId") is not None,
            }


def heard(requests: Iterable[Request]) -> Iterator[Json]:
    """Yield the rows of `HEARD`, without their group."""
    last_ms: dict[str | None, float] = {}
    for one in requests:
        if one.row["error_code"] in ACCEPTED:
            member_id, answered_ms = one.member_id, one.row["answered_ms"]
            last_ms[member_id] = max(last_ms.get(member_id, answered_ms), answered_ms)
    return ({"member_id": member_id, "last_ms": at_ms} for member_id, at_ms in last_ms.items())


def expulsions(requests: Iterable[LoggedRow], lines: Iterable[LoggedRow]) -> Iterator[Json]:
    """Yield the rows of `EXPULSIONS`, without their group: evictions from lines, then fences."""
    for line in lines:
        if line["template"] == EVICTED:
            yield {"at_ms": line["at_ms"], "subject": line["member"], "api": ""}
    for row in requests:
        if row["readable"] and FENCED.search(row["response"]):
            client, api, at_ms = (row[name] for name in ("client_id", "api", "answered_ms"))
            yield {"at_ms": at_ms, "subject": client, "api": api}
