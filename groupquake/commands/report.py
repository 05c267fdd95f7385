"""`groupquake report`: judges a run folder, as every run does at its end."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from chaos.clusters.java import find_java
from groupquake.commands.options import spark_options
from groupquake.console import Console
from groupquake.exits import OF_VERDICT, Exit
from groupquake.signals import SIGNALS
from groupquake.summary import summary
from reports import EvidenceError
from reports.analysis import analyse, analyse_folder
from reports.ingest.archive import cache_folder
from reports.ingest.cluster import SparkOptions, session

LARGE = 1_000_000_000
"""The size of evidence that a session is opened for whose runs are not looked at before."""
WORST_FIRST = (Exit.FAIL, Exit.USAGE, Exit.UNKNOWN, Exit.PASS)


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@click.option(
    "--output",
    metavar="FOLDER",
    help="For tables, verdict and page of one run.  [default: the run's folder]",
)
@spark_options
def report(runs: tuple[str, ...], output: str | None, spark: SparkOptions) -> Exit:
    """Judge stored runs again, from their run folders.

    RUN and FOLDER are paths, or URIs that Spark can read and write (s3a://…, hdfs://…).
    """
    if output is not None and len(runs) > 1:
        raise click.UsageError("--output is for one run; give one")
    find_java()  # Spark needs Java too, and its own error has forty lines
    worst = Exit.PASS
    with SIGNALS.handling(_leave_at_once), _judging(spark, output) as judge_one:
        for run in runs:
            try:
                code = judge_one(str(Path(run).resolve()) if Path(run).is_symlink() else run)
            except EvidenceError as error:  # judge the others too
                Console.error(str(error))
                code = Exit.USAGE
            worst = min(worst, code, key=WORST_FIRST.index)
    return worst


@contextmanager
def _judging(spark: SparkOptions, output: str | None) -> Iterator[Callable[[str], Exit]]:
    """Give what judges a run; the runs share a session unless each is small, and of here."""
    if spark.plain and output is None:
        master = spark.master or "local[*]"
        yield lambda run: judge(Path(run), master, Console())
        return
    console = Console()
    console.progress("starting Spark")
    with session(spark, LARGE, cache_folder() / "spark.log") as opened:

        def judge_in_session(run: str) -> Exit:
            verdict = analyse(opened, run, output, progress=console.progress)
            return _result(verdict, output or run, console)

        yield judge_in_session


def judge(folder: Path, master: str, console: Console) -> Exit:
    """Analyse a run folder, print the summary, and return the exit code of the verdict."""
    find_java()
    with SIGNALS.handling(_leave_at_once):
        verdict = analyse_folder(folder, console.progress, master)
    return _result(verdict, folder, console)


def _result(verdict: dict[str, Any], place: str | Path, console: Console) -> Exit:
    console.result(summary(verdict, place))
    return OF_VERDICT[verdict["verdict"]]


def _leave_at_once(name: str) -> None:
    """End during the analysis: no fault is open, the evidence is kept, and Spark's JVM ends too.

    An exception would be raised inside Spark's gateway, which prints tracebacks.
    """
    Console.error(f"{name}: stopped, everything healed; `groupquake report` judges the evidence")
    os._exit(Exit.ABORTED)
