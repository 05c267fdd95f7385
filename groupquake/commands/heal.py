"""`groupquake heal`: healing the faults that a killed run left open."""

from pathlib import Path

import click

from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.recovery import recover


@click.command()
@click.argument("folder", metavar="RUN", type=click.Path(exists=True, path_type=Path))
def heal(folder: Path) -> Exit:
    """Heal the faults that a killed run left open, from its journal, and end what it left."""
    found = recover(folder)
    for fault in found.faults:
        state = "healed" if fault.healed else "NOT healed"
        Console.result(f"fault {fault.fault_id}: {state}: {fault.how}")
    if found.ended:
        Console.result(f"ended the rest of the run: {', '.join(found.ended)}")
    if found.deleted:
        Console.result(f"deleted: {', '.join(found.deleted)}")
    if not (found.faults or found.ended or found.deleted):
        Console.result("nothing to heal")
    return Exit.PASS if found.ok else Exit.NOT_HEALED
