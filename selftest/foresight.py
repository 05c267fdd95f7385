"""`python -m selftest foresight`: forecasts beside what judged runs came to, as a table."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import click

from chaos.plan import make_plan
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.simulate.forecast import PHASES, foresee
from groupquake.simulate.tally import COUNTED
from reports.judgement.run.forecast import Interval
from scenarios import find
from scenarios.model import Phase

IN_ALL = "in all"
HEAD = ("experiment", "release", "seeds", "inside", "exact", "exact from impact to recovery",
        "rebalances in impact: foreseen (seen)")  # fmt: skip


class Count(NamedTuple):
    """How often a group rebalanced in a phase of a run, and how often it was to."""

    experiment: str
    release: str
    seed: int
    group: str
    phase: Phase
    reason: str
    seen: int
    due: Interval

    @property
    def is_inside(self) -> bool:
        """Whether it is as foreseen."""
        return self.due.holds(self.seen)

    @property
    def is_exact(self) -> bool:
        """Whether it is, and nothing else was."""
        return self.is_inside and self.due.least == self.due.most

    def __str__(self) -> str:
        """Return it as a line."""
        where = f"{self.experiment} {self.release}, seed {self.seed}: {self.group}, {self.phase}"
        return f"{where}, {self.reason}: {self.seen} rebalances, {self.due} foreseen"


def counts(run: Path) -> Iterator[Count]:
    """Foresee the experiment of a judged run; yield each count of the run beside what was due."""
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    experiment, seed = find(str(run / "experiment.yaml")), verdict["seed"]
    forecast = foresee(experiment, make_plan(experiment, seed))
    for name, group in forecast.groups.items():
        by_cause = verdict["groups"].get(name, {}).get("by_cause", {})
        for phase in PHASES:
            seen = by_cause.get(phase, {})
            at = (experiment.name, experiment.cluster.version, seed, name, phase)
            yield Count(*at, IN_ALL, sum(seen.values()), group.rebalances(phase))
            for reason in sorted({*seen, *group.reasons(phase)}):
                yield Count(*at, reason, seen.get(reason, 0), group.rebalances(phase, reason))


def table(found: Sequence[Count], runs: int) -> Iterator[str]:
    """Yield a table of Markdown: a row for each experiment and release, and one for all runs."""
    yield _row(*HEAD)
    yield _row("---", "---", "---", "--:", "--:", "--:", "---")
    in_order = sorted(found, key=lambda one: (one.experiment, one.release, one.seed))
    for (name, release), some in groupby(in_order, key=attrgetter("experiment", "release")):
        of = list(some)
        impact = [one for one in of if one.phase == "impact" and one.reason == IN_ALL]
        by_group = {one.group: [other for other in impact if other.group == one.group]
                    for one in impact}  # fmt: skip
        seeds = ", ".join(map(str, dict.fromkeys(one.seed for one in of)))
        said = "; ".join(f"{group} {_foreseen(few)}" for group, few in by_group.items())
        yield _row(f"`{name}`", release, seeds, *_shares(of), said)
    yield _row(f"all, {runs} runs", "", "", *_shares(found), "")


def _shares(of: Sequence[Count]) -> tuple[str, str, str]:
    """Return how many of some counts are inside, how many are exact, and of those that count."""
    between = [one for one in of if one.phase in COUNTED]
    inside, exact = sum(one.is_inside for one in of), sum(one.is_exact for one in of)
    exact_between = sum(one.is_exact for one in between)
    return f"{inside} of {len(of)}", f"{exact / len(of):.0%}", f"{exact_between / len(between):.0%}"


def _foreseen(of: Sequence[Count]) -> str:
    """Return what was due in some runs, and what was seen in each."""
    due = ", ".join(dict.fromkeys(str(one.due) for one in of))
    return f"{due} ({', '.join(str(one.seen) for one in of)})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


@click.command()
@click.argument(
    "runs", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
def foresight(runs: tuple[Path, ...]) -> Exit:
    """Foresee the experiments of judged runs, and compare; fails if a count lies outside.

    A count is of a group and a phase, for a reason or in all. The table is of docs/foresight.md.
    """
    found = [one for run in runs for one in counts(run)]
    outside = [one for one in found if not one.is_inside]
    Console.result(*table(found, len(runs)), *map(str, outside))
    return Exit.FAIL if outside else Exit.PASS
