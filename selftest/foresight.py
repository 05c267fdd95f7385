"""`python -m selftest foresight`: forecasts beside what judged runs came to, as a table."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec
import pandas as pd

from chaos.plan import make_plan
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.simulate.forecast import foresee
from groupquake.simulate.tally import COUNTED
from reports.judgement.run.forecast import Foreseen, beside, outside
from scenarios import find

HEAD = ("experiment", "release", "seeds", "inside", "exact", "exact from impact to recovery",
        "rebalances in impact: foreseen (seen)")  # fmt: skip


def counts(run: Path) -> pd.DataFrame:
    """Foresee the experiment of a judged run; return a row for each count, as `beside` has it."""
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    experiment, seed = find(str(run / "experiment.yaml")), verdict["seed"]
    forecast = foresee(experiment, make_plan(experiment, seed))
    foreseen = msgspec.convert(forecast.as_dict(), Foreseen)
    return pd.DataFrame(beside(foreseen, verdict["groups"])).assign(
        experiment=experiment.name, release=experiment.cluster.version, seed=seed
    )


def table(found: pd.DataFrame, runs: int) -> Iterator[str]:
    """Yield a table of Markdown: a row for each experiment and release, and one for all runs."""
    yield _row(*HEAD)
    yield _row("---", "---", "---", "--:", "--:", "--:", "---")
    in_order = found.sort_values("seed", kind="stable")
    for (name, release), of in in_order.groupby(["experiment", "release"]):
        impact = of[(of["phase"] == "impact") & (of["reason"] == "total")]
        said = "; ".join(
            f"{group} {_listed(few['expected'].unique())} ({_listed(few['observed'])})"
            for group, few in impact.groupby("group", sort=False)
        )
        yield _row(f"`{name}`", release, _listed(of["seed"].unique()), *_shares(of), said)
    yield _row(f"all, {runs} runs", "", "", *_shares(found), "")


def _shares(of: pd.DataFrame) -> tuple[str, str, str]:
    """Return how many of some counts are inside, how many are exact, and of those that count."""
    exact = ~of["outside"] & ~of["expected"].str.contains("..", regex=False)
    between = exact[of["phase"].isin(COUNTED)]
    inside = f"{len(of) - of['outside'].sum()} of {len(of)}"
    return inside, f"{exact.mean():.0%}", f"{between.mean():.0%}"


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


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
    found = pd.concat(map(counts, runs))
    beyond = [
        f"{name} {release}, seed {seed}: {line}"
        for (name, release, seed), of in found.groupby(["experiment", "release", "seed"])
        for line in outside({"forecast": of.to_dict("records")})
    ]
    Console.result(*table(found, len(runs)), *beyond)
    return Exit.FAIL if beyond else Exit.PASS
