"""Judges a recorded run folder as a report does, without Spark."""

from enum import StrEnum
from pathlib import Path

from groupquake.selftest.mutants.judging import second_judgement
from reports.judgement.recording import Recording
from tests.reports.explained import explains


class Outcome(StrEnum):
    """What is found about a group."""

    EXPLAINED = "explained"
    LATE_ALONE = "late_alone"
    WRONG = "wrong"


def outcomes(folder: Path) -> dict[str, Outcome]:
    """Return what is found about each group of a run folder."""
    recording = Recording(folder)
    judge = recording.judge
    found = {}
    for group in recording.groups:
        rows = recording.rows_by_group[group]
        if explains(judge, group, rows):
            found[group] = Outcome.EXPLAINED
        elif second_judgement(recording, group).doubt(group, rows, 0.0) is not None:
            found[group] = Outcome.LATE_ALONE
        else:
            found[group] = Outcome.WRONG
    return found
