"""JoinGroups that no log has, since another one of the same member came before their answer.

A coordinator keeps one JoinGroup of a member waiting. When the next one arrives, the first is never
answered (`updateMemberAndRebalance`, in Scala and Java), and brokers log requests with their
answers. It shows by the numbers of a librdkafka client: it goes on counting on its next connection
to the same broker, whose first request is ApiVersions. So a JoinGroup that comes next after an
answer has a number higher by two; where one more was sent, by three at least. Seen on 2.6.0:
librdkafka gave up a connection 18 ms after it had sent a JoinGroup.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

Row = Mapping[str, Any]

RECONNECTED = 2
"""How much higher the number of a group's first request on a new connection is."""


def overtaken_joins(rows: Iterable[Row], clients: Collection[str]) -> Sequence[Row]:
    """List the JoinGroups that logged ones may have overtaken, as rows without an answer.

    `rows` are a group's logged rows, `clients` the ids of those whose numbers are known. Such a
    JoinGroup is like the one that is logged. It came after the client's answer before, on that
    answer's connection, which has no later request, and before the logged one; while the client
    asked no other broker.
    """
    rows = list(rows)
    lines = [row for row in rows if row["template"] is not None]
    requests = [
        row
        for row in rows
        if row["template"] is None and row["readable"] and row["client_id"] in clients
    ]
    requests.sort(key=lambda row: row["arrived_ms"])
    return [*_overtaken(requests, lines)]


def doubt(group: str, joins: Sequence[Row]) -> str:
    """Say why what is wrong with a group proves nothing."""
    clients = ", ".join(sorted({row["client_id"] for row in joins}))
    return (
        f"group {group}: what is wrong is explained if a JoinGroup of {clients} was overtaken by"
        " the next one, on a new connection: such a JoinGroup is never answered, and in no log"
    )


def _overtaken(requests: Sequence[Row], lines: Sequence[Row]) -> Iterator[Row]:
    last_of = {row["connection"]: row for row in requests}
    before: dict[str, Row] = {}
    for row in requests:
        last = before.get(row["client_id"])
        before[row["client_id"]] = row
        if (
            row["api"] == "JOIN_GROUP"
            and (member := json.loads(row["request"])["memberId"])
            and last is not None
            and last is last_of[last["connection"]]
            and last["broker"] == row["broker"]
            and last["connection"] != row["connection"]
            and row["correlation_id"] > last["correlation_id"] + RECONNECTED
            and last["answered_ms"] < row["arrived_ms"]
        ):
            yield _unanswered(row, last, member, lines)


def _unanswered(row: Row, last: Row, member: str, lines: Iterable[Row]) -> Row:
    """Return the JoinGroup that a logged one overtook; a line about its member tells when."""
    from_ms, until_ms = last["answered_ms"], row["arrived_ms"]
    times = (line["at_ms"] for line in lines if member in line["message"])
    shown_ms = min((at_ms for at_ms in times if from_ms < at_ms < until_ms), default=from_ms)
    return {
        **row,
        "id": f"{row['id']} overtook",
        "connection": last["connection"],
        "correlation_id": last["correlation_id"] + 1,
        "response": None,
        "error_code": None,
        "arrived_ms": from_ms,
        "earliest_ms": from_ms,
        "at_ms": shown_ms,
        "latest_ms": until_ms,
        "answered_ms": inf,
    }
