"""`groupquake heal`: healing the faults that a killed run left open."""

from pathlib import Path

import click

from chaos.clusters import ClusterError
from chaos.clusters.factory import end_left_over
from chaos.healing import heal as heal_journal
from groupquake.console import Console
from groupquake.exits import Exit, NotHealedError


@click.command()
@click.argument("folder", metavar="RUN", type=click.Path(exists=True, path_type=Path))
def heal(folder: Path) -> Exit:
    """Heal the faults that a killed run left open, from its journal."""
    ended: list[str] = []
    try:
        results = heal_journal(
            folder / "journal.jsonl", None, lambda: ended.extend(end_left_over(folder / "brokers"))
        )
    except ClusterError as error:
        raise NotHealedError(f"NOT HEALED: the rest of the cluster: {error}") from error
    for result in results:
        state = "healed" if result.healed else "NOT healed"
        Console.result(f"{result.fault_id}: {state}: {result.how}")
    if ended:
        Console.result(f"ended the rest of the cluster: {', '.join(ended)}")
    if not results and not ended:
        Console.result("nothing to heal")
    return Exit.PASS if all(result.healed for result in results) else Exit.NOT_HEALED
