"""What a terminal shows of a run while it goes on, read from its folder as that grows.

In: the folder of a run, its experiment and its plan. Out, by the run's console: a line for each
rebalance, as soon as it is over; the details that `-v` asks for; on a terminal a bar with the phase
and about how long the run still takes.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.plan import Plan
from chaos.tail import Tail
from groupquake import timing
from groupquake.background import Background
from groupquake.console import Console, is_terminal
from groupquake.writer import Writer
from reports.page.wording import REASONS, seconds
from scenarios import Experiment

if TYPE_CHECKING:
    from groupquake.live.facts import Rebalance

_WHO = re.compile(r"^(?:a|the)(?: new| static)? (?:member|leader)\b")


@contextmanager
def shown(folder: Path, experiment: Experiment, plan: Plan, console: Console) -> Iterator[None]:
    """Show a run as long as the block lasts; until all is written, where somebody reads it."""
    phases = Phases(durations(experiment, plan))
    has_bar = is_terminal(sys.stderr) and not console.quiet
    with Writer(RunBar(phases) if has_bar else None) as writer:
        Console.writer = writer
        try:
            with RunScreen(folder, experiment.group_names, phases, console):
                yield
        finally:
            Console.writer = None


@dataclass
class RunScreen(Background):
    """Prints what the files of a run tell, in a thread of its own as long as a block lasts."""

    thread_name = "screen"
    folder: Path
    groups: Iterable[str]
    phases: "Phases"
    console: Console

    def _run(self) -> None:
        journal, load = Tail(self.folder / "journal.jsonl"), Tail(self.folder / "locust.log")
        over = rebalances(self.folder, self.groups)
        last = False
        while not last:
            last = self._over.wait(timing.SCREEN_S)
            for line in journal.appended():
                self._take(json.loads(line))
            for line in load.appended():
                if line.startswith(("[", "%")):  # of loggers, and of librdkafka
                    self.console.detail(f"load: {line}")
            for line in over():
                self.console.progress(line)

    def _take(self, entry: Mapping[str, object]) -> None:
        """Take an entry of the journal: a phase begins, or there are details of a fault."""
        match entry:
            case {"event": "phase", "phase": str(phase)}:
                self.phases.begin(phase)
            case {"event": "verified", "verified": True, "fault_id": id_, "witness": detail}:
                self.console.detail(f"{id_} was seen: {detail}")
            case {"event": "healed", "fault_id": id_, "how": detail}:
                self.console.detail(f"{id_} was healed: {detail}")


def durations(experiment: Experiment, plan: Plan) -> dict[str, float]:
    """Return how long each phase of the journal takes, in seconds: as planned, or as usual."""
    phases, steps = experiment.phases, plan.steps
    planned_ms = min((step.at_ms for step in steps), default=0) + phases.impact_ms
    in_ms = {
        "cluster": timing.USUAL_START_MS,
        "impact": max([planned_ms, *(step.at_ms + step.what.lasting_ms for step in steps)]),
        "recovery": phases.recovery_ms,
        "teardown": timing.USUAL_JUDGING_MS,
    }
    return {name: duration_ms / 1000 for name, duration_ms in in_ms.items()}


class Phases:
    """The phases of a run, by what each takes in seconds; the first has begun."""

    def __init__(self, durations: Mapping[str, float]) -> None:
        self._durations = durations
        self._start = self._began = time.monotonic()
        self.now = next(iter(durations))

    def begin(self, phase: str) -> None:
        """Note that a phase begins."""
        if phase in self._durations:
            self.now, self._began = phase, time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """How long the run takes so far."""
        return time.monotonic() - self._start

    @property
    def left_s(self) -> float:
        """How long it takes from now on, as far as is known."""
        names = list(self._durations)
        later = names[names.index(self.now) + 1 :]
        here_s = self._durations[self.now] - (time.monotonic() - self._began)
        return max(here_s, 0.0) + sum(self._durations[name] for name in later)


class RunBar:
    """The bar of a run: its phase, how much of its time is over, about how much is left."""

    def __init__(self, phases: Phases) -> None:
        from rich.console import Console as Terminal  # noqa: PLC0415 (only a terminal needs it)
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

        self._phases = phases
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"),
            console=Terminal(stderr=True), auto_refresh=False, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._task = self._progress.add_task("", left="")

    def draw(self) -> None:
        """Draw it as it is now."""
        elapsed_s, left_s = self._phases.elapsed_s, self._phases.left_s
        self._progress.update(
            self._task, total=elapsed_s + left_s, completed=elapsed_s,
            description=_TITLES.get(self._phases.now, self._phases.now),
            left=f"about {left_s:.0f} s left" if left_s >= 1 else "about to end",
        )  # fmt: skip
        self._progress.start()
        self._progress.refresh()

    def above(self, text: str) -> None:
        """Print lines above it."""
        from rich.text import Text  # noqa: PLC0415

        self._progress.console.print(Text.from_ansi(text), soft_wrap=True)

    def end(self) -> None:
        """Remove it."""
        self._progress.stop()


_TITLES = {"cluster": "starting", "teardown": "closing, judging"}


def rebalances(folder: Path, groups: Iterable[str]) -> Callable[[], Iterator[str]]:
    """Return what yields a line for each rebalance of a run that is over since it was called."""
    from groupquake.live.facts import Facts  # noqa: PLC0415 (slow, and the cluster starts meanwhile)

    facts, shown = Facts(folder, groups), set[int]()

    def over() -> Iterator[str]:
        facts.read_logs()
        for number, one in enumerate(facts.rebalances):
            if one.ended_ms is not None and number not in shown:
                shown.add(number)
                took = seconds(one.ended_ms - one.at_ms, 3)
                yield f"{one.group} rebalances: {_why(one)} (generation {one.generation}, {took} s)"

    return over


def _why(one: "Rebalance") -> str:
    """Say the broker's reason in words, with the client that it names."""
    words = REASONS.get(one.reason_class, one.reason_class) or one.reason
    return _WHO.sub(lambda _: one.client, words) if one.client else words
