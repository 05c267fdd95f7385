"""When a fault on the wire had a hold on a client."""

from typing import NamedTuple


class Disturbance(NamedTuple):
    """A time in which the tap held up, dropped or doubled what a client and brokers sent."""

    group: str
    client: str
    from_ms: float
    until_ms: float
