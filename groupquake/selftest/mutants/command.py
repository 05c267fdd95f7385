"""`groupquake dev mutants`: whether everything that a coordinator may do wrong is found out."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.selftest.mutants import traces
from groupquake.selftest.mutants.evidence import runs_in
from groupquake.selftest.mutants.table import Table, work_out

KEPT = Path(__file__).parents[3] / "tests" / "recorded"
HEAD = """\
| mutant | source of the rule | as a lie: seeds that fail | as the oracle: not explained |
|---|---|---|---|"""


@click.command(
    epilog=f"Exit codes: 0 all are caught both ways, and nothing else is; {Exit.FAIL:d} otherwise;"
    f" {Exit.USAGE:d} no evidence.",
)
@click.option(
    "--evidence",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run folders, ten seeds an experiment, or archives of them. [what the repository keeps]",
)
@click.option(
    "--traces",
    "sequences",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Event files of `dev fuzz`. [what the repository keeps]",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def mutants(evidence: Path | None, sequences: Path | None, *, as_json: bool) -> Exit:
    """Break every rule of the coordinator in turn, and see whether it is found out.

    Each is broken in the evidence: what the brokers of recorded runs were asked is told anew, as a
    coordinator without that rule would have logged it, and judged. And in the oracle: what real
    brokers answered must contradict it.

    Evidence is made by `groupquake run NAME --seed N --no-report --runs DIR` and `dev fuzz`.
    """
    runs, events = evidence or KEPT / "seeds", sequences or KEPT / "traces"
    for folder in (runs, events):
        if not folder.is_dir():
            raise click.UsageError(f"{folder}: no evidence; give --evidence and --traces")
    recordings = [file.parent for file in sorted(KEPT.glob("*/environment.json"))]
    console = Console()
    with runs_in(runs) as found:
        recordings += [run.folder for mine in found.values() for run in mine]
        table = work_out(found, traces.read_all(events), recordings, console.progress)
    Console.result(json.dumps(_as_dict(table), indent=2) if as_json else _as_text(table))
    return Exit.PASS if table.good else Exit.FAIL


def _as_text(table: Table) -> str:
    return "\n".join([HEAD, *(row.line for row in table.rows), "", _summary(table)])


def _summary(table: Table) -> str:
    told = sum(row.caught_told for row in table.rows)
    believed = sum(row.caught_believed for row in table.rows)
    return (
        f"{len(table.rows)} mutants: {told} caught as lies, {believed} as the oracle;"
        f" unaltered: {table.findings} findings in {table.runs} runs,"
        f" {table.contradicted} of {table.sequences} sequences not explained"
    )


def _as_dict(table: Table) -> dict[str, object]:
    return {"good": table.good, "summary": _summary(table), **asdict(table)}
