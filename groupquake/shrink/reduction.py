"""Delta debugging of an experiment: parts are left out as long as it still fails.

Lists lose halves, then quarters, down to single items; numbers and times half of themselves, down
to one and to `SHORTER_MS`. The order is fixed, and no candidate is tried twice.
"""

import json
from collections.abc import Callable
from typing import Any

from groupquake.timing import SHORTER_MS
from scenarios import Experiment, ScenarioError
from scenarios.durations import format_ms, parse_ms
from scenarios.faults.targeted import MemberFault
from scenarios.fields import Part
from scenarios.targets import Names

WHOLE = ("faults", "workload.wire_scripts", "workload.groups")
PARTS = (
    "faults.*.target.names", "faults.*.target.brokers", "faults.*.instances",
    "workload.groups.*.members", "workload.groups.*.members.*.count",
    "faults.*.at", "phases.impact", "phases.recovery",
)  # fmt: skip
LAST = ("faults.*.down_for", "faults.*.lasts", "faults.*.for")
"""Here a cluster is the likeliest to differ, and the larger candidate before is tried then."""


class Reduction:
    """Makes an experiment smaller while `fails` says that it still does.

    `accepted` are those that failed, from the first to the smallest.
    """

    def __init__(self, experiment: Experiment, fails: Callable[[Experiment], bool]) -> None:
        self.accepted, self._fails = [experiment], fails
        self._tried: dict[str, bool] = {}

    def run(self, **changes: Any) -> list[Experiment]:
        """Reduce until nothing more can be left out, after these changes of all candidates."""
        self.take(**changes)
        before = 0
        while before != (before := len(self.accepted)):
            self._fewer(WHOLE)
            self._first_members()
            self._fewer(PARTS)
        self._fewer(LAST)
        return self.accepted

    def take(self, **changes: Any) -> bool:
        """Make a candidate as `--set` does; take it if it is valid and fails."""
        changed = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
        try:
            candidate = self.accepted[-1].override(changed)
        except ScenarioError:
            return False
        text = candidate.dump()
        if candidate != self.accepted[-1]:
            if text not in self._tried:
                self._tried[text] = self._fails(candidate)
            self.accepted += [candidate] * self._tried[text]
        return candidate == self.accepted[-1]

    def _fewer(self, patterns: tuple[str, ...]) -> None:
        for pattern in patterns:
            for key, value in _places(pattern, self.accepted[-1]):
                if isinstance(value, list):
                    self._fewest(key, value)
                elif isinstance(value, str) and value != "all":
                    self._least(key, parse_ms(value), SHORTER_MS, format_ms)
                elif isinstance(value, int):
                    self._least(key, value, 1, int)

    def _fewest(self, key: str, items: list[Any]) -> None:
        size = (len(items) + 1) // 2
        while size:
            start = 0
            while start < len(items):
                fewer = items[:start] + items[start + size :]
                if self.take(**{key: fewer}):
                    items = fewer
                else:
                    start += size
            size //= 2

    def _least(self, key: str, value: int, unit: int, written: Callable[[int], Any]) -> None:
        step = max(value // unit // 2, 1) * unit
        while step:
            if value > step and self.take(**{key: written(value - step)}):
                value -= step
            else:
                step = step // unit // 2 * unit

    def _first_members(self) -> None:
        """Let faults hit the first members of their groups, by name; others can be left out."""
        for i, fault in enumerate(self.accepted[-1].faults):
            one = self.accepted[-1]
            if hit := fault.known_targets(one) if isinstance(fault, MemberFault) else ():
                like = (hit[0].group, hit[0].kind)
                first = [m.name for m in one.members() if (m.group, m.kind) == like]
                aimed = {"target": Names(names=tuple(first[: len(hit)])), "group": None}
                self.take(**{f"faults.{i}": written(fault.model_copy(update=aimed))})


def written(part: Part) -> Any:
    """Return a part as a file spells it."""
    return part.model_dump(mode="json", by_alias=True, exclude_none=True)


def _places(pattern: str, experiment: Experiment) -> list[tuple[str, Any]]:
    """Return the keys that a pattern stands for, with what stands there."""
    found: list[tuple[str, Any]] = [("", written(experiment))]
    for part in pattern.split("."):
        found = [
            (f"{key}.{name}".lstrip("."), value)
            for key, here in found
            for name, value in (here.items() if isinstance(here, dict) else enumerate(here))
            if part in ("*", name)
        ]
    return found
