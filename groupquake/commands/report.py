"""`groupquake report`: judges a run folder, as every run does at its end."""

import os
from pathlib import Path

import click

from chaos.clusters.java import find_java
from groupquake.commands.options import master_option
from groupquake.console import Console
from groupquake.exits import OF_VERDICT, Exit
from groupquake.signals import SIGNALS
from groupquake.summary import summary
from reports import EvidenceError
from reports.analysis import analyse_folder

WORST_FIRST = (Exit.FAIL, Exit.USAGE, Exit.UNKNOWN, Exit.PASS)


@click.command()
@click.argument("folders_given", metavar="RUN…", nargs=-1, required=True, type=Path)
@master_option
def report(folders_given: tuple[Path, ...], master: str) -> Exit:
    """Judge stored runs again, from their run folders."""
    worst = Exit.PASS
    for folder in folders_given:
        try:
            code = judge(folder.resolve() if folder.is_symlink() else folder, master, Console())
        except EvidenceError as error:  # judge the others too
            Console.error(str(error))
            code = Exit.USAGE
        worst = min(worst, code, key=WORST_FIRST.index)
    return worst


def judge(folder: Path, master: str, console: Console) -> Exit:
    """Analyse a run folder, print the summary, and return the exit code of the verdict."""
    find_java()  # Spark needs Java too, and its own error has forty lines
    with SIGNALS.handling(_leave_at_once):
        verdict = analyse_folder(folder, console.progress, master)
    console.result(summary(verdict, folder))
    return OF_VERDICT[verdict["verdict"]]


def _leave_at_once(name: str) -> None:
    """End during the analysis: no fault is open, the evidence is kept, and Spark's JVM ends too.

    An exception would be raised inside Spark's gateway, which prints tracebacks.
    """
    Console.error(f"{name}: stopped, everything healed; `groupquake report` judges the evidence")
    os._exit(Exit.ABORTED)
