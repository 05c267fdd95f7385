"""How long faults disturb: those on the wire their clients, and those on brokers writes."""

from typing import NamedTuple

CATCHING_UP_MS = 10_000
"""How long after a broker is back writes may fail because too few replicas are in sync."""


class Disturbance(NamedTuple):
    """A time in which the tap held up, dropped or doubled what a client and brokers sent."""

    group: str
    client: str
    from_ms: float
    until_ms: float
