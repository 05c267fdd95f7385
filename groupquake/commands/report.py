"""`groupquake report`: judges a run folder, as every run does at its end."""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import click

from groupquake.commands.incident import LARGE, are_logs, report_logs, time_zone
from groupquake.commands.options import duration, output_options, spark_options
from groupquake.console import Console
from groupquake.exits import OF_VERDICT, Exit
from groupquake.signals import SIGNALS
from reports import EvidenceError, ExecutionError, analyse
from reports.ingest import cache
from reports.ingest.failures import explained

if TYPE_CHECKING:
    from reports.ingest.spark import SparkOptions

WORST_FIRST = (Exit.FAIL, Exit.INTERNAL, Exit.USAGE, Exit.UNKNOWN, Exit.PASS)


@click.command()
@click.argument("runs", metavar="RUN|LOG…", nargs=-1, required=True)
@click.option(
    "--output", metavar="FOLDER",
    help="For tables, verdict and page of one run, or of logs."
    "  [default: the run's folder; incident for logs]",
)  # fmt: skip
@click.option(
    "--tables", metavar="URI",
    help="Append the tables of the runs to those of many runs, partitioned by run.",
)  # fmt: skip
@click.option(
    "--table-format", metavar="NAME", default="parquet", show_default=True,
    help="Format of --tables; another one, such as delta, where Spark has it.",
)  # fmt: skip
@click.option(
    "--logs", "as_logs", is_flag=True,
    help="Take every place for logs, whatever its name: a folder that is not on this machine.",
)  # fmt: skip
@click.option(
    "--time-zone", "zone", metavar="ZONE", type=time_zone, default="UTC", show_default=True,
    help="Of logs: the brokers' time zone, such as Europe/Berlin.",
)  # fmt: skip
@click.option(
    "--session", "session_ms", metavar="DURATION", type=duration,
    help="Of logs: estimate what static members with this session timeout would have spared."
    "  [default: what the lines tell, or 45s]",
)  # fmt: skip
@click.option(
    "--pattern", metavar="PATTERN", default="",
    help="Of logs whose lines are in no known form: their pattern, as log4j has it, such as"
    " '%d %p %m (%c)%n'.",
)  # fmt: skip
@click.option(
    "--cluster",
    metavar="ID",
    default="",
    help="Of logs of several clusters: report that of this id alone.",
)
@output_options
@spark_options
def report(
    runs: tuple[str, ...], output: str | None, tables: str | None, table_format: str,
    zone: ZoneInfo, session_ms: int | None, pattern: str, cluster: str, spark: "SparkOptions",
    *, as_logs: bool,
) -> Exit:  # fmt: skip
    """Judge stored runs again, from their run folders; or report what brokers' own logs tell.

    All are judged in one Spark session. RUN is a run folder or the folder of a night. LOG is what a
    broker logs, as a file (.gz, .bz2, .xz, .zst or not packed), an archive of such (.tar), a
    folder, a pipe or - for standard input: any number, in any order. Spark reads them from 200 MB
    on, or where one of its options is given. RUN, LOG, FOLDER and URI are paths, or URIs that
    Spark can read and write (s3a://…, hdfs://…).
    """
    folders = [folder for run in runs for folder in _runs_of(run)]
    logs = [place for place in runs if as_logs or are_logs(place)]
    if logs:
        if len(logs) < len(runs):
            raise click.UsageError("some are logs and some are runs; report them one after another")
        if tables is not None:
            raise click.UsageError(
                "--tables is for runs; logs have tables of their own in --output"
            )
        with SIGNALS.handling(_leave_at_once):
            from reports.incident.analysis import Asked  # noqa: PLC0415 (it loads slowly)

            asked = Asked(zone, session_ms and float(session_ms), pattern, cluster)
            return report_logs(logs, output, asked, spark)
    if output is not None and len(folders) > 1:
        raise click.UsageError("--output is for one run; give one")
    worst = Exit.PASS
    judging = _judging(spark, folders, Console(), output, tables, table_format)
    with SIGNALS.handling(_leave_at_once), judging as judge_one:
        for folder in folders:
            try:
                code = judge_one(folder)
            except (EvidenceError, ExecutionError) as error:  # judge the others too
                Console.error(str(error))
                code = Exit.USAGE if isinstance(error, EvidenceError) else Exit.INTERNAL
            worst = min(worst, code, key=WORST_FIRST.index)
    return worst


def _runs_of(place: str) -> list[str]:
    """Return the run folders that an argument stands for: itself, or those of a night.

    Raises EvidenceError.
    """
    path = Path(place)
    try:
        if (path / "night.json").is_file():
            runs = sorted(run for run in (path / "runs").iterdir() if not run.is_symlink())
            return [str(run) for run in runs if run.is_dir()]
        return [str(path.resolve()) if path.is_symlink() else place]
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        why = getattr(error, "strerror", None) or error
        raise EvidenceError(f"{place}: no runs can be read there ({why}); check it") from error


@contextmanager
def _judging(
    spark: "SparkOptions", runs: Sequence[str], console: Console, output: str | None = None,
    tables: str | None = None, table_format: str = "parquet",
) -> Iterator[Callable[[str], Exit]]:  # fmt: skip
    """Give what judges runs in one session, and appends their tables to those of many runs.

    The JVM of a session for one run of this machine starts while Spark is imported, and its output
    goes into the folder of that run.
    """
    from chaos.clusters.java import find_java  # noqa: PLC0415 (logs may need no Java)
    from groupquake.summary import summary  # noqa: PLC0415 (what follows loads slowly)
    from reports.ingest.spark import prepare, session  # noqa: PLC0415
    from reports.judgement.run.run_folder import RunFolder, logs_bytes  # noqa: PLC0415

    find_java()  # Spark needs Java too, and its own error has forty lines
    folders = map(Path, runs)
    size = max((logs_bytes(one) if one.is_dir() else LARGE for one in folders), default=0)
    log = cache.folder() / "spark.log"
    here = spark.plain and output is None and len(runs) == 1 and ":/" not in runs[0]
    alone = Path(runs[0]) if here else None
    if alone is not None and logs_bytes(alone):
        log = alone / "spark.log"
        prepare(spark, size, log)
    from reports.analysis import require_readable  # noqa: PLC0415 (it loads slowly)
    from reports.many_runs import run_tables  # noqa: PLC0415

    if alone is not None:
        require_readable(RunFolder(alone), f"file:{alone.absolute()}")
    console.progress("starting Spark")
    with (
        explained(spark.remote or spark.master or "Spark"),
        session(spark, size, log) as opened,
    ):

        def judge_one(run: str) -> Exit:
            verdict = analyse(opened, run, output, progress=console.progress)
            if tables is not None:
                console.progress(f"appending to {tables}")
                with explained(tables):
                    found = run_tables.of_run(opened, output or run)
                    run_tables.append(opened, *found, tables, table_format)
            console.answer(verdict, *summary(verdict, output or run))
            return OF_VERDICT[verdict["verdict"]]

        yield judge_one


def judge(folder: Path, master: str, console: Console, *, alone: bool = True) -> Exit:
    """Analyse a run folder, print the summary, and return the exit code of the verdict.

    A signal ends the process at once, if nothing is left to end but this (`alone`).
    """
    from reports.ingest.spark import SparkOptions  # noqa: PLC0415 (it loads slowly)

    judging = _judging(SparkOptions(master), [str(folder)], console)
    leave = partial(_leave_at_once, how=command_for(folder))
    with SIGNALS.handling(leave) if alone else nullcontext(), judging as judge_one:
        return judge_one(str(folder))


def command_for(run: Path) -> str:
    """Return the command that judges a run folder."""
    return f"groupquake report {shlex.quote(str(run))}"


def _leave_at_once(name: str, how: str = "groupquake report RUN") -> None:
    """End during the analysis: no fault is open, the evidence is kept, and Spark's JVM ends too.

    An exception would be raised inside Spark's gateway, which prints tracebacks.
    """
    Console.error(f"{name}: stopped, everything healed; judge the evidence: {how}")
    if Console.writer is not None:
        Console.writer.flush()
    os._exit(Exit.ABORTED)
