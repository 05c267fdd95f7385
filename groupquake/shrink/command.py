"""`groupquake shrink`: to the smallest experiment that fails for the same root."""

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from chaos.clusters.factory import OWN
from chaos.plan import make_plan, read_plan
from groupquake.commands.options import coordinator_option, kafka_option, resolve, set_option
from groupquake.commands.run import repeat, run
from groupquake.commands.run_options import RunOptions
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.nightly.night import read_verdict
from groupquake.shrink.reduction import Reduction, single
from groupquake.shrink.root import Root, of_forecast, of_verdict
from groupquake.simulate.forecast import foresee
from scenarios import Experiment, ScenarioError, load
from scenarios.durations import format_ms
from scenarios.fields import BIG_SEED
from scenarios.regular_files import replace_file


class Failing(NamedTuple):
    """What is to be shrunk; without `roots` it is not known yet what it fails for."""

    experiment: Experiment
    seed: int
    roots: list[Root]


class Simulated:
    """Candidates in virtual time; one fails if it does in as many courses as the whole one."""

    def __init__(self, seed: int, profile: str | None) -> None:
        self._seed, self._profile = seed, profile

    def courses(self, candidate: Experiment) -> list[list[Root]]:
        """Return for each course what fails; nothing where nothing can be foreseen."""
        try:
            plan = make_plan(candidate, self._seed)
            return of_forecast(foresee(candidate, plan, self._profile))
        except ScenarioError:
            return []

    def share(self, candidate: Experiment, root: Root) -> float:
        """Return in which share of its courses a candidate fails for a root."""
        courses = self.courses(candidate)
        return sum(any(map(root.is_of, one)) for one in courses) / max(1, len(courses))


class OnCluster:
    """Candidates on a cluster, at most `tries`: one fails if one of its runs does."""

    def __init__(self, words: Sequence[str], tries: int, output: Path) -> None:
        """`words` are what `run` is given beside the candidate, which stands in `output`."""
        self._words, self._left, self._output = words, tries, output.absolute()
        self._kept: Experiment | None = None

    def roots(self, candidate: Experiment) -> list[Root]:
        """Run an experiment; return what its runs failed for."""
        Console.result("", f"on the cluster: {_in_words(_sizes(candidate))}")
        self._write(candidate)
        words = [str(self._output), *self._words]
        try:
            options = RunOptions(**run.make_context("run", words).params)
            series = repeat(options, partial(self._write, self._kept))
        finally:
            self._write(self._kept)
        verdicts = filter(None, map(read_verdict, series.folders))
        return [root for verdict in verdicts for root in of_verdict(verdict, candidate)]

    def fails(self, candidate: Experiment, root: Root) -> bool:
        """Tell whether a candidate fails for a root, and keep it then; none does without tries."""
        if not self._left:
            return False
        self._left -= 1
        if failed := any(map(root.is_of, self.roots(candidate))):
            self._kept = candidate
            self._write(candidate)
        return failed

    def _write(self, candidate: Experiment | None) -> None:
        if candidate is None:
            self._output.unlink(missing_ok=True)
        else:
            replace_file(self._output, candidate.dump().encode())


@click.command()
@click.argument("source", metavar="NAME|FILE|RUN")
@kafka_option
@coordinator_option
@set_option
@click.option("--seed", type=click.IntRange(0, BIG_SEED), help="Of the plan. [0, or the run's]")
@click.option(
    "--cluster", type=click.Choice(OWN), help="Where candidates run.  [default: as for run]"
)
@click.option("--profile", metavar="NAME", help="The rules to judge by, as for run.")
@click.option(
    "--repeat", "times", type=click.IntRange(1, 100), default=1, show_default=True, metavar="N",
    help="Run each candidate N times: it fails if one run does.",
)  # fmt: skip
@click.option(
    "--tries", type=click.IntRange(1, 1_000), default=12, show_default=True, metavar="N",
    help="Run at most N candidates on the cluster.",
)  # fmt: skip
@click.option(
    "--runs", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"),
    show_default=True, help="Parent of the run folders.",
)  # fmt: skip
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="The experiment file to write. [EXPERIMENT-shrunk.yaml]",
)  # fmt: skip
def shrink(
    source: str, kafka: str | None, coordinator: str | None, set_: tuple[str, ...],
    seed: int | None, cluster: str | None, profile: str | None, times: int, tries: int, runs: Path,
    output: Path | None,
) -> Exit:  # fmt: skip
    """Make a failing experiment as small as it still fails for the same root.

    Fewest faults, fewest members, shortest times. Candidates are simulated; the smallest is
    confirmed on the cluster, else the next larger. What no simulation shows, such as a broker's
    defect, is tried on the cluster alone. RUN is the folder of a run that failed.
    """
    if (Path(source) / "experiment.yaml").is_file():
        if kafka or coordinator or set_ or seed is not None:
            raise click.UsageError("a run has its release, seed and settings; leave them out")
        given = _of_run(Path(source))
    else:
        given = Failing(resolve(source, kafka, coordinator, set_), seed or 0, [])
    experiment, seed, roots = given
    output = output or Path(f"{experiment.name}-shrunk.yaml")
    if output.exists():
        raise click.UsageError(f"{output} exists; give another file with --output")
    words = [
        f"--{key}={value}"
        for key, value in {"seed": seed, "cluster": cluster, "profile": profile}.items()
        if value is not None
    ]
    on_cluster = OnCluster([*words, f"--runs={runs}", f"--repeat={times}"], tries, output)
    simulated = Simulated(seed, profile)
    roots = roots or [root for course in simulated.courses(experiment) for root in course]
    if not (roots := roots or on_cluster.roots(experiment)):
        raise click.UsageError(f"{source} did not fail; give an experiment or a run that does")
    smallest = _reduced(given, roots[0], simulated, on_cluster)
    if smallest is None:
        Console.error(f"{source}: no smaller one failed on the cluster for the same root")
        return Exit.UNKNOWN
    Console.result(
        f"root: {roots[0]}",
        f"left: {_in_words(_sizes(smallest))}",
        f"taken away: {_in_words(_sizes(smallest), _sizes(experiment))}",
        f"run it: {shlex.join(['groupquake', 'run', str(output), *words])}",
    )
    return Exit.PASS


def _of_run(folder: Path) -> Failing:
    """Return what a run was, and failed for. Raises UsageError if it did not."""
    experiment = load(folder / "experiment.yaml")
    plan, verdict = read_plan(folder / "plan.json", experiment), read_verdict(folder)
    if verdict is None:
        raise click.UsageError(f"{folder} is not judged; do so: groupquake report {folder}")
    if not (roots := of_verdict(verdict, experiment)):
        raise click.UsageError(f"{folder} did not fail: its verdict is {verdict['verdict']}")
    if plan != make_plan(experiment, plan.seed):  # of --plan
        experiment = experiment.override([f"faults={json.dumps(single(plan, experiment))}"])
    return Failing(experiment, plan.seed, roots)


def _reduced(
    given: Failing, root: Root, simulated: Simulated, on_cluster: OnCluster
) -> Experiment | None:
    """Return the smallest that fails on the cluster; None if there is none but the whole one."""
    console, share = Console(), simulated.share(given.experiment, root)
    Console.result(f"root: {root}; " + ("simulating" if share else "nothing simulated shows it"))

    def fails(candidate: Experiment) -> bool:
        if not share:
            return on_cluster.fails(candidate, root)
        if still := simulated.share(candidate, root) >= share:
            console.progress(f"fails with {_in_words(_sizes(candidate))}")
        return still

    reduction = Reduction(given.experiment, given.seed, fails)
    reduction.take(_alone(given.experiment, root))
    reduction.run()
    *larger, smallest = reduction.accepted
    if share:
        Console.result(
            f"{len(reduction.tried)} candidates simulated: {_in_words(_sizes(smallest))}"
        )
        while larger and not on_cluster.fails(smallest, root):
            smallest = larger.pop()
    return smallest if larger else None


def _alone(experiment: Experiment, root: Root) -> dict[str, object]:
    """Return the changes after which an experiment can fail for one root, and says so."""
    owners = [one for one in experiment.owners if one.group == root.group]
    wanted = [root.wanted] if root.wanted else owners
    changes: dict[str, object] = {
        "name": f"{experiment.name[:190]}-shrunk",
        "description": f"The smallest schedule that fails as {experiment.name} does: {root}.",
        "expect": [one.model_dump(mode="json", by_alias=True) for one in wanted],
    }
    if experiment.steady_state.probes:
        changes["steady_state.probes"] = None  # the default: all members of the groups that stay
    return changes


def _sizes(experiment: Experiment) -> dict[str, int]:
    """Return how many parts an experiment has, and how long it takes, in ms."""
    faults, workload = make_plan(experiment, 0).steps, experiment.workload
    return {
        "faults": len(faults),
        "groups": len(workload.groups) + len(workload.wire_scripts),
        "members": len(experiment.members()),
        "longest fault": max((step.what.lasting_ms for step in faults), default=0),
        "impact": experiment.phases.impact_ms,
        "recovery": experiment.phases.recovery_ms,
    }


def _in_words(sizes: Mapping[str, int], of: Mapping[str, int] | None = None) -> str:
    """Return sizes as people read them, or those of what was taken away from something."""
    shown = lambda what, n: str(n) if what in ("faults", "groups", "members") else format_ms(n)
    if of is None:
        return ", ".join(f"{what} {shown(what, n)}" for what, n in sizes.items())
    gone = {what: before - sizes[what] for what, before in of.items() if before > sizes[what]}
    return ", ".join(
        f"{what} {shown(what, n)} of {shown(what, of[what])}" for what, n in gone.items()
    )
