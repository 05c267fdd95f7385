"""The table of broken rules and lies: in how many recorded runs each is found.

A broken rule or a lie alters a run; the altered run is judged as any other, at one of two levels:
with all lines, or by what the tap would have seen (`wire`).
"""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from groupquake.fuzz.judge import Verdict
from reference_coordinator.classic.step import Step, step
from reference_coordinator.event_files.reading import EventSequence
from reports.judgement.log.log_places import Level
from reports.judgement.recording import Recording
from selftest.broken_rules import BROKEN_RULES, MUTANTS
from selftest.lies import LIES, GroupLines
from selftest.lies.answers import IN_AN_OUTAGE, WRITES
from selftest.mutants.evidence import Runs
from selftest.mutants.judging import (
    BRIEFLY,
    contradicts,
    doubts,
    explains,
    fails,
    found,
    synthesized_run_of,
)
from selftest.mutants.log_synthesis import SynthesizedLine
from selftest.mutants.synthesized_run import SynthesizedRun
from selftest.mutants.wire_run import WireRun

SEEDS = 10
"""How many seeds of an experiment must show a broken rule or a lie, with all lines."""
NOT_SHOWN: Mapping[str, tuple[int, str]] = {
    "assignment_line_left_out": (
        9,
        (
            "where the next JoinGroup overlaps the leader's SyncGroup, this line alone says which"
            " came first; a log has a hole in its serial numbers there"
        ),
    ),
    "heartbeat_held": (8, "on Java a Heartbeat may wait for a write of its partition"),
}
"""Lies that the evidence cannot show in each run: in how many of SEEDS at least, and why."""
LINES_ALONE = "it changes no answer: lines alone show it"
NOT_EXERCISED = "not exercised"
FAIL, UNKNOWN, UNTRACED, BELIEVED = "fail", "unknown", "untraced", "believed"
"""What becomes of an altered run. It is untraced, at level wire, where no answer differs from those
of a coordinator that keeps the rules."""
NOT_ON_WIRE: Mapping[str, str] = {
    **{
        f"{api.lower()}_{error.name.lower()}_{when}": (
            "while a broker is down writes may fail, and no line says that one did not"
        )
        for api in IN_AN_OUTAGE
        for error in WRITES
        for when in ("in_an_outage", "for_ten_seconds")
    },
    "heartbeat_held": "it may have waited for its turn, which only the broker measures",
}
"""Why answers cannot show a lie in each of its runs."""


@dataclass(frozen=True, slots=True)
class Row:
    """A broken rule or a lie, and in how many `runs` of an experiment it is found.

    `basis` is the rule's source, or the freedom that the lie claims. `given` are all runs of the
    experiment; those without its group, or without a place for it, are not among `runs`. Of these
    `fails` fail, `doubts` are unknown because of it, and `untraced` are that. `elsewhere` says what
    else shows the rule: in the oracle's place, or in other recordings at level wire.
    """

    level: Level
    name: str
    basis: str
    experiment: str
    given: int
    runs: int
    fails: int
    doubts: int = 0
    untraced: int = 0
    elsewhere: str = ""

    @property
    def is_exercised(self) -> bool:
        """Whether there are enough runs, and each has a place for it."""
        return self.runs == self.given >= (1 if self.level is Level.WIRE else SEEDS)

    @property
    def is_found(self) -> bool:
        """Whether it is found in every run."""
        if not self.is_exercised:
            return False
        if self.level is Level.WIRE:
            return self.fails + self.doubts + self.untraced == self.runs
        if self.name in LIES:
            return self.fails + self.doubts == self.runs
        return self.fails == self.runs and bool(self.elsewhere)

    @property
    def is_explained(self) -> bool:
        """Whether it is known why some runs do not show it."""
        if self.level is Level.WIRE:
            return self.is_exercised and self.name in NOT_ON_WIRE
        least, _ = NOT_SHOWN.get(self.name, (self.runs + 1, ""))
        return self.is_exercised and self.fails + self.doubts >= least

    @property
    def line(self) -> str:
        """The row of the Markdown table."""
        shown = f"{self.fails} fail" + (f", {self.doubts} unknown" if self.doubts else "")
        runs = f"`{self.experiment}` {self.runs}"
        if self.level is Level.WIRE:
            reason = LINES_ALONE if self.untraced == self.runs else NOT_ON_WIRE.get(self.name, "")
            if 0 < self.untraced < self.runs and not reason:
                reason = f"{self.untraced} without another answer"
            cells = [runs, shown, self.elsewhere, reason]
        elif self.name in LIES:
            cells = [self.basis, runs, shown, NOT_SHOWN.get(self.name, (0, ""))[1]]
        else:
            in_logs = f"`{self.experiment}` {self.fails} of {self.runs}"
            cells = [self.basis, in_logs, self.elsewhere or "0"]
        if self.runs < self.given or not self.given:
            cells[-1] = f"{NOT_EXERCISED} in {self.given - self.runs} of {self.given} runs"
        return f"| {' | '.join([f'`{self.name}`', *cells])} |"


@dataclass(frozen=True, slots=True)
class Table:
    """All rows, and the result for unaltered evidence.

    `findings` is their number in `runs` unaltered runs, `contradicted` the number of `sequences`
    that the unaltered oracle does not explain.
    """

    rows: tuple[Row, ...]
    runs: int
    findings: int
    sequences: int = 0
    contradicted: int = 0

    @property
    def good(self) -> bool:
        """Whether all is found or explained, and unaltered evidence has no finding."""
        shown = all(row.is_found or row.is_explained for row in self.rows)
        return shown and not self.findings and not self.contradicted

    @property
    def summary(self) -> str:
        """How many are found."""
        rules = sum(row.name in BROKEN_RULES for row in self.rows)
        is_found = Counter(row.name in BROKEN_RULES for row in self.rows if row.is_found)
        explained = sum(row.is_explained and not row.is_found for row in self.rows)
        idle = sum(not row.is_exercised for row in self.rows)
        silent = sum(row.untraced == row.runs > 0 for row in self.rows)
        unchanged = f", {silent} of them change no answer" if silent else ""
        return (
            f"{rules} broken rules: {is_found[True]} found; {len(self.rows) - rules} lies:"
            f" {is_found[False]} found{unchanged}; {explained} explained; {idle} {NOT_EXERCISED};"
            f" unaltered: {self.findings} findings in {self.runs} runs,"
            f" {self.contradicted} of {self.sequences} sequences not explained"
        )


def where(name: str) -> tuple[str, str]:
    """Return the experiment and the group that have a place for a broken rule or a lie."""
    about = BROKEN_RULES.get(name) or LIES[name]
    return about.experiment, about.group


def row(
    name: str,
    level: Level,
    runs: Sequence[Recording],
    sequences: Sequence[EventSequence] = (),
    recordings: Sequence[Recording] = (),
) -> Row:
    """Break a rule, or tell a lie, in all runs that have a place for it."""
    experiment, group = where(name)
    altered = ((run, _altered(name, run, group)) for run in runs)
    of = Counter(_outcome(name, run, lie, group, level) for run, lie in altered if lie is not None)
    basis, elsewhere = LIES[name].freedom if name in LIES else BROKEN_RULES[name].source, ""
    if name in BROKEN_RULES and level is Level.WIRE:
        failing = sum(_fails_on_wire(MUTANTS[name], recording) for recording in recordings)
        elsewhere = f"{failing} of {len(recordings)}"
    elif name in BROKEN_RULES:
        elsewhere = _as_oracle(MUTANTS[name], group, runs, sequences, recordings)
    counts = of.total(), of[FAIL], of[UNKNOWN], of[UNTRACED]
    return Row(level, name, basis, experiment, len(runs), *counts, elsewhere)


def _altered(name: str, run: Recording, group: str) -> Recording | None:
    """Alter a run; None if it has no place for that."""
    if name in BROKEN_RULES:
        return synthesized_run_of(MUTANTS[name], run, group) if group in run.groups else None
    log = GroupLines(run, group)
    lines = LIES[name].tell(log)
    return None if lines is None else _with_lines(log, lines)


@lru_cache(maxsize=1)
def _unaltered(run: Recording, group: str, level: Level, *, written_anew: bool) -> Recording:
    """Make the same run with nothing altered in it, as its log is or is written anew.

    The last one is kept, for who alters one run in many ways: the rows of a table take turns.
    """
    log = GroupLines(run, group)
    plain = synthesized_run_of(step, run, group) if written_anew else _with_lines(log, log.lines)
    return WireRun(run.folder, plain) if level is Level.WIRE else plain


def _with_lines(log: GroupLines, lines: Iterable[SynthesizedLine]) -> SynthesizedRun:
    return SynthesizedRun(log.recording.folder, log.recording, log.group, tuple(lines), log.fenced)


def _outcome(name: str, run: Recording, altered: Recording, group: str, level: Level) -> str:
    """Return what becomes of an altered run.

    It is unknown only because of what is altered: by a doubt that the plain run does not have, and
    that is designed for such a lie.
    """
    on_wire = level is Level.WIRE
    judged = WireRun(altered.folder, altered) if on_wire else altered
    if fails(judged, group):
        return FAIL
    seen = doubts(judged, group)
    if not seen and not on_wire:
        return BELIEVED
    truth = _unaltered(run, group, level, written_anew=name in BROKEN_RULES)
    own = seen - doubts(truth, group)
    if own and (name in BROKEN_RULES or own.keys() & LIES[name].doubts):
        return UNKNOWN
    return UNTRACED if on_wire and _answers(judged) == _answers(truth) else BELIEVED


def _answers(run: Recording) -> list[object]:
    """Return all answers of a run, and when they were given."""
    return [
        (line.broker, line.row["connection"], line.row["correlation_id"], line.row["response"],
         line.row["answered_ms"])
        for line in sorted(run.lines, key=lambda line: (line.broker, line.number))
        if "connection" in line.row
    ]  # fmt: skip


def _fails_on_wire(mutant: Step, run: Recording) -> bool:
    return any(
        fails(WireRun(run.folder, synthesized_run_of(mutant, run, group)), group)
        for group in run.groups
    )


def _as_oracle(
    mutant: Step,
    group: str,
    runs: Iterable[Recording],
    sequences: Sequence[EventSequence],
    recordings: Iterable[Recording],
) -> str:
    """Say what contradicts a mutant in the oracle's place: sequences, or else runs; or nothing."""
    verdicts = Counter(explains(sequence, mutant, BRIEFLY) for sequence in sequences)
    if unexplained := verdicts[Verdict.UNEXPLAINED]:
        return f"{unexplained} of {len(sequences)} sequences"
    if replayed := sum(contradicts(run, group, mutant) for run in runs):
        return f"{replayed} of these runs"
    recorded = sum(
        any(contradicts(recording, each, mutant) for each in recording.groups)
        for recording in recordings
    )
    return f"{recorded} other recordings" if recorded else ""


_recording = cache(Recording)
"""Opens a run once in each process, since reading it takes long."""


def _row(
    name: str,
    level: Level,
    folders: Sequence[Path],
    sequences: Sequence[EventSequence],
    recordings: Sequence[Path],
) -> Row:
    runs, others = (list(map(_recording, places)) for places in (folders, recordings))
    return row(name, level, runs, sequences, others)


def _findings(folder: Path, level: Level) -> int:
    run = _recording(folder)
    if level is Level.WIRE:
        run = WireRun(folder, run)
    return sum(len(found(run, group)) for group in run.groups)


def _is_contradicted(sequence: EventSequence) -> bool:
    return explains(sequence) is not Verdict.EXPLAINED


def make_table(
    level: Level,
    runs: Runs,
    sequences: Sequence[EventSequence],
    recordings: Sequence[Path],
    progress: Callable[[str], None],
) -> Table:
    """Make the whole table, on all cores; `recordings` are further runs of all kinds."""
    folders = {name: [run.folder for run in mine] for name, mine in runs.items()}
    kept = [folder for mine in folders.values() for folder in mine]
    everything = [*recordings, *kept]
    unaltered, others = (everything, recordings) if level is Level.WIRE else (kept, everything)
    rows = []
    with multiprocessing.get_context("spawn").Pool() as pool:
        waiting = [
            pool.apply_async(
                _row, (name, level, folders.get(where(name)[0], []), sequences, others)
            )
            for name in (*BROKEN_RULES, *LIES)
        ]
        clean = pool.starmap_async(_findings, [(folder, level) for folder in unaltered], 1)
        contradicted = pool.map_async(_is_contradicted, sequences, chunksize=1)
        for number, result in enumerate(waiting, 1):
            rows.append(result.get())
            progress(f"{number} of {len(waiting)}: {rows[-1].line}")
        counts = (len(unaltered), sum(clean.get()), len(sequences), sum(contradicted.get()))
        return Table(tuple(rows), *counts)
