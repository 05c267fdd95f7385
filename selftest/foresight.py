"""`python -m selftest foresight`: forecasts beside what judged runs came to, as a table."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pandas as pd

from chaos.plan import make_plan
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.simulate.forecast import foresee
from groupquake.simulate.tally import COUNTED
from reports.judgement.run.forecast import Foreseen, beside, in_words
from scenarios import find

HEAD = ("experiment", "release", "seeds", "inside", "exact", "exact from impact to recovery",
        "rebalances in impact: foreseen (seen)")  # fmt: skip


def counts(run: Path) -> Iterator[dict[str, Any]]:
    """Foresee the experiment of a judged run; yield each count of the run beside what was due."""
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    experiment, seed = find(str(run / "experiment.yaml")), verdict["seed"]
    forecast = msgspec.json.encode(foresee(experiment, make_plan(experiment, seed)).as_dict())
    for row in beside(msgspec.json.decode(forecast, type=Foreseen), verdict["groups"]):
        exact = not row["outside"] and ".." not in row["expected"]
        of_run = {"release": experiment.cluster.version, "seed": seed, "exact": exact}
        yield {"experiment": experiment.name, **of_run, **row}


def table(found: pd.DataFrame, runs: int) -> Iterator[str]:
    """Yield a table of Markdown: a row for each experiment and release, and one for all runs."""
    yield _row(*HEAD)
    yield _row("---", "---", "---", "--:", "--:", "--:", "---")
    for (name, release), of in found.sort_values("seed", kind="stable").groupby(
        ["experiment", "release"]
    ):
        impact = of[(of.phase == "impact") & (of.reason == "total")].groupby("group", sort=False)
        said = (
            f"{group} {', '.join(few.expected.unique())} ({', '.join(map(str, few.observed))})"
            for group, few in impact
        )
        seeds = ", ".join(map(str, of.seed.unique()))
        yield _row(f"`{name}`", release, seeds, *_shares(of), "; ".join(said))
    yield _row(f"all, {runs} runs", "", "", *_shares(found), "")


def _shares(of: pd.DataFrame) -> tuple[str, str, str]:
    """Return how many of some counts are inside, how many are exact, and of those that count."""
    between = of[of.phase.isin(COUNTED)]
    inside = f"{(~of.outside).sum()} of {len(of)}"
    return inside, f"{of.exact.mean():.0%}", f"{between.exact.mean():.0%}"


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
    found = pd.DataFrame([row for run in runs for row in counts(run)])
    outside = [
        f"{row['experiment']} {row['release']}, seed {row['seed']}: {in_words(row)}"
        for row in found[found.outside].to_dict("records")
    ]
    Console.result(*table(found, len(runs)), *outside)
    return Exit.FAIL if outside else Exit.PASS
