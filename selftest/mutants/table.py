"""The table of all mutants: what catches each, in synthesized logs and in the oracle's place."""

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from groupquake.fuzz.judge import Verdict
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.step import step
from reference_coordinator.event_files.reading import EventSequence
from reference_coordinator.replay import replay
from reports.judgement.collector import collector_paused
from reports.judgement.recording import Recording
from selftest.broken_rules import MUTANTS
from selftest.lies.table import LIES, LieResult, result_of
from selftest.mutants import judging, traces
from selftest.mutants.catching_experiments import CATCHING_EXPERIMENTS
from selftest.mutants.evidence import Runs

SEEDS = 10
"""How many seeds of an experiment must catch a mutant."""


@dataclass(frozen=True, slots=True)
class Row:
    """One mutant: `caught` of `seeds` runs catch its synthesized log.

    In the oracle's place, it leaves `unexplained` of `sequences` fuzz sequences. If that is 0,
    `replayed` is the number of unaltered runs that contradict it; if that is 0 too, `recorded` is
    the number of other recordings that do.
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
    def caught_in_logs(self) -> bool:
        """Whether at least `SEEDS` synthesized logs are there and all of them fail."""
        return self.caught == self.seeds >= SEEDS

    @property
    def caught_as_oracle(self) -> bool:
        """Whether evidence of real brokers contradicts it as the oracle."""
        return any((self.unexplained, self.replayed, self.recorded))

    @property
    def line(self) -> str:
        """The row of the Markdown table."""
        if self.replayed:
            as_oracle = f"{self.replayed} of these runs"
        elif self.recorded:
            as_oracle = f"{self.recorded} other recordings"
        else:
            as_oracle = f"{self.unexplained} of {self.sequences} sequences"
        in_logs = f"`{self.experiment}` {self.caught} of {self.seeds}"
        return f"| `{self.mutant}` | {self.source} | {in_logs} | {as_oracle} |"


@dataclass(frozen=True, slots=True)
class Table:
    """All rows, what becomes of lies, and the result for unaltered evidence.

    `findings` is their number in `runs` unaltered runs, `contradicted` the number of sequences that
    the unaltered oracle does not explain.
    """

    rows: tuple[Row, ...]
    lies: tuple[LieResult, ...]
    runs: int
    findings: int
    sequences: int
    contradicted: int

    @property
    def good(self) -> bool:
        """Whether mutants and lies are all caught, and unaltered evidence has no finding."""
        caught = all(row.caught_in_logs and row.caught_as_oracle for row in self.rows)
        caught = caught and all(lie.found or lie.explained for lie in self.lies)
        return caught and not self.findings and not self.contradicted


def breaks(mutant: str) -> str:
    """Return the first sentence about what a mutant does wrong."""
    return " ".join((MUTANTS[mutant].__doc__ or "").split()).removesuffix(".")


def is_caught_in_logs(mutant: str, run: Recording) -> bool:
    """Return whether the log synthesized of a run fails; False if the run lacks the group."""
    group = CATCHING_EXPERIMENTS[mutant].group
    if group not in run.groups:
        return False
    return judging.fails(judging.synthesized_run_of(MUTANTS[mutant], run, group), group)


def is_caught_as_oracle(mutant: str, run: Recording, group: str) -> bool:
    """Return whether a mutant as the oracle cannot explain the unaltered evidence of a group."""
    evidence = run.evidence_with_faults(group)
    protocol = replace(CLASSIC, step=MUTANTS[mutant])
    with collector_paused():
        result = replay(evidence, run.profile, first_alone=True, protocol=protocol)
    return result.proven


def row(
    mutant: str,
    runs: Sequence[Recording],
    sequences: Sequence[EventSequence],
    recordings: Sequence[Recording],
) -> Row:
    """Make the row of a mutant."""
    unexplained = sum(
        traces.verdict(sequence, MUTANTS[mutant], traces.BRIEFLY) is Verdict.UNEXPLAINED
        for sequence in sequences
    )
    replayed = recorded = 0
    if not unexplained:
        replayed = sum(
            is_caught_as_oracle(mutant, run, CATCHING_EXPERIMENTS[mutant].group) for run in runs
        )
    if not unexplained and not replayed:
        recorded = sum(
            any(is_caught_as_oracle(mutant, recording, group) for group in recording.groups)
            for recording in recordings
        )
    return Row(
        mutant,
        breaks(mutant),
        CATCHING_EXPERIMENTS[mutant].source,
        CATCHING_EXPERIMENTS[mutant].experiment,
        caught=sum(is_caught_in_logs(mutant, run) for run in runs),
        seeds=len(runs),
        unexplained=unexplained,
        sequences=len(sequences),
        replayed=replayed,
        recorded=recorded,
    )


_OPEN: dict[Path, Recording] = {}


def _recording(folder: Path) -> Recording:
    """Open a run once in each process, since reading it takes long."""
    return _OPEN.setdefault(folder, Recording(folder))


def _row(
    mutant: str,
    folders: Sequence[Path],
    sequences: Sequence[EventSequence],
    recordings: Sequence[Path],
) -> Row:
    runs, others = (list(map(_recording, places)) for places in (folders, recordings))
    return row(mutant, runs, sequences, others)


def _result_of_lie(lie: str, folders: Sequence[Path]) -> LieResult:
    return result_of(lie, list(map(_recording, folders)))


def _findings(folder: Path) -> int:
    run = _recording(folder)
    return sum(len(judging.found(run, group)) for group in run.groups)


def _unexplained(sequence: EventSequence) -> bool:
    return traces.verdict(sequence, step) is not Verdict.EXPLAINED


def make_table(
    runs: Runs,
    sequences: Sequence[EventSequence],
    recordings: Sequence[Path],
    progress: Callable[[str], None],
) -> Table:
    """Make the whole table, on all cores."""
    folders = {name: [run.folder for run in mine] for name, mine in runs.items()}
    jobs = [
        (mutant, folders.get(CATCHING_EXPERIMENTS[mutant].experiment, [])) for mutant in MUTANTS
    ]
    everything = [folder for mine in folders.values() for folder in mine]
    with multiprocessing.get_context("spawn").Pool() as pool:
        rows = [pool.apply_async(_row, (*job, sequences, recordings)) for job in jobs]
        lies = [
            pool.apply_async(_result_of_lie, (name, folders.get(lie.experiment, [])))
            for name, lie in LIES.items()
        ]
        clean = pool.map_async(_findings, everything, chunksize=1)
        explained = pool.map_async(_unexplained, sequences, chunksize=1)
        done = []
        for number, waiting in enumerate(rows, 1):
            done.append(waiting.get())
            progress(f"{number} of {len(rows)}: {done[-1].line}")
        lied = []
        for number, telling in enumerate(lies, 1):
            lied.append(telling.get())
            progress(f"lie {number} of {len(lies)}: {lied[-1].line}")
        return Table(
            tuple(done),
            tuple(lied),
            len(everything),
            sum(clean.get()),
            len(sequences),
            sum(explained.get()),
        )
