"""The root of a failure: what must be the same for a smaller experiment to fail as a larger one.

- Of an expectation on rebalances: group, phase, reason and bounds as the file has them, whether
  there were too many or too few, and, of too many, the commonest reasons (as often as half of the
  commonest or more): each must occur again.
- Of a finding: its group and the promises of KIP-345 that are broken there, where the experiment is
  judged by these; else its kind. Of owners that are missing at the end: the group.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from groupquake.simulate.forecast import Forecast, described
from reports.judgement.expectations import UNOWNED
from scenarios import Experiment
from scenarios.model import Expectation

Counts = Mapping[str, Mapping[str, int]]
"""Rebalances of one group by phase and reason."""


@dataclass(frozen=True)
class Root:
    """Why an experiment failed; `wanted` is the expectation on rebalances, if it was one."""

    group: str
    what: str
    wanted: Expectation | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return it as people read it."""
        reasons = f" ({', '.join(sorted(self.commonest))})" if self.counts else ""
        return f"{self.what}{reasons}" if self.wanted else f"{self.group}: {self.what}"

    @property
    def commonest(self) -> set[str]:
        """The reasons that most of the rebalances had: of a removal, also that of the return."""
        most = max(self.counts.values(), default=0)
        return {reason for reason, count in self.counts.items() if 2 * count >= most}

    def is_of(self, other: "Root") -> bool:
        """Whether another failure has this root."""
        same = (self.group, self.what) == (other.group, other.what)
        return same and self.commonest <= other.counts.keys()


def missed(experiment: Experiment, counted: Mapping[str, Counts]) -> Iterator[Root]:
    """Yield what the numbers of rebalances, by group, fail for."""
    for one in experiment.bounds:
        counts: dict[str, int] = {}
        for phase, of_phase in counted.get(one.group, {}).items():
            for reason, count in of_phase.items():
                if one.phase in (None, phase) and one.reason in (None, reason) and count:
                    counts[reason] = counts.get(reason, 0) + count
        total, most = sum(counts.values()), one.rebalances.max
        if total < one.rebalances.min:
            yield Root(one.group, f"fewer than {described(one)}", one)
        elif most is not None and total > most:
            yield Root(one.group, f"more than {described(one)}", one, counts)


def of_verdict(verdict: Mapping[str, Any], experiment: Experiment) -> list[Root]:
    """Return the roots of a verdict; none if it is not `fail`."""
    if verdict["verdict"] != "fail":
        return []
    broken = verdict["broken_promises"] if verdict["judge"] == "kip-345" else {}
    found = [
        Root(one["group"], ", ".join(sorted(broken.get(one["group"], ()))) or one["kind"])
        for one in verdict["findings"]
        if one["root"] and one["proven"]
    ]
    counted = {name: group["by_cause"] for name, group in verdict["groups"].items()}
    found += missed(experiment, counted)
    unmet = verdict["expectations_unmet"]
    return found + [Root(one["group"], UNOWNED) for one in unmet if one["what"] == UNOWNED]


def of_forecast(forecast: Forecast) -> list[list[Root]]:
    """Return for each course of a forecast what it fails for."""
    courses = []
    for number in range(forecast.courses):
        counted: dict[str, dict[str, dict[str, int]]] = {}
        for name, group in forecast.groups.items():
            for (phase, reason), count in group.tallies[number].rebalances.items():
                counted.setdefault(name, {}).setdefault(phase, {})[reason] = count
        courses.append(list(missed(forecast.experiment, counted)))
    return courses
