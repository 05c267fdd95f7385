"""JoinGroups that no log has, since another one of the same member came before their answer.

A coordinator keeps one JoinGroup of a member waiting. When the next one arrives, the first is never
answered (`updateMemberAndRebalance`, in Scala and Java), and brokers log requests with their
answers. It shows by the client: a new connection to the same broker, and numbers that are left out.
Seen on 2.6.0: librdkafka gave up a connection 18 ms after it had sent a JoinGroup.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

Row = Mapping[str, Any]


def overtaken_joins(rows: Iterable[Row]) -> Sequence[Row]:
    """List the JoinGroups that logged ones may have overtaken, as rows without an answer.

    `rows` are a group's logged rows. Such a JoinGroup is like the one that is logged. It came after
    the client's answer before, on that answer's connection, and before the logged one.
    """
    return [*_overtaken(row for row in rows if row["template"] is None)]


def doubt(group: str, joins: Sequence[Row]) -> str:
    """Say why what is wrong with a group proves nothing."""
    clients = ", ".join(sorted({row["client_id"] for row in joins}))
    return (
        f"group {group}: what is wrong is explained if a JoinGroup of {clients} was overtaken by"
        " the next one, on a new connection: such a JoinGroup is never answered, and in no log"
    )


def _overtaken(requests: Iterable[Row]) -> Iterator[Row]:
    before: dict[tuple[str, str], Row] = {}
    readable = (row for row in requests if row["readable"] and row["arrived_ms"] is not None)
    for row in sorted(readable, key=lambda row: row["arrived_ms"]):
        last = before.get(client := (row["broker"], row["client_id"]))
        before[client] = row
        if (
            last is not None
            and row["api"] == "JOIN_GROUP"
            and row["connection"] != last["connection"]
            and row["correlation_id"] > last["correlation_id"] + 1
            and last["answered_ms"] < row["arrived_ms"]
        ):
            yield {
                **row,
                "id": f"{row['id']} overtook",
                "connection": last["connection"],
                "correlation_id": last["correlation_id"] + 1,
                "response": None,
                "error_code": None,
                "arrived_ms": last["answered_ms"],
                "earliest_ms": last["answered_ms"],
                "at_ms": last["answered_ms"],
                "latest_ms": row["arrived_ms"],
                "answered_ms": inf,
            }
