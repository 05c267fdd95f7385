"""The table of mutants and lies at level `wire`: in how many runs the answers alone show each."""

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reference_coordinator.classic.step import step
from reports.judgement.collector import collector_paused
from reports.judgement.recording import Recording
from selftest.broken_rules import MUTANTS
from selftest.lies.answers import WRITES as OF_WRITES
from selftest.lies.group_lines import GroupLines
from selftest.lies.table import LIES
from selftest.mutants import judging
from selftest.mutants.catching_experiments import CATCHING_EXPERIMENTS
from selftest.mutants.evidence import Runs
from selftest.mutants.synthesized_run import SynthesizedRun
from selftest.mutants.wire_run import WireRun

LINES_ALONE = "it changes no answer: lines alone show it"
UNTRACED = "untraced"
WRITES = "while a broker is down writes may fail, and no line says that one did not"
NOT_SHOWN: Mapping[str, str] = {
    **{
        f"{api.lower()}_{error.name.lower()}_{when}": WRITES
        for api in ("HEARTBEAT", "OFFSET_COMMIT")
        for error in OF_WRITES
        for when in ("in_an_outage", "for_ten_seconds")
    },
    "heartbeat_held": "it may have waited for its turn, which only the broker measures",
}
"""Why answers cannot show a mutant or a lie in each of its runs."""


@dataclass(frozen=True, slots=True)
class WireRow:
    """A mutant or lie: of `runs` of an experiment `fails`, and `doubts` are unknown.

    In `untraced` of them no answer differs from those of a coordinator that keeps the rules. Of the
    `recordings` all groups of it were synthesized; of a lie it is None.
    """

    name: str
    experiment: str
    runs: int
    fails: int
    doubts: int
    untraced: int
    recordings: int | None

    @property
    def good(self) -> bool:
        """Whether no run with a trace of it passes, or it is known why."""
        shown = self.fails + self.doubts + self.untraced == self.runs > 0
        return shown or self.name in NOT_SHOWN

    @property
    def line(self) -> str:
        """The row of the Markdown table."""
        found = f"{self.fails} fail" + (f", {self.doubts} unknown" if self.doubts else "")
        reason = LINES_ALONE if self.untraced == self.runs else NOT_SHOWN.get(self.name, "")
        if 0 < self.untraced < self.runs and not reason:
            reason = f"{self.untraced} without another answer"
        of_recordings = "" if self.recordings is None else f"{self.recordings} of 3"
        cells = (f"`{self.name}`", f"`{self.experiment}` {self.runs}", found, of_recordings, reason)
        return f"| {' | '.join(cells)} |"


HEAD = """\\
| mutant or lie | runs with it | found in | recordings that fail | what the wire does not show |
|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class WireTable:
    """All rows, and what is found in `runs` unaltered runs."""

    rows: tuple[WireRow, ...]
    runs: int
    findings: int

    @property
    def good(self) -> bool:
        """Whether all is found that answers show, and nothing in unaltered runs."""
        return all(row.good for row in self.rows) and not self.findings

    @property
    def lines(self) -> list[str]:
        """The table and its summary."""
        return [HEAD, *(row.line for row in self.rows), "", self.summary]

    @property
    def summary(self) -> str:
        """How many are found."""
        of = [(row.fails, row.doubts, row.untraced, row.runs) for row in self.rows]
        wholly = sum(fails == runs for fails, _, _, runs in of)
        never = sum(untraced == runs for _, _, untraced, runs in of)
        return (
            f"level wire: of {len(self.rows)} mutants and lies {wholly} fail in every run, {never}"
            f" change no answer, {len(self.rows) - wholly - never} fail in some or are unknown;"
            f" unaltered: {self.findings} findings in {self.runs} runs"
        )


def of_mutant(name: str, runs: Sequence[Recording], recordings: Sequence[Recording]) -> WireRow:
    """Let a mutant answer the requests of runs, and judge what the tap would have seen."""
    catching = CATCHING_EXPERIMENTS[name]
    group = catching.group
    found = []
    for run in (run for run in runs if group in run.groups):
        broken = _synthesized(name, run, group)
        found.append(_found(broken, group) or _trace(broken, _synthesized(None, run, group)))
    caught = sum(
        any(_found(_synthesized(name, one, mine), mine) == "fail" for mine in one.groups)
        for one in recordings
    )
    return _row(name, catching.experiment, found, caught)


def of_lie(name: str, runs: Sequence[Recording]) -> WireRow:
    """Tell a lie to every run that has a place for it, and judge what the tap would have seen."""
    lie, found = LIES[name], []
    for run in runs:
        log = GroupLines(run, lie.group)
        lied, plain = lie.tell(log), log.lines
        if lied is not None:
            altered = (
                SynthesizedRun(run.folder, run, lie.group, tuple(of)) for of in (lied, plain)
            )
            broken, true = (WireRun(run.folder, one) for one in altered)
            found.append(_found(broken, lie.group) or _trace(broken, true))
    return _row(name, lie.experiment, found, None)


def _row(name: str, experiment: str, found: Sequence[str], recordings: int | None) -> WireRow:
    fails, doubts, untraced = (found.count(what) for what in ("fail", "unknown", UNTRACED))
    return WireRow(name, experiment, len(found), fails, doubts, untraced, recordings)


def _trace(broken: WireRun, true: WireRun) -> str:
    """Tell whether answers that nothing is found in are those of a true run, too."""
    return UNTRACED if _answers(broken) == _answers(true) else "believed"


def _synthesized(mutant: str | None, run: Recording, group: str) -> WireRun:
    coordinator = step if mutant is None else MUTANTS[mutant]
    return WireRun(run.folder, judging.synthesized_run_of(coordinator, run, group))


def _found(run: WireRun, group: str) -> str:
    """Return the verdict that what is found in a group gives; "" where nothing is."""
    with collector_paused():
        if judging.fails(run, group):
            return "fail"
        bound = judging.bound(run, group)
        return "unknown" if judging.found(run, group) or bound.keys() & judging.DOUBTFUL else ""


def _answers(run: WireRun) -> list[object]:
    """Return all answers of a run, and when they were given."""
    return [
        (line.broker, line.row["connection"], line.row["correlation_id"], line.row["response"],
         line.row["answered_ms"])
        for line in sorted(run.lines, key=lambda line: (line.broker, line.number))
        if "connection" in line.row
    ]  # fmt: skip


_OPEN: dict[Path, Recording] = {}


def _recording(folder: Path) -> Recording:
    return _OPEN.setdefault(folder, Recording(folder))


def _mutant_row(name: str, folders: Sequence[Path], recordings: Sequence[Path]) -> WireRow:
    runs, others = (list(map(_recording, places)) for places in (folders, recordings))
    return of_mutant(name, runs, others)


def _lie_row(name: str, folders: Sequence[Path]) -> WireRow:
    return of_lie(name, list(map(_recording, folders)))


def _findings(folder: Path) -> int:
    run = WireRun(folder, _recording(folder))
    return sum(len(judging.found(run, group)) for group in run.groups)


def make_wire_table(
    runs: Runs, recordings: Sequence[Path], progress: Callable[[str], None]
) -> WireTable:
    """Make the whole table, on all cores."""
    folders = {name: [run.folder for run in mine] for name, mine in runs.items()}
    of = lambda experiment: folders.get(experiment, [])
    everything = [*recordings, *(folder for mine in folders.values() for folder in mine)]
    with multiprocessing.get_context("spawn").Pool() as pool:
        waiting = [
            pool.apply_async(_mutant_row, (name, of(catching.experiment), recordings))
            for name, catching in CATCHING_EXPERIMENTS.items()
        ]
        waiting += [
            pool.apply_async(_lie_row, (name, of(lie.experiment))) for name, lie in LIES.items()
        ]
        clean = pool.map_async(_findings, everything, chunksize=1)
        rows = []
        for number, one in enumerate(waiting, 1):
            rows.append(one.get())
            progress(f"{number} of {len(waiting)}: {rows[-1].line}")
        return WireTable(tuple(rows), len(everything), sum(clean.get()))
