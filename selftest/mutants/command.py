"""`selftest mutants`: whether the oracle catches a coordinator with any one rule broken."""

from dataclasses import asdict
from pathlib import Path

import click

from groupquake.console import Console, json_lines
from groupquake.exits import Exit
from reports.judgement.run.evidence_level import Level
from selftest.mutants import traces
from selftest.mutants.evidence import runs_in
from selftest.mutants.table import Table, make_table
from selftest.mutants.wire_table import make_wire_table

KEPT = Path(__file__).parents[2] / "tests" / "recorded"
HEAD = """\
| mutant | source of the rule | in the log: seeds that fail | in the oracle: not explained |
|---|---|---|---|"""

HEAD_OF_LIES = """\
| lie | freedom that it claims | runs with it | found in | why the evidence cannot show it |
|---|---|---|---|---|"""


@click.command(
    epilog=f"Exit codes: 0 every mutant is caught both ways, every lie is found or explained, and"
    f" unaltered evidence has no finding; {Exit.FAIL:d} otherwise; {Exit.USAGE:d} no evidence.",
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
@click.option(
    "--level",
    type=click.Choice([Level.REQUESTS.value, Level.WIRE.value]),
    default=Level.REQUESTS.value,
    show_default=True,
    help="What the logs are taken for: `wire` leaves requests and answers alone.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def mutants(evidence: Path | None, sequences: Path | None, level: str, *, as_json: bool) -> Exit:
    """Break every rule of the coordinator in turn, and check that each broken rule is caught.

    A rule is broken in the log: a coordinator without the rule gets the requests of recorded runs,
    and the log that it would have written must fail. And it is broken in the oracle: responses of
    real brokers must contradict it. Then the same runs get lies: one answer, line or time
    is changed.

    Make evidence by `groupquake run NAME --seed N --no-report --runs DIR` and `dev fuzz`.
    """
    runs, events = evidence or KEPT / "seeds", sequences or KEPT / "traces"
    for folder in (runs, events):
        if not folder.is_dir():
            raise click.UsageError(f"{folder}: no such folder; give --evidence and --traces")
    recordings = [file.parent for file in sorted(KEPT.glob("*/environment.json"))]
    console = Console()
    if level == Level.WIRE:
        with runs_in(runs) as found:
            on_wire = make_wire_table(found, recordings, console.progress)
        Console.result(*json_lines(asdict(on_wire)) if as_json else on_wire.lines)
        return Exit.PASS if on_wire.good else Exit.FAIL
    with runs_in(runs) as found:
        recordings += [run.folder for mine in found.values() for run in mine]
        table = make_table(found, traces.read_all(events), recordings, console.progress)
    Console.result(*json_lines(_as_dict(table)) if as_json else _lines(table))
    return Exit.PASS if table.good else Exit.FAIL


def _lines(table: Table) -> list[str]:
    mutants = [HEAD, *(row.line for row in table.rows)]
    lies = [HEAD_OF_LIES, *(lie.line for lie in table.lies)]
    return [*mutants, "", *lies, "", _summary(table)]


def _summary(table: Table) -> str:
    in_logs = sum(row.caught_in_logs for row in table.rows)
    as_oracle = sum(row.caught_as_oracle for row in table.rows)
    found = sum(lie.found for lie in table.lies)
    explained = sum(lie.explained for lie in table.lies)
    return (
        f"{len(table.rows)} mutants: {in_logs} caught in the log, {as_oracle} in the oracle;"
        f" {len(table.lies)} lies: {found} found, {explained} explained;"
        f" unaltered: {table.findings} findings in {table.runs} runs,"
        f" {table.contradicted} of {table.sequences} sequences not explained"
    )


def _as_dict(table: Table) -> dict[str, object]:
    return {"good": table.good, "summary": _summary(table), **asdict(table)}
