"""Group members on the wire: any version of every group request, well-behaved or not.

In: requests as bodies in the form of Kafka's JSON request log, over plain blocking sockets.
Out: answers in the same form, and everything said as an event file (`groupquake-events/1`).
It knows kio and sockets, nothing of ours but its errors; no gevent (which may patch its sockets).
"""

from loadtest.wire.bodies import NO_TOPIC_ID
from loadtest.wire.connection import Connection, Exchange, WireError
from loadtest.wire.event_log import EventLog
from loadtest.wire.member import FencedError, WireMember
from loadtest.wire.rebalance_holder import Holder
from loadtest.wire.schemas import Versions, negotiate

__all__ = [
    "NO_TOPIC_ID",
    "Connection",
    "EventLog",
    "Exchange",
    "FencedError",
    "Holder",
    "Versions",
    "WireError",
    "WireMember",
    "negotiate",
]
