"""`python -m selftest soak`: run after run, and one table of what grew."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import click
import yaml

from chaos import journal
from groupquake.console import Console
from groupquake.exits import Exit
from scenarios.fields import BIG_SEED
from selftest.soak.load import experiment
from selftest.soak.sampling import LEFT_TO_OTHERS, Sampler, Series, within, without
from selftest.soak.slopes import HOUR_S, Slope, slope_of

BOUNDS: Mapping[str, float] = {"threads": 5.0, "descriptors": 20.0, "memory MB": 50.0}
"""What a process may gain in an hour and be flat. One that keeps a thread or a socket at each fault
gains 60 an hour, and one that keeps two megabytes 120."""
ONCE: Mapping[str, float] = {"threads": 0.0, "descriptors": 0.0, "memory MB": 20.0}
"""What it may gain once, however short the time: the first fault of a kind loads modules and fills
caches. In runs of 30 minutes memory may so gain 90 MB an hour in all."""
SETTLES_S = 20.0
"""How long after a fault was verified connections and threads may still come and go."""
MEASURED = ("runner", "Locust", "tap")
"""The processes that must stay flat, as the sampler names them; the tap comes last."""
SAMPLES = "soak.jsonl"
"""The file of a run folder with all samples."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one kind of resource of one process in one run."""

    run: str
    process: str
    kind: str
    slope: Slope | None
    bound: float
    """How much it may gain in an hour."""

    @property
    def outcome(self) -> str:
        """Whether it stayed flat; brokers are shown for information."""
        if self.slope is None:
            return "too few samples"
        if self.process in LEFT_TO_OTHERS:
            return "-"
        return "flat" if self.slope.is_flat(self.bound) else "GROWS"

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        names = (self.run, self.process, self.kind)
        if self.slope is None:
            return (*names, "", "", "", "", self.outcome)
        slope = self.slope
        return (
            *names,
            f"{slope.first:.1f}",
            f"{slope.last:.1f}",
            f"{slope.per_hour:+.1f} ± {slope.error:.1f}",
            f"{self.bound:.0f}",
            self.outcome,
        )


TITLES = ("run", "process", "of it", "first", "last", "an hour", "bound", "")


@click.command()
@click.option("--minutes", type=click.IntRange(1, 960), default=60, show_default=True,
              help="How long the members run, both runs together.")  # fmt: skip
@click.option("--members", type=click.IntRange(20, 5_000), default=300, show_default=True,
              help="Number of members.")  # fmt: skip
@click.option("--every", "every_s", type=click.IntRange(30, 86_400), default=60, show_default=True,
              help="Seconds from one fault to the next.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, BIG_SEED), default=0, show_default=True,
              help="Decides which faults there are.")  # fmt: skip
@click.option("--runs", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"),
              show_default=True, help="Parent of the run folders.")  # fmt: skip
def soak(minutes: int, members: int, every_s: int, seed: int, runs: Path) -> Exit:
    """Run many members and a fault a minute, and see whether our processes grow.

    Two runs share the time: one reaches the brokers directly, one through the tap. Threads, open
    descriptors and resident memory of the runner, of Locust and of the tap are sampled between
    faults. Each is flat if the 95 % interval of its slope includes less than a bound an hour. The
    exit code is 0 if all are flat and both verdicts are pass, 1 if something grows or a verdict is
    fail, 2 if a verdict is unknown or a process has too few samples.
    """
    console = Console()
    runs.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    codes: list[int] = []
    verdicts: list[str] = []
    for tap in (False, True):
        document = experiment(members, minutes / 2, every_s, seed, tap=tap)
        name = document["name"]
        file = runs / f"{name}.yaml"
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        code, folder, series = _run(file, seed, runs, console, tap=tap)
        if code not in (Exit.PASS, Exit.FAIL, Exit.UNKNOWN):
            return Exit(code)
        _keep(folder / SAMPLES, series)
        codes.append(code)
        rows += _rows(name, folder, series, MEASURED if tap else MEASURED[:2])
        verdicts += _of_verdict(name, folder)
    console.result(*_table(rows), "", *verdicts)
    grows = any(row.outcome == "GROWS" for row in rows)
    if grows or Exit.FAIL in codes:
        return Exit.FAIL
    unsure = any(row.slope is None and row.process in MEASURED for row in rows)
    return Exit.UNKNOWN if unsure or Exit.UNKNOWN in codes else Exit.PASS


def _run(
    file: Path, seed: int, runs: Path, console: Console, *, tap: bool
) -> tuple[int, Path, Series]:
    """Run an experiment as a user does; return its exit code, its folder and the samples."""
    command = [
        *(sys.executable, "-m", "groupquake", "run", str(file)),
        *("--seed", str(seed), "--runs", str(runs)),
        *(("--tap",) if tap else ()),
    ]
    console.progress(f"{file.stem}: begins")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            with Sampler(process.pid) as sampler:
                out, _ = process.communicate()
        except BaseException:
            process.terminate()  # it heals its faults and ends
            process.wait()
            raise
    console.progress(f"{file.stem}: ended with exit code {process.returncode}")
    console.progress(*out.strip().split("\n"))
    return process.returncode, (runs / "latest").resolve(), sampler.series


def _keep(file: Path, series: Series) -> None:
    """Write all samples down: they show the curves."""
    with file.open("w") as out:
        for (process, kind), samples in series.items():
            for at_s, value in samples:
                line = {"at_ms": round(at_s * 1000), "process": process, "of": kind, "value": value}
                out.write(json.dumps(line) + "\n")


def _rows(name: str, folder: Path, series: Series, ours: Sequence[str]) -> Iterator[Row]:
    """Yield a row for each process and kind: of the time of faults, but while no fault is open.

    Each process of `ours` has its rows, also without samples.
    """
    entries = journal.read(folder / "journal.jsonl")
    began = {e["phase"]: e["at_ms"] / 1000 for e in entries if e["event"] == "phase"}
    # in the recovery Spark starts, for the analysis
    from_s, until_s = began["impact"], began.get("recovery", began["teardown"])
    quiet = without(within(series, from_s, until_s), _of_faults(entries))
    quiet = {(process, kind): [] for process in ours for kind in BOUNDS} | quiet
    for (process, kind), samples in sorted(quiet.items()):
        yield Row(name, process, kind, slope_of(samples), allowed(kind, until_s - from_s))


def _of_faults(entries: Sequence[journal.Entry]) -> list[tuple[float, float]]:
    """Return from when until when each fault of a journal was open, in epoch seconds."""
    begun = {e["fault_id"]: e["at_ms"] / 1000 for e in entries if e["event"] == "intent"}
    over = {e["fault_id"]: e["at_ms"] / 1000 for e in entries if e["event"] == "verified"}
    return [(at_s, over.get(fault, inf) + SETTLES_S) for fault, at_s in begun.items()]


def allowed(kind: str, lasts_s: float) -> float:
    """Return what a process may gain in an hour, by samples of so long a time."""
    return BOUNDS[kind] + ONCE[kind] * HOUR_S / lasts_s


def _of_verdict(name: str, folder: Path) -> Iterator[str]:
    """Yield what the run came to, and the groups that are not wholly explained."""
    verdict: dict[str, Any] = json.loads((folder / "verdict.json").read_text())
    groups = verdict["groups"]
    doubts = [*verdict["unknown_because"], *verdict.get("notes", ())]
    unknown = [
        group
        for group, of in groups.items()
        if of["responses_explained"] < of["responses_checked"]
        or any(f"group {group}:" in why for why in doubts)
    ]
    faults = sum(fault["verified"] for fault in verdict["faults"])
    yield (
        f"{name}: verdict {verdict['verdict']}; {faults} of {len(verdict['faults'])} faults"
        f" verified; {len(unknown)} of {len(groups)} groups unknown; {folder / 'report.html'}"
    )


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table of all rows."""
    cells = [TITLES, *(row.cells for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(padded).rstrip()
