"""`groupquake list`, `plan` and `validate`: reading experiments; they start nothing."""

import textwrap

import click

from chaos.plan import Plan, make_plan
from groupquake.commands.options import WIDTH, experiment_options, json_option, resolve
from groupquake.commands.show import in_words, usual_ms
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.simulate.forecast import warnings
from scenarios import Experiment, find, json_schema, named, names
from scenarios.fields import BIG_SEED
from scenarios.listing import TOPICS


@click.command("list")
@json_option
def list_experiments() -> Exit:
    """List the experiments that come with groupquake, by topic, and how long each takes."""
    known = {name: named(name) for name in names()}
    found = {
        name: {
            "topic": one.tags[0],
            "usual_ms": usual_ms(one),
            "description": " ".join(one.description.split()),
        }
        for name, one in known.items()
    }
    width = max(map(len, known))
    lines = []
    for topic, title in TOPICS.items():
        lines.append(title)
        for name, one in known.items():
            if one.tags[0] == topic:
                head = f"  {name:{width}}  {in_words(usual_ms(one)):>6}  "
                room = WIDTH - len(head)
                lines.append(head + textwrap.shorten(one.description, room, placeholder=" …"))
    hint = "groupquake show NAME says all of one; groupquake run NAME runs it."
    Console().answer(found, *lines, "", hint)
    return Exit.PASS


@click.command()
@experiment_options
@click.option("--seed", type=click.IntRange(0, BIG_SEED), default=0, show_default=True)
@json_option
def plan(
    name: str, kafka: str | None, coordinator: str | None, set_: tuple[str, ...], seed: int
) -> Exit:
    """Print the fault schedule of an experiment and a seed; starts nothing."""
    experiment = resolve(name, kafka, coordinator, set_)
    made = make_plan(experiment, seed)
    Console().answer(made.as_dict(), *made.describe())
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
