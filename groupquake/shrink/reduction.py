"""Delta debugging of an experiment: parts are left out as long as it still fails.

Lists lose halves, then quarters, down to single items; numbers and times half of themselves, down
to one and to `SHORTER_MS`. The order is fixed, and no candidate is tried twice.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from chaos.plan import Plan, make_plan
from groupquake.timing import SHORTER_MS
from scenarios import Experiment, MemberSpec, ScenarioError
from scenarios.durations import format_ms, parse_ms

LASTING = ("down_for", "lasts", "for")


class Reduction:
    """Makes an experiment smaller while `fails` says that it still does.

    `accepted` has the experiments that failed, from the first to the smallest.
    """

    def __init__(
        self, experiment: Experiment, seed: int, fails: Callable[[Experiment], bool]
    ) -> None:
        self.accepted = [experiment]
        self.tried: dict[str, bool] = {}
        """What came of each candidate, by its text."""
        self._seed, self._fails = seed, fails

    @property
    def smallest(self) -> Experiment:
        """The smallest that failed so far."""
        return self.accepted[-1]

    def run(self) -> None:
        """Reduce until nothing more can be left out."""
        before = None
        while before is not self.smallest:
            before = self.smallest
            self._fewest("faults")
            self._fewest("workload.wire_scripts")
            self._fewest("workload.groups")
            self.take({"faults": single(make_plan(self.smallest, self._seed), self.smallest)})
            self._fewest("faults")
            for i in range(len(self.smallest.faults)):
                self._targets(i)
            for i in range(len(self.smallest.workload.groups)):
                self._fewest(f"workload.groups.{i}.members")
                for j in range(len(self.smallest.workload.groups[i].members)):
                    self._least(f"workload.groups.{i}.members.{j}.count", 1)
            self._shorter("at")
            self._least("phases.impact", SHORTER_MS)
            self._least("phases.recovery", SHORTER_MS)
        # last, since here a cluster is the likeliest to differ: a larger one is then tried first
        for key in LASTING:
            self._shorter(key)

    def _shorter(self, key: str) -> None:
        """Make a time of each fault smaller."""
        for i in range(len(self.smallest.faults)):
            self._least(f"faults.{i}.{key}", SHORTER_MS)

    def take(self, changes: Mapping[str, Any]) -> bool:
        """Make a candidate as `--set` does; take it if it is valid and fails."""
        written = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
        try:
            candidate = self.smallest.override(written)
        except ScenarioError:
            return False
        text = candidate.dump()
        if candidate == self.smallest:
            return True
        if text not in self.tried:
            self.tried[text] = self._fails(candidate)
        if self.tried[text]:
            self.accepted.append(candidate)
        return self.tried[text]

    def _fewest(self, key: str) -> None:
        """Leave out what a list can lack."""
        items = self._at(key)
        size = len(items) // 2 if isinstance(items, list) else 0
        while size or (size := int(len(items or ()) == 1)):
            start = 0
            while start < len(items):
                fewer = items[:start] + items[start + size :]
                if self.take({key: fewer}):
                    items = fewer
                else:
                    start += size
            if size == 1:
                return
            size //= 2

    def _targets(self, i: int) -> None:
        """Hit fewer members or brokers, and the first members of their group."""
        for key in ("target.names", "target.brokers", "instances"):
            self._fewest(f"faults.{i}.{key}")
        if hit := hit_by(self.smallest.faults[i], self.smallest):
            like = (hit[0].group, hit[0].kind)
            first = [m.name for m in self.smallest.members() if (m.group, m.kind) == like]
            self.take({f"faults.{i}.target.names": first[: len(hit)]})

    def _least(self, key: str, unit: int) -> None:
        """Make a number or a time smaller, by half of it, then by less, down to one unit."""
        found = self._at(key)
        value = parse_ms(found) if isinstance(found, str) else found or 0
        step = max(value // unit // 2, 1) * unit
        while step:
            less = value - step
            if less > 0 and self.take({key: format_ms(less) if isinstance(found, str) else less}):
                value = less
            else:
                step = step // unit // 2 * unit

    def _at(self, key: str) -> Any:
        """Return what stands at a key; None if nothing does."""
        here: Any = self.smallest.model_dump(mode="json", by_alias=True, exclude_none=True)
        for part in key.split("."):
            if isinstance(here, list):
                here = here[int(part)]
            else:
                here = here.get(part) if isinstance(here, dict) else None
        return here


def hit_by(fault: Any, experiment: Experiment) -> tuple[MemberSpec, ...]:
    """Return the members that a fault hits, as far as the file tells; none for other faults."""
    known = getattr(fault, "known_targets", None)
    return known(experiment) if known else ()


def single(plan: Plan, experiment: Experiment) -> list[dict[str, Any]]:
    """Return the steps of a plan as faults of a file, with the names of the members they hit."""
    steps = []
    for step in plan.steps:
        fault = step.what.model_dump(mode="json", by_alias=True, exclude_none=True)
        if hit := hit_by(step.what, experiment):
            fault["target"] = {"names": [member.name for member in hit]}
            fault.pop("group", None)
        steps.append(fault)
    return steps
