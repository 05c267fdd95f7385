"""Replay: a group's evidence in; expected rebalances, checked responses and violations out.

The oracle gets only requests, timers and record outcomes. Its effects are compared with responses
and coordinator lines; these bind only what Kafka leaves open (`Choices`, the instant of a timer,
the order of requests that overlap).
"""

from reference_coordinator.replay.evidence import (
    EpochEvent,
    Evidence,
    Hint,
    HintKind,
    ObservedRequest,
    Outage,
    Parting,
    Stall,
)
from reference_coordinator.replay.expected_lines import Says
from reference_coordinator.replay.group_replay import GroupReplay, replay
from reference_coordinator.replay.result import Checked, ExpectedLine, Replay, Violation
from reference_coordinator.timing import Tolerance

__all__ = [
    "Checked",
    "EpochEvent",
    "Evidence",
    "ExpectedLine",
    "GroupReplay",
    "Hint",
    "HintKind",
    "ObservedRequest",
    "Outage",
    "Parting",
    "Replay",
    "Says",
    "Stall",
    "Tolerance",
    "Violation",
    "replay",
]
