"""Judges a recorded run folder as a report does, without Spark."""

from enum import StrEnum
from pathlib import Path

from groupquake.selftest.mutants import judging
from reports.judgement.lateness.broker_activity import possible_in
from reports.judgement.lateness.second_judgement import SecondJudgement
from reports.judgement.recording import Recording


class Outcome(StrEnum):
    """What is found about a group."""

    EXPLAINED = "explained"
    LATE_ALONE = "late_alone"
    WRONG = "wrong"


def second_judgement(recording: Recording, group: str) -> SecondJudgement:
    """Return what judges a group again, as a report does with one that is proven wrong."""
    rows, run = recording.rows_by_group[group], recording.run
    spans = [row for table, row in recording.judge.tables(group, rows) if table == "groups"]
    return SecondJudgement(
        recording.judge,
        judging.missing_evidence(recording, [{"group": group, **row} for row in spans]),
        possible_in(*recording.activity, run.brokers, run.busy),
        run.busy,
        recording.standstills,
    )


def outcomes(folder: Path) -> dict[str, Outcome]:
    """Return what is found about each group of a run folder."""
    recording = Recording(folder)
    judge = recording.judge
    found = {}
    for group in recording.groups:
        rows = recording.rows_by_group[group]
        if judge.explains(group, rows):
            found[group] = Outcome.EXPLAINED
        elif second_judgement(recording, group).doubt(group, rows, 0.0) is not None:
            found[group] = Outcome.LATE_ALONE
        else:
            found[group] = Outcome.WRONG
    return found
