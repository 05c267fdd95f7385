"""`python -m selftest soak`: run after run, and one table of what grew."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import click
import pandas as pd
import yaml

from chaos import journal
from groupquake.console import Console
from groupquake.exits import Exit
from scenarios.fields import BIG_SEED
from selftest.soak.growth import BOUNDS, Sampler, Slope, allowed, slope_of, without
from selftest.soak.load import experiment
from selftest.timing import SETTLES_S

MEASURED = ("runner", "Locust", "tap")
"""The processes that must stay flat, as the sampler names them; the tap comes last."""
SAMPLES = "soak.jsonl"
"""The file of a run folder with all samples."""
TITLES = ("run", "process", "of it", "first", "last", "an hour", "bound", "")
GROWS, FEW = "GROWS", "too few samples"


class Row(NamedTuple):
    """What became of one kind of resource of one process; `bound` is what it may gain an hour."""

    run: str
    process: str
    kind: str
    slope: Slope | None
    bound: float

    @property
    def outcome(self) -> str:
        """Whether it stayed flat."""
        if self.slope is None:
            return FEW
        return "flat" if self.slope.is_flat(self.bound) else GROWS

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        figures = ["", "", "", ""]
        if (slope := self.slope) is not None:
            an_hour = f"{slope.per_hour:+.1f} ± {slope.error:.1f}"
            figures = [f"{slope.first:.1f}", f"{slope.last:.1f}", an_hour, f"{self.bound:.0f}"]
        return [self.run, self.process, self.kind, *figures, self.outcome]


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
        code, folder, samples = _run(file, seed, runs, console, tap=tap)
        if code not in (Exit.PASS, Exit.FAIL, Exit.UNKNOWN):
            return Exit(code)
        samples.to_json(folder / SAMPLES, orient="records", lines=True)
        codes.append(code)
        rows += _rows(name, folder, samples, MEASURED if tap else MEASURED[:2])
        verdicts.append(_of_verdict(name, folder))
    console.result(*_table(rows), "", *verdicts)
    outcomes = {row.outcome for row in rows}
    if GROWS in outcomes or Exit.FAIL in codes:
        return Exit.FAIL
    return Exit.UNKNOWN if FEW in outcomes or Exit.UNKNOWN in codes else Exit.PASS


def _run(
    file: Path, seed: int, runs: Path, console: Console, *, tap: bool
) -> tuple[int, Path, pd.DataFrame]:
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
    return process.returncode, (runs / "latest").resolve(), sampler.samples


def _rows(name: str, folder: Path, samples: pd.DataFrame, ours: Sequence[str]) -> Iterator[Row]:
    """Yield a row for each process and kind: of the time of faults, but while no fault is open."""
    entries = journal.read(folder / "journal.jsonl")
    began = {e["phase"]: e["at_ms"] / 1000 for e in entries if e["event"] == "phase"}
    # in the recovery Spark starts, for the analysis
    from_s, until_s = began["impact"], began.get("recovery", began["teardown"])
    quiet = without(samples, [(-inf, from_s), (until_s, inf), *_of_faults(entries)])
    for process in sorted(ours):
        for kind in BOUNDS:
            mine = quiet[(quiet["process"] == process) & (quiet["of"] == kind)]
            slope = slope_of(list(zip(mine["at_s"], mine["value"], strict=True)))
            yield Row(name, process, kind, slope, allowed(kind, until_s - from_s))


def _of_faults(entries: Sequence[journal.Entry]) -> list[tuple[float, float]]:
    """Return from when until when each fault of a journal was open, in epoch seconds."""
    begun = {e["fault_id"]: e["at_ms"] / 1000 for e in entries if e["event"] == "intent"}
    over = {e["fault_id"]: e["at_ms"] / 1000 for e in entries if e["event"] == "verified"}
    return [(at_s, over.get(fault, inf) + SETTLES_S) for fault, at_s in begun.items()]


def _of_verdict(name: str, folder: Path) -> str:
    """Return what the run came to, and how many groups are not wholly explained."""
    verdict: dict[str, Any] = json.loads((folder / "verdict.json").read_text())
    groups = verdict["groups"]
    doubts = [*verdict["unknown_because"], *verdict.get("notes", ())]
    unknown = sum(
        of["responses_explained"] < of["responses_checked"]
        or any(f"group {group}:" in why for why in doubts)
        for group, of in groups.items()
    )
    faults = sum(fault["verified"] for fault in verdict["faults"])
    return (
        f"{name}: verdict {verdict['verdict']}; {faults} of {len(verdict['faults'])} faults"
        f" verified; {unknown} of {len(groups)} groups unknown; {folder / 'report.html'}"
    )


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table of all rows."""
    cells = [TITLES, *(row.cells for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(padded).rstrip()
