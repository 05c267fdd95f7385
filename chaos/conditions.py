"""Conditions: a fault waits until its group is in a state, or has so many members."""

import time

from chaos.errors import ChaosError
from chaos.faults import FaultContext, Finding
from scenarios.faults.schedule import When

_POLL_S = 0.02
"""A state may last for some milliseconds only."""


def await_condition(when: When, context: FaultContext) -> Finding | None:
    """Wait until the condition holds, or its time is up; None if the run is to end.

    The state is that of the latest line of a coordinator; if the logs have none of the group, as on
    a cluster whose logs cannot be read, it is what DescribeGroups answers.
    """
    deadline = time.monotonic() + when.within_ms / 1000
    while True:
        seen, evidence = _look(when, context)
        if seen == (when.state or when.members):
            return Finding(True, f"{when} ({evidence})")
        if time.monotonic() >= deadline:
            return Finding(
                False, f"not injected: {when} was awaited for {when.within_ms} ms; {evidence}"
            )
        if context.stop.wait(_POLL_S):
            return None


def _look(when: When, context: FaultContext) -> tuple[str | int | None, str]:
    """Return what a group is or has now, and how that is known."""
    if when.state is not None:
        context.witness.poll()
        if known := context.witness.state(when.group):
            return known.state, f"{known.state} by {known.place}"
    probe = "group.members" if when.state is None else "group.state"
    try:
        found = context.view.probes()[probe](when.group)
    except ChaosError as error:
        return None, str(error)
    return found, f"{found} by DescribeGroups"
