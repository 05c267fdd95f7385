"""`python -m selftest foresight`: forecasts beside what judged runs came to."""

import json
from collections import Counter
from pathlib import Path

import click

from chaos.plan import make_plan
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.simulate.forecast import PHASES, foresee
from scenarios import find

ROW = "{:24} {:8} {:20} {:10} {:18} {:>5} {:>8}  {}"


@click.command()
@click.argument(
    "runs", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
def foresight(runs: tuple[Path, ...]) -> Exit:
    """Foresee the experiments of judged runs, and compare; fails if one lies outside.

    A row is a group, a phase, and a reason for rebalances or their number in all.
    """
    of: Counter[str] = Counter()
    Console.result(
        ROW.format("experiment", "release", "group", "phase", "reason", "seen", "foreseen", "")
    )
    for run in runs:
        verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
        experiment = find(str(run / "experiment.yaml"))
        forecast = foresee(experiment, make_plan(experiment, verdict["seed"]))
        for name, group in forecast.groups.items():
            by_cause = verdict["groups"].get(name, {}).get("by_cause", {})
            for phase in PHASES:
                seen = by_cause.get(phase, {})
                for reason in (None, *sorted({*seen, *group.reasons(phase)})):
                    count = sum(seen.values()) if reason is None else seen.get(reason, 0)
                    due = group.rebalances(phase, reason)
                    how = "exact" if due.least == due.most else "interval"
                    how = how if due.holds(count) else "OUTSIDE"
                    of[how] += 1
                    Console.result(
                        ROW.format(
                            *(experiment.name, experiment.cluster.version, name, phase),
                            *(reason or "in all", count, str(due), how),
                        )
                    )
    Console.result(", ".join(f"{count} {how}" for how, count in sorted(of.items())))
    return Exit.FAIL if of["OUTSIDE"] else Exit.PASS
