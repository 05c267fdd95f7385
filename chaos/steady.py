"""What a group has to be: before the first fault (the steady state), and before a single one."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

from chaos.errors import ChaosError
from chaos.fault_context import FaultContext
from chaos.journal import Journal
from chaos.timing import REMOTE_POLL_S, STATE_POLL_S
from scenarios import Experiment
from scenarios.faults.base import Finding
from scenarios.targets import When


@dataclass(frozen=True, slots=True)
class Observation:
    """What one probe observed last, and what it expects."""

    name: str
    probe: str
    group: str
    tolerance: int | str
    observed: int | str

    @property
    def holds(self) -> bool:
        """Whether it observed what it expects."""
        return self.observed == self.tolerance

    def __str__(self) -> str:
        seen = f"{self.probe} of {self.group} is {self.observed}"
        return f"{self.name}: {seen}" + ("" if self.holds else f", not {self.tolerance}")


class Steady(NamedTuple):
    """Whether every probe held at the same time, and what each observed last."""

    ok: bool
    probes: tuple[Observation, ...]


def await_steady(
    experiment: Experiment,
    probe_functions: Mapping[str, Callable[[str], int | str]],
    journal: Journal,
    abort: threading.Event,
    also: Callable[[], tuple[Observation, ...]] = tuple,
) -> Steady:
    """Probe until all probes hold, `within` has passed or `abort` is set; journal the result.

    `probe_functions` take the name of a group and are keyed by their names in the file, such as
    `group.members`. A probe that fails raises ChaosError, whose text is then what was observed.
    `also` observes what has to hold of every load.
    """
    deadline = time.monotonic() + experiment.steady_state.within_ms / 1000
    sizes = Counter(member.group for member in experiment.members())
    while True:
        declared = tuple(
            Observation(
                probe.name,
                probe.probe,
                probe.group,
                sizes[probe.group] if probe.tolerance == "all" else probe.tolerance,
                _observe(probe_functions[probe.probe], probe.group),
            )
            for probe in experiment.probes
        )
        probes = declared + also()
        ok = all(probe.holds for probe in probes)
        if ok or time.monotonic() >= deadline or abort.wait(REMOTE_POLL_S):
            journal.write("steady_state", ok=ok, probes=[asdict(probe) for probe in probes])
            return Steady(ok, probes)


def _observe(function: Callable[[str], int | str], group: str) -> int | str:
    try:
        return function(group)
    except ChaosError as error:
        return str(error)


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
        if context.stop.wait(STATE_POLL_S):
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
