"""Group members on the wire: any version of every group request, well-behaved or not.

In: request bodies in the form of Kafka's JSON request log. Out: response bodies in the same form,
and every exchange in an event file (`groupquake-events/1`).
`Connection` sends requests, `WireMember` has those of a member, `GroupClient` keeps the protocol by
them, and wire scripts do what they like. It uses kio and plain sockets: under Locust, which patches
them, a wait lets other greenlets run.
"""

from kafka_protocol.kio_bodies import NO_TOPIC_ID
from loadtest.wire.connection import Connection, Exchange, Versions, WireError, negotiate
from loadtest.wire.event_log import EventLog

__all__ = [
    "NO_TOPIC_ID",
    "Connection",
    "EventLog",
    "Exchange",
    "Versions",
    "WireError",
    "negotiate",
]
