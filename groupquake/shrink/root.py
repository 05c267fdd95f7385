"""The root of a failure: what has to be the same when a smaller experiment fails.

- Of rebalances: the entry of `expect` that is missed, the direction, and, of too many, the
  commonest reasons (half as often as the commonest one or more): each occurs again.
- Of a finding: its group, and the promises of KIP-345 that are broken there, where the experiment
  is judged by these; else its kind. Of partitions without owners at the end: the group.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from groupquake.simulate.forecast import Forecast, described, wanted
from groupquake.simulate.tally import Tally
from scenarios import Experiment


class Root(NamedTuple):
    """What failed, in words, and for which reasons there were rebalances, if these were too many.

    Only the commonest reasons are needed where it is looked for.
    """

    what: str
    reasons: Mapping[str, int] = {}

    def __str__(self) -> str:
        """Return it as people read it."""
        return " and ".join((self.what, *sorted(self.commonest)))

    @property
    def commonest(self) -> set[str]:
        """The reasons that most of the rebalances had: of a removal, also that of the return."""
        most = max(self.reasons.values(), default=0)
        return {why for why, count in self.reasons.items() if 2 * count >= most}

    def is_in(self, others: list["Root"]) -> bool:
        """Whether another experiment failed for it, too."""
        return any(self.what == one.what and self.commonest <= {*one.reasons} for one in others)


def missed(experiment: Experiment, tallies: Mapping[str, Tally]) -> Iterator[Root]:
    """Yield what the numbers of rebalances fail for."""
    for one in experiment.bounds:
        tally = tallies.get(one.group, Tally())
        total = tally.count(one.phase, one.reason)
        if total < one.rebalances.min:
            yield Root(f"fewer than {described(one)}")
        elif not wanted(one).holds(total):
            known = {one.reason or reason for _, reason in tally.rebalances}
            counts = {why: tally.count(one.phase, why) for why in known}
            yield Root(f"more than {described(one)}", {w: n for w, n in counts.items() if n})


def of_verdict(verdict: Mapping[str, Any] | None, experiment: Experiment) -> list[Root]:
    """Return the roots of a verdict: findings, rebalances, owners.

    There are none if it is no `fail`, or one of clients alone.
    """
    if verdict is None or verdict["verdict"] != "fail" or verdict.get("clients", {}).get("alone"):
        return []
    broken = verdict["broken_promises"] if verdict["judge"] == "kip-345" else {}
    proven = [one for one in verdict["findings"] if one["root"] and one["proven"]]
    named = [(one["group"], *broken.get(one["group"], [one["kind"]])) for one in proven]
    tallies: dict[str, Tally] = {}
    for name, group in verdict["groups"].items():
        of_phase = group["by_cause"].items()
        counts = {(phase, why): n for phase, of in of_phase for why, n in of.items()}
        tallies[name] = Tally(Counter(counts))
    unmet = verdict["expectations_unmet"]
    named += [(one["group"], one["what"]) for one in unmet if one["what"] != "rebalances"]
    return [*(Root(", ".join(words)) for words in named), *missed(experiment, tallies)]


def of_forecast(forecast: Forecast) -> list[list[Root]]:
    """Return for each course of a forecast what it fails for."""
    groups = forecast.groups.items()
    courses = [{name: one.tallies[i] for name, one in groups} for i in range(forecast.courses)]
    return [list(missed(forecast.experiment, course)) for course in courses]
