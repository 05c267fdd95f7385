"""`groupquake report`: judges a run folder, as every run does at its end."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
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
from reports.ingest.cluster import SparkOptions, session

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
    worst = Exit.PASS
    with _session(spark) as judge_one:
        for run in runs:
            place = str(Path(run).resolve()) if Path(run).is_symlink() else run
            try:
                code = judge_one(place, output)
            except EvidenceError as error:  # judge the others too
                Console.error(str(error))
                code = Exit.USAGE
            worst = min(worst, code, key=WORST_FIRST.index)
    return worst
