"""`groupquake simulate`: what an experiment will come to, before anything is started."""

from pathlib import Path

import click

from chaos.plan import make_plan
from groupquake.commands.options import experiment_options, output_options, resolve
from groupquake.console import Console
from groupquake.exits import Exit, writing
from groupquake.simulate.forecast import foresee
from groupquake.simulate.table import lines
from scenarios.fields import BIG_SEED


@click.command()
@experiment_options
@click.option(
    "--profile", metavar="NAME", help="The rules to foresee by, such as 4.3 or kip-345.  "
    "[default: those of the release]",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0, BIG_SEED), default=0, show_default=True)
@click.option(
    "--sweep", "swept", multiple=True, metavar="KEY=VALUE,VALUE,…",
    help="Foresee each of several values of a key, for static and dynamic members, eager and"
    " cooperative. A name without dots stands for all keys of that name. Repeatable: each"
    " combination is foreseen.",
)  # fmt: skip
@click.option(
    "--page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write a page: the timeline of one course as a report draws it, and the sweep.",
)  # fmt: skip
@output_options
def simulate(
    name: str, kafka: str | None, coordinator: str | None, set_: tuple[str, ...],
    profile: str | None, seed: int, swept: tuple[str, ...], page: Path | None,
) -> Exit:  # fmt: skip
    """Foresee an experiment in virtual time, without a broker.

    Prints how often each group rebalances in each phase and why, from least to most, what that
    costs, and which `expect` of the file cannot come out. Of a sweep it prints the rebalances and
    partition-seconds without owner of each combination, the smallest session timeout that keeps
    the schedule quiet, and its price.
    """
    experiment, console = resolve(name, kafka, coordinator, set_), Console()
    plan = make_plan(experiment, seed)
    found = None
    if swept:
        from groupquake.simulate.sweep import sweep  # noqa: PLC0415 (pandas loads slowly)

        found = sweep(experiment, swept, seed, profile, console.progress)
    forecast = foresee(experiment, plan, profile)
    if page is not None:
        from groupquake.simulate.page import render  # noqa: PLC0415 (pandas loads slowly)

        with writing(f"--page {page}: cannot be written", "; give another file"):
            page.write_text(render(forecast, plan, found), encoding="utf-8")
        console.progress(f"page {page}")
    if found is None:
        console.answer(forecast.as_dict(), *lines(forecast))
    else:
        result = {"rows": found.frame.to_dict("records"), "said": found.said}
        table = found.frame.map(str).to_string(index=False).split("\n")
        console.answer(result, *table, *found.said)
    return Exit.PASS
