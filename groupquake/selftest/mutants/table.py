"""The table of all mutants, worked out from evidence: what catches each, told and believed."""

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from groupquake.selftest.fuzz.judge import Verdict
from groupquake.selftest.mutants import judging, traces
from groupquake.selftest.mutants.catching_experiments import ASSIGNED
from groupquake.selftest.mutants.evidence import Runs
from reference_coordinator.classic.mutants import MUTANTS
from reference_coordinator.classic.step import step
from reference_coordinator.event_files.reading import EventSequence
from reference_coordinator.replay import replay
from reports.judgement.recording import Recording

SEEDS = 10
"""So many seeds of an experiment must catch a mutant."""


@dataclass(frozen=True, slots=True)
class Row:
    """One mutant: how many runs catch it as a lie, how many sequences as the oracle.

    Where no sequence does, `replayed` is how many of the same runs do, and where none does,
    `recorded` is how many other recordings: their answers are those of real brokers, too.
    """

    mutant: str
    breaks: str
    source: str
    experiment: str
    caught: int
    seeds: int
    unexplained: int
    sequences: int
    replayed: int
    recorded: int

    @property
    def caught_told(self) -> bool:
        """Whether every one of enough seeds catches it as a lie."""
        return self.caught == self.seeds >= SEEDS

    @property
    def caught_believed(self) -> bool:
        """Whether evidence of real brokers contradicts it in the oracle's place."""
        return any((self.unexplained, self.replayed, self.recorded))

    @property
    def line(self) -> str:
        """The row as it stands in the README."""
        if self.replayed:
            believed = f"{self.replayed} of these runs"
        elif self.recorded:
            believed = f"{self.recorded} other recordings"
        else:
            believed = f"{self.unexplained} of {self.sequences} sequences"
        told = f"`{self.experiment}` {self.caught} of {self.seeds}"
        return f"| `{self.mutant}` | {self.source} | {told} | {believed} |"


@dataclass(frozen=True, slots=True)
class Table:
    """All rows, and what the evidence gives where nothing is altered.

    `findings` are those in `runs` runs, `contradicted` the sequences that the oracle itself does
    not explain.
    """

    rows: tuple[Row, ...]
    runs: int
    findings: int
    sequences: int
    contradicted: int

    @property
    def good(self) -> bool:
        """Whether all mutants are caught both ways and nothing else is."""
        caught = all(row.caught_told and row.caught_believed for row in self.rows)
        return caught and not self.findings and not self.contradicted


def breaks(mutant: str) -> str:
    """Say what a mutant does wrong."""
    return " ".join((MUTANTS[mutant].__doc__ or "").split()).removesuffix(".")


def is_told(mutant: str, run: Recording) -> bool:
    """Say whether a mutant is caught as a lie about a run; never where that lacks the group."""
    group = ASSIGNED[mutant].group
    if group not in run.groups:
        return False
    return judging.fails(judging.told_by(MUTANTS[mutant], run, group), group)


def is_contradicted(mutant: str, run: Recording, group: str) -> bool:
    """Say whether a mutant as the oracle cannot explain a group's evidence as it was."""
    told = replay(
        run.evidence_with_faults(group), run.profile, first_alone=True, step=MUTANTS[mutant]
    )
    return told.proven


def row(
    mutant: str,
    runs: Sequence[Recording],
    sequences: Sequence[EventSequence],
    recordings: Sequence[Recording],
) -> Row:
    """Work a mutant's row out."""
    unexplained = sum(
        traces.verdict(sequence, MUTANTS[mutant], traces.BRIEFLY) is Verdict.UNEXPLAINED
        for sequence in sequences
    )
    replayed = recorded = 0
    if not unexplained:
        replayed = sum(is_contradicted(mutant, run, ASSIGNED[mutant].group) for run in runs)
    if not unexplained and not replayed:
        recorded = sum(
            any(is_contradicted(mutant, recording, group) for group in recording.groups)
            for recording in recordings
        )
    return Row(
        mutant,
        breaks(mutant),
        ASSIGNED[mutant].source,
        ASSIGNED[mutant].experiment,
        caught=sum(is_told(mutant, run) for run in runs),
        seeds=len(runs),
        unexplained=unexplained,
        sequences=len(sequences),
        replayed=replayed,
        recorded=recorded,
    )


_OPEN: dict[Path, Recording] = {}


def _recording(folder: Path) -> Recording:
    """Open a run once a process: its lines are read but once."""
    return _OPEN.setdefault(folder, Recording(folder))


def _row(
    mutant: str,
    folders: Sequence[Path],
    sequences: Sequence[EventSequence],
    recordings: Sequence[Path],
) -> Row:
    runs, others = (list(map(_recording, places)) for places in (folders, recordings))
    return row(mutant, runs, sequences, others)


def _findings(folder: Path) -> int:
    run = _recording(folder)
    return sum(len(judging.found(run, group)) for group in run.groups)


def _unexplained(sequence: EventSequence) -> bool:
    return traces.verdict(sequence, step) is not Verdict.EXPLAINED


def work_out(
    runs: Runs,
    sequences: Sequence[EventSequence],
    recordings: Sequence[Path],
    progress: Callable[[str], None],
) -> Table:
    """Work the whole table out, on all cores."""
    folders = {name: [run.folder for run in mine] for name, mine in runs.items()}
    jobs = [(mutant, folders.get(ASSIGNED[mutant].experiment, [])) for mutant in MUTANTS]
    everything = [folder for mine in folders.values() for folder in mine]
    with multiprocessing.get_context("spawn").Pool() as pool:
        rows = [pool.apply_async(_row, (*job, sequences, recordings)) for job in jobs]
        clean = pool.map_async(_findings, everything, chunksize=1)
        explained = pool.map_async(_unexplained, sequences, chunksize=1)
        done = []
        for number, waiting in enumerate(rows, 1):
            done.append(waiting.get())
            progress(f"{number} of {len(rows)}: {done[-1].line}")
        return Table(
            tuple(done), len(everything), sum(clean.get()), len(sequences), sum(explained.get())
        )
