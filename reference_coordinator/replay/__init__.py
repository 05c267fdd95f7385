"""Replay: a group's evidence in; what the oracle explains of it, and what it does not, out.

The oracle is fed requests, timers and record outcomes alone. Responses and coordinator lines are
what it is compared with; they bind only what Kafka leaves open (`Choices`, the instant of a timer,
the order of requests that overlap).
"""

from reference_coordinator.replay.evidence import (
    EpochEvent,
    Evidence,
    Hint,
    HintKind,
    ObservedRequest,
    Outage,
    Stall,
    Tolerance,
)
from reference_coordinator.replay.replay import replay
from reference_coordinator.replay.result import Checked, ExpectedLine, Replay, Violation

__all__ = [
    "Checked",
    "EpochEvent",
    "Evidence",
    "ExpectedLine",
    "Hint",
    "HintKind",
    "ObservedRequest",
    "Outage",
    "Replay",
    "Stall",
    "Tolerance",
    "Violation",
    "replay",
]
