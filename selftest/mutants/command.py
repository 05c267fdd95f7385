"""`selftest mutants`: whether the oracle catches a coordinator with any one rule broken."""

from dataclasses import asdict
from pathlib import Path

import click

from groupquake.console import Console
from groupquake.exits import Exit
from reports.judgement.log.log_places import Level
from selftest.broken_rules import BROKEN_RULES
from selftest.mutants.evidence import KEPT, runs_in, sequences_in
from selftest.mutants.table import Table, make_table

MUTANTS_HEAD = """\
| mutant | source of the rule | in the log: seeds that fail | in the oracle: not explained |
|---|---|---|---|"""
LIES_HEAD = """\
| lie | freedom that it claims | runs with it | found in | why the evidence cannot show it |
|---|---|---|---|---|"""
WIRE_HEAD = """\
| mutant or lie | runs with it | found in | recordings that fail | what the wire does not show |
|---|---|---|---|---|"""
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(
    epilog=f"Exit codes: 0 every mutant is caught both ways, every lie is found or explained, and"
    f" unaltered evidence has no finding; {Exit.FAIL:d} otherwise; {Exit.USAGE:d} no evidence.",
)
@click.option("--evidence", type=FOLDER, default=KEPT / "seeds",
              help="Run folders, ten seeds an experiment, or archives of them."
              " [what the repository keeps]")  # fmt: skip
@click.option("--traces", type=FOLDER, default=KEPT / "traces",
              help="Event files of `groupquake dev fuzz`. [what the repository keeps]")  # fmt: skip
@click.option("--level", type=click.Choice([Level.REQUESTS.value, Level.WIRE.value]),
              default=Level.REQUESTS.value, show_default=True,
              help="What the logs are taken for: `wire` leaves requests and answers"
              " alone.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def mutants(evidence: Path, traces: Path, level: str, *, as_json: bool) -> Exit:
    """Break every rule of the coordinator in turn, and check that each broken rule is caught.

    A rule is broken in the log: a coordinator without the rule gets the requests of recorded runs,
    and the log that it would have written must fail. And it is broken in the oracle: responses of
    real brokers must contradict it. Then the same runs get lies: one answer, line or time
    is changed.

    Make evidence by `groupquake run NAME --seed N --no-report --runs DIR` and `groupquake dev
    fuzz`.
    """
    console, at = Console(), Level(level)
    recordings = [file.parent for file in sorted(KEPT.glob("*/environment.json"))]
    sequences = sequences_in(traces) if at is Level.REQUESTS else []
    with runs_in(evidence) as runs:
        table = make_table(at, runs, sequences, recordings, console.progress)
    whole = {"good": table.good, "summary": table.summary, **asdict(table)}
    Console.json(whole) if as_json else Console.result(*_lines(table, at))
    return Exit.PASS if table.good else Exit.FAIL


def _lines(table: Table, level: Level) -> list[str]:
    if level is Level.WIRE:
        return [WIRE_HEAD, *(row.line for row in table.rows), "", table.summary]
    rules = [row.line for row in table.rows if row.name in BROKEN_RULES]
    lies = [row.line for row in table.rows if row.name not in BROKEN_RULES]
    return [MUTANTS_HEAD, *rules, "", LIES_HEAD, *lies, "", table.summary]
