"""Judges a recorded run folder as a report does, without Spark."""

from enum import StrEnum
from pathlib import Path

from reports.judgement.recording import Recording
from selftest.mutants.judging import found, proven


class Outcome(StrEnum):
    """What is found about a group."""

    EXPLAINED = "explained"
    UNKNOWN = "unknown"
    WRONG = "wrong"


def outcomes(folder: Path) -> dict[str, Outcome]:
    """Return what is found about each group of a run folder."""
    recording = Recording(folder)
    outcomes = {}
    for group in recording.groups:
        findings = found(recording, group)
        left = Outcome.UNKNOWN if findings else Outcome.EXPLAINED
        outcomes[group] = Outcome.WRONG if proven(findings) else left
    return outcomes
