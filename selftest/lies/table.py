"""What becomes of lies: in how many recorded runs each is found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.judgement.collector import collector_paused
from reports.judgement.recording import Recording
from selftest.lies.answers import ANSWERS
from selftest.lies.fenced import FENCES
from selftest.lies.fetches import FETCHES
from selftest.lies.group_lines import GroupLines, Lie
from selftest.lies.lines import LINES
from selftest.mutants.judging import fails, found
from selftest.mutants.synthesized_run import SynthesizedRun

LIES: Mapping[str, Lie] = {lie.name: lie for lie in (*ANSWERS, *LINES, *FETCHES, *FENCES)}
SEEDS = 10
"""How many seeds of an experiment must show a lie."""
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


@dataclass(frozen=True, slots=True)
class LieResult:
    """One lie: `fails` and `doubts` of `runs` with it have a finding, proven or not."""

    lie: str
    freedom: str
    experiment: str
    runs: int
    fails: int
    doubts: int

    @property
    def found(self) -> bool:
        """Whether no run believes it."""
        return self.fails + self.doubts == self.runs >= SEEDS

    @property
    def explained(self) -> bool:
        """Whether some runs believe it, no more than those in which nothing can show it."""
        least, _ = NOT_SHOWN.get(self.lie, (self.runs, ""))
        return not self.found and self.runs >= SEEDS and self.fails + self.doubts >= least

    @property
    def line(self) -> str:
        """The row of the Markdown table."""
        found = f"{self.fails} fail" + (f", {self.doubts} unknown" if self.doubts else "")
        _, reason = NOT_SHOWN.get(self.lie, (0, ""))
        cells = (f"`{self.lie}`", self.freedom, f"`{self.experiment}` {self.runs}", found, reason)
        return f"| {' | '.join(cells)} |"


def result_of(name: str, recordings: Sequence[Recording]) -> LieResult:
    """Tell a lie to every run that has a place for it."""
    lie = LIES[name]
    count = failed = doubted = 0
    for recording in recordings:
        with collector_paused():
            log = GroupLines(recording, lie.group)
            lines = lie.tell(log)
            if lines is None:
                continue
            count += 1
            run = SynthesizedRun(recording.folder, recording, lie.group, tuple(lines), log.fenced)
            if fails(run, lie.group):
                failed += 1
            elif found(run, lie.group):
                doubted += 1
    return LieResult(name, lie.freedom, lie.experiment, count, failed, doubted)
