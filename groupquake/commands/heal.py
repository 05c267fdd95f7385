"""`groupquake heal`: healing the faults that a killed run left open."""

from pathlib import Path

import click

from groupquake import open_runs
from groupquake.console import Console
from groupquake.exits import Exit, NotHealedError
from groupquake.recovery import recover, recover_all, to_undo


@click.command()
@click.argument(
    "folder", metavar="[RUN]", required=False, type=click.Path(exists=True, path_type=Path)
)
@click.option(
    "--trust",
    is_flag=True,
    help="Heal from the journal in the folder, though it was not written by you on this machine.",
)
def heal(folder: Path | None, *, trust: bool) -> Exit:
    """Heal the faults that a killed run left open, and end what it left.

    Without RUN, that is done for every run that you began on this machine. The folder of any other
    run may hold commands of somebody else's: they are shown, and run with --trust alone.
    """
    lines: list[str] = []
    if folder is None:
        ok = recover_all(lines.append)
    else:
        run = open_runs.find(folder)
        todo = to_undo(run)
        if todo and not (run.trusted or trust):
            Console.result(*(f"would heal {line}" for line in todo))
            raise NotHealedError(
                f"NOT HEALED: {folder} is not of a run that you began on this machine; if you trust"
                " who made it, give --trust to do the above"
            )
        found = recover(run) if todo or run.trusted else None
        ok = found is None or found.ok
        lines += [] if found is None else found.lines()
    Console.result(*lines or ["nothing to heal"])
    return Exit.PASS if ok else Exit.NOT_HEALED
