"""`groupquake shrink`: to the smallest experiment that fails for the same root."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import click

from chaos.plan import make_plan
from groupquake.commands.run import repeated, run
from groupquake.commands.run_options import RunOptions
from groupquake.console import Console
from groupquake.exits import Exit, writing
from groupquake.nightly.night import read_verdict
from groupquake.shrink.reduction import Reduction, written
from groupquake.shrink.root import Root, of_forecast, of_verdict
from groupquake.simulate.forecast import described, foresee
from scenarios import Experiment, ScenarioError
from scenarios.durations import format_ms
from scenarios.fields import BIG_SEED

NOT_OF_RUN = ("name", "seed", "keep", "no_report", "ui", "web_port", "attach")


@click.command()
@click.argument("name", metavar="NAME|FILE|RUN")
@click.option("--seed", type=click.IntRange(0, BIG_SEED), help="Of the plan. [0, or the run's]")
@click.option(
    "--tries", type=click.IntRange(1, 1_000), default=12, show_default=True, metavar="N",
    help="Try at most N candidates on the cluster.",
)  # fmt: skip
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="The experiment file to write.  [default: its name and -shrunk.yaml]",
)  # fmt: skip
def shrink(name: str, tries: int, output: Path | None, **given: Any) -> Exit:
    """Make a failing experiment as small as it still fails for the same root.

    Fewest faults, fewest members, shortest times. Candidates are simulated; the smallest is
    confirmed on the cluster, else the next larger. What no simulation shows, such as a broker's
    defect, is tried on the cluster alone. RUN is the folder of a run that failed.
    """
    folder, verdict = Path(name), read_verdict(Path(name))
    if (folder / "experiment.yaml").is_file():
        name, given["plan"] = str(folder / "experiment.yaml"), folder / "plan.json"
    elif given["seed"] is None and given["plan"] is None:
        given["seed"] = 0
    options = RunOptions(**run.make_context("run", [name]).params | given)
    experiment = options.experiment()
    plan = options.schedule(experiment)
    output = output or Path(f"{experiment.name}-shrunk.yaml")
    if output.exists():
        raise click.UsageError(f"{output} exists; give another file with --output")
    as_it_is = replace(options, plan=None, kafka=None, coordinator=None, set_=(), seed=plan.seed)

    def simulated(one: Experiment) -> list[list[Root]]:
        try:
            return of_forecast(foresee(one, make_plan(one, plan.seed), options.profile))
        except ScenarioError:  # rules, or a cluster, of which nothing is foreseen
            return []

    def ran(one: Experiment) -> list[Root]:
        nonlocal tries
        if not tries:
            return []
        Console.result("", f"on the cluster, {tries} tries left: {_size(one)}")
        file = options.runs.absolute() / f"{one.name}-{tries}.yaml"
        _put(file, one)
        tries -= 1
        _, folders = repeated(replace(as_it_is, name=str(file)))
        return [root for run in folders for root in of_verdict(read_verdict(run), one)]

    courses = simulated(experiment)
    roots = of_verdict(verdict, experiment) if verdict else [*chain(*courses)] or ran(experiment)
    if not roots:
        raise click.UsageError(
            f"{name} did not fail, or by its clients alone; give an experiment or a run that does"
        )
    root, console, share = roots[0], Console(), sum(map(roots[0].is_in, courses))
    Console.result(f"root: {root}; simulated: in {share} of {len(courses)} courses")

    def fails(one: Experiment) -> bool:
        still = sum(map(root.is_in, simulated(one))) >= share if share else root.is_in(ran(one))
        console.progress(f"{'fails' if still else 'other'}: {_size(one)}")
        return still

    bounds = [one for one in experiment.bounds if described(one) in root.what]
    owners = [one for one in experiment.owners if one.group in root.what.split(", ")]
    *larger, smallest = Reduction(experiment, fails).run(
        name=f"{experiment.name[:190]}-shrunk",
        description=f"The smallest that fails as {experiment.name} does: {root}.",
        faults=[written(step.what) for step in plan.steps],
        expect=[written(one) for one in (*bounds, *owners)],
        verdicts=[],
        steady_state={"within": format_ms(experiment.steady_state.within_ms)},
    )
    while share and larger and not root.is_in(ran(smallest)):
        smallest = larger.pop()
    if not larger:
        Console.error(f"{name}: no smaller one failed for the same root on the cluster")
        return Exit.UNKNOWN
    _put(output, smallest)
    Console.result("", f"{output}: {_size(smallest)}", f"taken from: {_size(experiment)}")
    return Exit.PASS


shrink.params += [one for one in run.params if one.name not in NOT_OF_RUN]


def _put(file: Path, one: Experiment) -> None:
    """Write an experiment to a file. Raises UsageError if that fails."""
    with writing(f"{file}: cannot be written"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(one.dump(), encoding="utf-8")


def _size(one: Experiment) -> str:
    """Return how large an experiment is, in words."""
    lasting_ms = [step.what.lasting_ms for step in make_plan(one, 0).steps]
    return (
        f"faults: {len(lasting_ms)}, of {max(lasting_ms, default=0) / 1000:g} s at most;"
        f" members: {len(one.members())}; impact: {one.phases.impact_ms / 1000:g} s"
    )
