"""Judges a recorded run folder as a report does, without Spark."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from reports.judgement.broker_activity import possible, signs_of
from reports.judgement.recording import Recording


class Outcome(StrEnum):
    """What is found about a group."""

    EXPLAINED = "explained"
    LATE_ALONE = "late_alone"
    WRONG = "wrong"


def outcomes(folder: Path) -> dict[str, Outcome]:
    """Return what is found about each group of a run folder."""
    recording = Recording(folder)
    judge = recording.judge
    stalls = possible(signs_of(*recording.activity, recording.run.busy))
    lenient = replace(judge, stalls=(*judge.stalls, *stalls), busy=recording.run.busy)
    found = {}
    for group in recording.groups:
        rows = recording.rows_by_group[group]
        if judge.explains(group, rows):
            found[group] = Outcome.EXPLAINED
        elif lenient.explains(group, rows):
            found[group] = Outcome.LATE_ALONE
        else:
            found[group] = Outcome.WRONG
    return found
