"""`groupquake clients`: the adapters of other client libraries, and what clients do with errors."""

import click

from groupquake.cli import Lazy
from groupquake.clients.adapters import Adapter, built
from groupquake.console import Console
from groupquake.exits import Exit
from scenarios.clients import ADAPTERS


@click.group()
def clients() -> None:
    """List and build clients that members may be of, and see what they do with errors."""


clients.add_command(
    Lazy("errors", "groupquake.trial.errors:errors",
         "Answer clients errors that their broker did not give, and say what each does.")
)  # fmt: skip


@clients.command("list")
def list_clients() -> None:
    """List the clients, what each needs, and whether it is built."""
    for name in ADAPTERS:
        one = Adapter.named(name)
        state = "ready" if one.is_built else "not built yet"
        if not one.is_built and one.missing:
            state = f"needs {one.missing!r}, which is not installed"
        Console.result(f"{name:16} {one.language:11} {state}")


@clients.command()
@click.argument("names", metavar="NAME…", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Build all whose language is installed.")
def build(names: tuple[str, ...], *, every: bool) -> Exit:
    """Build clients, from their own registries, into the user's cache.

    A run builds what it needs by itself; later runs find it there.
    """
    if every == bool(names):
        raise click.UsageError("name clients, or give --all")
    console = Console()
    for name in ADAPTERS if every else names:
        one = Adapter.named(name)
        if every and not one.is_built and one.missing:
            console.progress(f"{name}: left out, there is no {one.missing!r}")
            continue
        console.result(f"{name}: {' '.join(built(one, console.progress)[:2])}")
    return Exit.PASS
