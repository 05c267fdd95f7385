"""`groupquake new`: six questions, and an experiment with comments."""

from functools import partial
from pathlib import Path
from typing import Any

import click
from jinja2 import Environment, PackageLoader, StrictUndefined

from groupquake.commands.show import in_words, usual_ms
from groupquake.console import Console
from groupquake.exits import Exit, writing
from scenarios import ScenarioError, load
from scenarios.durations import format_ms, parse_ms
from scenarios.timing import MIN_SESSION_MS

FILE = Path("mine.yaml")
BREAKS = {
    "restart": ("every member restarts in turn", "2500ms"),
    "kill": ("a member is killed", "5s"),
    "coordinator": ("the broker that coordinates the group is killed", "10s"),
    "network": ("a member reaches no broker", "5s"),
    "duplicate": ("a second process joins with the instance id of a member", "6s"),
    "removal": ("an operator removes members that are away", "12s"),
}
"""What may break: what happens, and for how long by default."""
OF_STATIC = ("duplicate", "removal")
"""What needs instance ids."""
SHORTEST_MS = 2_000
"""Two heartbeat intervals of the file, and more: a shorter absence would not be witnessed."""
LONGEST_MS = 600_000
MOST_MEMBERS = 100
UNKNOWN = "unknown"
"""The answer of who does not know what to expect."""


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=FILE)
@click.option("--yes", is_flag=True, help="Take the default of every question.")
def new(file: Path, *, yes: bool) -> Exit:
    """Write an experiment of your own: six questions, and a file with comments.

    FILE is a new file, by default mine.yaml. Enter takes the answer in brackets.
    """
    if file.suffix not in (".yaml", ".yml"):
        raise click.UsageError(f"{file}: write a name that ends in .yaml")
    if file.exists():
        raise click.UsageError(f"{file} exists already; name another file")
    try:
        text = _written(file, _answers(ask=not yes))
    except click.Abort as error:
        raise click.UsageError("a question has no answer; --yes takes the defaults") from error
    with writing(f"{file}: cannot be written"), file.open("x", encoding="utf-8") as opened:
        opened.write(text)
    try:
        experiment = load(file)
    except ScenarioError:
        file.unlink()
        raise
    Console.result(
        f"{file} is written; next:",
        f"  groupquake show {file}",
        f"  groupquake simulate {file}   what it will cost, without a broker",
        f"  groupquake run {file}        {in_words(usual_ms(experiment))}",
    )
    return Exit.PASS


def _answers(*, ask: bool) -> dict[str, Any]:
    """Return the answers, by their names in the template; times are in ms."""

    def answer(text: str, default: Any, kind: Any = None, value_proc: Any = None) -> Any:
        if not ask:
            return value_proc(default) if value_proc else default
        return click.prompt(text, default, type=kind, value_proc=value_proc, err=True)

    kind = answer("Members", "both", click.Choice(["static", "dynamic", "both"]))
    kinds = ["static", "dynamic"] if kind == "both" else [kind]
    members = answer("How many in a group", 4, click.IntRange(1, MOST_MEMBERS))
    session_ms = answer("Session timeout", "10s", value_proc=partial(_ms, MIN_SESSION_MS))
    possible = [one for one in BREAKS if "static" in kinds or one not in OF_STATIC]
    for one in possible if ask else ():
        click.echo(f"  {one:12} {BREAKS[one][0]}", err=True)
    breaks = answer("What breaks", possible[0], click.Choice(possible))
    what, usual = BREAKS[breaks]
    away_ms = answer("For how long", usual, value_proc=partial(_ms, SHORTEST_MS))
    question = f"Rebalances of the group {kinds[0]} that you expect: a number, or {UNKNOWN}"
    expected = answer(question, UNKNOWN, value_proc=_number)
    return {
        "kinds": kinds, "members": members, "session_ms": session_ms, "breaks": breaks,
        "what": what, "away_ms": away_ms, "expected": expected,
    }  # fmt: skip


def _written(file: Path, given: dict[str, Any]) -> str:
    """Return the text of the experiment."""
    environment = Environment(
        loader=PackageLoader("groupquake.commands"), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (YAML)
    )  # fmt: skip
    environment.filters["time"] = format_ms
    return environment.get_template("new.yaml.j2").render(given, file=file)


def _ms(least_ms: int, text: str) -> int:
    """Read a duration that is not too short, as ms."""
    try:
        duration_ms = parse_ms(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if not least_ms <= duration_ms <= LONGEST_MS:
        bounds = f"from {format_ms(least_ms)} to {format_ms(LONGEST_MS)}"
        raise click.UsageError(f"write a duration {bounds}")
    return duration_ms


def _number(text: str) -> int | None:
    if text == UNKNOWN:
        return None
    if not (text.isascii() and text.isdigit()):
        raise click.UsageError(f"write a number, such as 0, or {UNKNOWN}")
    return int(text)
