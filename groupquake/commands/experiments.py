"""`groupquake list`, `plan` and `validate`: reading experiments; they start nothing."""

import textwrap

import click

from chaos.plan import Plan, make_plan
from groupquake.commands.options import WIDTH, experiment_options, resolve
from groupquake.commands.show import in_words, usual_ms
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.simulate.forecast import warnings
from scenarios import Experiment, find, json_schema, named, names
from scenarios.fields import BIG_SEED
from scenarios.listing import TOPICS


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_experiments(*, as_json: bool) -> Exit:
    """List the experiments that come with groupquake, by topic, and how long each takes."""
    known = {name: named(name) for name in names()}
    if as_json:
        found = {
            name: {
                "topic": one.tags[0],
                "usual_ms": usual_ms(one),
                "description": " ".join(one.description.split()),
            }
            for name, one in known.items()
        }
        Console.json(found)
        return Exit.PASS
    width = max(map(len, known))
    for topic, title in TOPICS.items():
        Console.result(title)
        for name, one in known.items():
            if one.tags[0] == topic:
                head = f"  {name:{width}}  {in_words(usual_ms(one)):>6}  "
                room = WIDTH - len(head)
                Console.result(head + textwrap.shorten(one.description, room, placeholder=" …"))
    Console.result("", "groupquake show NAME says all of one; groupquake run NAME runs it.")
    return Exit.PASS


@click.command()
@experiment_options
@click.option("--seed", type=click.IntRange(0, BIG_SEED), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def plan(
    name: str, kafka: str | None, coordinator: str | None, set_: tuple[str, ...], seed: int,
    *, as_json: bool,
) -> Exit:  # fmt: skip
    """Print the fault schedule of an experiment and a seed; starts nothing."""
    experiment = resolve(name, kafka, coordinator, set_)
    made = make_plan(experiment, seed)
    Console.json(made.as_dict()) if as_json else Console.result(*made.describe())
    _warn(experiment, made)
    return Exit.PASS


@click.command()
@click.argument("given", metavar="[NAME|FILE]…", nargs=-1)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of experiment files.")
def validate(given: tuple[str, ...], *, schema: bool) -> Exit:
    """Check experiments without running them."""
    if schema:
        Console.json(json_schema())
    elif not given:
        raise click.UsageError("name an experiment or a file, or ask for --schema")
    for name in given:
        experiment = find(name)
        made = make_plan(experiment, 0)
        members = len(experiment.members())
        Console.result(f"{name}: valid ({members} members, {len(made.steps)} faults)")
        _warn(experiment, made)
    return Exit.PASS


def _warn(experiment: Experiment, plan: Plan) -> None:
    """Say what cannot come out as the file has it."""
    for line in warnings(experiment, plan):
        Console.error(f"{experiment.name}: warning: {line}")
