"""The tap: a proxy before the brokers that writes what goes over the wire, and can break it.

In: where the brokers are, and rules. Out: a listener for every broker, and a `group.log` for each.
It runs in a process of its own (`python -m chaos.tap`); it may import `kafka_protocol`.
"""

from chaos.tap.process import RunningTap, TapGoneError, TapSettings, has_ended, running
from chaos.tap.rules import Rule

__all__ = [
    "Rule",
    "RunningTap",
    "TapGoneError",
    "TapSettings",
    "has_ended",
    "running",
]
