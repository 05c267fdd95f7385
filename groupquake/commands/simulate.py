"""`groupquake simulate`: what an experiment will come to, before anything is started."""

import click

from chaos.plan import make_plan
from groupquake.commands.options import (
    coordinator_option,
    experiment_argument,
    kafka_option,
    resolve,
    set_option,
)
from groupquake.console import Console, json_lines
from groupquake.exits import Exit
from groupquake.simulate.forecast import foresee
from groupquake.simulate.table import lines
from scenarios.fields import BIG_SEED


@click.command()
@experiment_argument
@kafka_option
@coordinator_option
@set_option
@click.option(
    "--profile", metavar="NAME", help="The rules to foresee by, such as 4.3 or kip-345.  "
    "[default: those of the release]",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0, BIG_SEED), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def simulate(
    name: str, kafka: str | None, coordinator: str | None, set_: tuple[str, ...],
    profile: str | None, seed: int, *, as_json: bool,
) -> Exit:  # fmt: skip
    """Foresee an experiment in virtual time, without a broker.

    Prints how often each group rebalances in each phase and why, from least to most, what that
    costs, and which `expect` of the file cannot come out.
    """
    experiment = resolve(name, kafka, coordinator, set_)
    forecast = foresee(experiment, make_plan(experiment, seed), profile)
    Console.result(*json_lines(forecast.as_dict()) if as_json else lines(forecast))
    return Exit.PASS
