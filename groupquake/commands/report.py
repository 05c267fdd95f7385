"""`groupquake report`: judging what is in a run folder, as every run does at its end."""

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
from reports.analysis import analyse

WORST_FIRST = (Exit.FAIL, Exit.USAGE, Exit.UNKNOWN, Exit.PASS)


@click.command()
@click.argument("folders_given", metavar="RUN…", nargs=-1, required=True, type=Path)
@master_option
def report(folders_given: tuple[Path, ...], master: str) -> Exit:
    """Judge stored runs again, from their evidence alone."""
    worst = Exit.PASS
    for folder in folders_given:
        try:
            code = judge(folder.resolve() if folder.is_symlink() else folder, master, Console())
        except EvidenceError as error:  # the others are judged all the same
            Console.complain(str(error))
            code = Exit.USAGE
        worst = min(worst, code, key=WORST_FIRST.index)
    return worst


def judge(folder: Path, master: str, console: Console) -> Exit:
    """Analyse a run folder and print what came out."""
    find_java()  # Spark needs one too, and tells of it in forty lines
    with SIGNALS.ordering(_leave_at_once):
        verdict = analyse(folder, console.progress, master)
    console.result(summary(verdict, folder))
    return OF_VERDICT[verdict["verdict"]]


def _leave_at_once(name: str) -> None:
    """End inside the analysis: nothing is broken, Spark's JVM goes when we do, evidence is kept.

    An exception would surface in the middle of Spark's gateway, which answers with tracebacks.
    """
    Console.complain(f"{name}: stopped, everything healed; `groupquake report` judges the evidence")
    os._exit(Exit.ABORTED)
