"""`groupquake nightly`: runs a suite, and writes a page over all nights."""

import json
import secrets
from pathlib import Path
from typing import Any

import click

from groupquake import folders
from groupquake.commands.options import output_options
from groupquake.console import Console
from groupquake.exits import Exit, writing
from groupquake.nightly.night import Night, put
from groupquake.nightly.suite import Job, Suite, find, jobs, load_suite
from groupquake.signals import SIGNALS
from reports.judgement.errors import EvidenceError, ExecutionError
from scenarios.fields import BIG_SEED

Json = dict[str, Any]


@click.command(
    epilog=f"Exit codes: {Exit.PASS:d} every run passed; {Exit.FAIL:d} one failed, or none ran; "
    f"{Exit.UNKNOWN:d} one is unknown or did not run; {Exit.ABORTED:d} ended by a signal; "
    f"{Exit.NOT_HEALED:d} a fault is still open; {Exit.USAGE:d} bad usage or file."
)
@click.argument("name", metavar="SUITE")
@click.option(
    "--nights", "directory", type=click.Path(file_okay=False, path_type=Path),
    default=Path("nights"), show_default=True, help="Folder of the nights and their page.",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Check the suite and list its runs; run nothing.")
@output_options
def nightly(name: str, directory: Path, *, check: bool) -> Exit:
    """Run the experiments of a suite on all its releases, and compare with earlier nights.

    SUITE is a YAML file, or the name of a suite that comes with groupquake, such as `nightly`.
    """
    file = find(name)
    suite = load_suite(file)
    seed = secrets.randbelow(BIG_SEED)
    planned = jobs(suite, file.parent, seed)
    if check:
        for job in planned:
            seed_of = f", seed {job.seed}" if suite.seeds else ""
            Console.result(f"{job.experiment} on {job.platform}{seed_of}")
        Console.result(f"{file}: valid ({len(planned)} runs)")
        return Exit.PASS
    return _run(suite, planned, directory)


def _run(suite: Suite, planned: tuple[Job, ...], directory: Path) -> Exit:
    from groupquake.nightly import page  # noqa: PLC0415 (pandas loads slowly)

    console = Console()
    advice = "; give another with --nights"
    with writing(f"{directory}: no night folder can be made there", advice):
        folder = folders.make(directory, suite.name)

    def changed(record: Json) -> None:
        put(folder / "junit.xml", page.junit_xml(record))
        put(directory / "index.html", page.render(directory))

    seeds = ", ".join(dict.fromkeys(str(job.seed) for job in planned))
    console.progress(f"{len(planned)} runs, seed {seeds}, in {folder}")
    night = Night(
        suite.name,
        planned,
        folder,
        progress=console.progress,
        changed=changed,
        description=suite.description,
        max_duration_ms=suite.max_duration_ms,
    )
    with SIGNALS.handling(night.abort):
        record, code = night.run()
        _draw_trend(directory, folder, record, console)
    put(directory / "index.html", page.render(directory))
    console.answer(record, *_summary(record, directory))
    return code


def _draw_trend(directory: Path, folder: Path, record: Json, console: Console) -> None:
    """Add a night to the run tables and the trend; an error leaves the trend as it was.

    `tables` has the run tables of all nights, and `TREND` the measures of every night.
    """
    judged = [folder / run["folder"] for run in record["runs"] if run["groups"]]
    if not judged or record["aborted"] is not None:
        return
    from groupquake.nightly.history import TREND  # noqa: PLC0415 (Spark and pandas load slowly)
    from reports.ingest.failures import explained  # noqa: PLC0415
    from reports.ingest.spark import SparkOptions, session  # noqa: PLC0415
    from reports.many_runs import measures, run_tables  # noqa: PLC0415

    console.progress("computing the trend over all nights")
    tables = directory / "tables"
    try:
        options = SparkOptions("local[*]")
        with explained(str(folder)), session(options, 0, folder / "spark.log") as spark:
            for run in judged:
                found = run_tables.of_run(spark, run, measures.STORED, folder.name)
                run_tables.append(spark, *found, tables)
            trend = measures.trend(measures.tables_at(spark, tables))
        put(directory / TREND, json.dumps(trend, indent=1) + "\n")
    except (EvidenceError, ExecutionError) as error:
        console.error(f"the trend lacks this night: {error}")


def _summary(record: Json, directory: Path) -> list[str]:
    lines = [
        f"{run['verdict']:8} {run['experiment']} on {run['platform']}, seed {run['seed']}"
        + (f": {run['why']}" if run["why"] else "")
        for run in record["runs"]
    ]
    verdict = record["verdict"] + (f" ({record['why']})" if record["why"] else "")
    return [*lines, f"night: {verdict}", f"page: {directory / 'index.html'}"]
