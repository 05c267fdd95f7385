"""The pipeline beside its yardsticks: `python -m benchmarks.comparison`.

Each row runs its sides in turn, in processes of their own, on the same files: a figure beside its
peer of the same round, and its goal. Ratios are medians of those of the rounds. With `--json` the
rows of earlier calls are kept, so that rows can be measured one by one.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click

from benchmarks import measures
from benchmarks.measures import Series
from benchmarks.table import HEAD, Line, as_text, table

Measured = dict[str, Series]
"""Values by row and series; a row is a name, and a size behind it where it has one."""
PIPELINE_GOALS = {
    "storm 200": (1.4, 0.85), "storm 600": (1.85, 1.1), "storm 2000": (1.85, 1.2),
    "steady 600": (1.5, 0.8),
}  # fmt: skip
"""How many times as fast as the same work, and as the loop, the pipeline shall be on two cores."""
WORK_GOALS = {"storm 600": 1.5}
"""How many times the loop's processor time the same work may take."""


@dataclass(frozen=True)
class Of:
    """What was measured of a row."""

    label: str
    series: Series

    def __getitem__(self, name: str) -> float:
        """Return the median of a series."""
        return median(self.series[name])

    def ratio(self, one: str, other: str) -> float:
        """Return the median of the ratios of two series, pair by pair."""
        pairs = zip(self.series[one], self.series[other], strict=True)
        return median(a / b for a, b in pairs)


def _sides(of: Of) -> Iterator[Line]:
    name, _, size = of.label.partition(" ")
    what = f"{name} {size} MB"
    for side in measures.SIDES:
        cpu = f"{of[f'{side}_cpu_s']:.1f} s of processor time"
        yield Line(f"{what}: {side}", cpu, of[f"{side}_s"], "s")
    goals = PIPELINE_GOALS.get(of.label, (None, None))
    for side, goal in zip(("same work", "loop"), goals, strict=True):
        load = f"a load of {of['load']:.1f}"
        yield Line(f"{what}: {side} : pipeline", load, of.ratio(f"{side}_s", "pipeline_s"), "x",
                   goal, more=True)  # fmt: skip
    yield Line(f"{what}: same work : loop, processor time", "",
               of.ratio("same work_cpu_s", "loop_cpu_s"), "x",
               WORK_GOALS.get(of.label))  # fmt: skip
    yield Line(f"{what}: memory of a task", f"the loop {of['loop_mb']:,.0f} MB", of["task_mb"],
               "MB")  # fmt: skip


def _cores(of: Of) -> Iterator[Line]:
    yield Line(f"{of.label} MB: 1 to 2", f"{of['1_s']:.1f} to {of['2_s']:.1f} s",
               of.ratio("1_s", "2_s"), "x", 1.8, more=True)  # fmt: skip


def _extraction(of: Of) -> Iterator[Line]:
    yield Line(f"{of.label} MB, warm", f"DuckDB {of['duckdb_mb_s']:.0f} MB/s", of["spark_mb_s"],
               "MB/s", 0.5 * of["duckdb_mb_s"], more=True)  # fmt: skip


def _skew(of: Of) -> Iterator[Line]:
    for name, unit, goal in (("us_request", "µs a request", 1.3), ("task_mb", "MB a task", 1.15)):
        skewed, even = f"skewed_{name}", f"even_{name}"
        peer = f"spread evenly {as_text(of[even])}, one giant group {as_text(of[skewed])} {unit}"
        yield Line(f"{of.label} MB: {unit}", peer, of.ratio(skewed, even), "x", goal)


def _planted(of: Of) -> Iterator[Line]:
    peer = f"{of['planted']:.0f} planted, {of['seconds']:.0f} s"
    yield Line(f"{of.label} MB: missed, or found beside", peer, of["wrong"], "", 0)


def _oracle(of: Of) -> Iterator[Line]:
    for name, goal in (("steady 5", 250_000), ("steady 500", 150_000), ("storm", 20_000)):
        yield Line(f"oracle: {name}", "", of[name], "requests/s", goal, more=True)


def _verdict(of: Of) -> Iterator[Line]:
    for name in measures.EXPERIMENTS:
        yield Line(f"{name}: load's end to verdict", "", of[name], "s", 5)


def _one(
    what: str, unit: str, goal: float, *, more: bool = False
) -> Callable[[Of], Iterator[Line]]:
    """Return what gives the line of a row with one series."""

    def lines(of: Of) -> Iterator[Line]:
        (name,) = of.series
        size = of.label.partition(" ")[2]
        yield Line(f"{what}, {size} MB" if size else what, "", of[name], unit, goal, more=more)

    return lines


class Row(NamedTuple):
    """How a row is measured, once for each size of its evidence in MB, and what its lines are."""

    measure: Callable[[Path, float], Series]
    lines: Callable[[Of], Iterator[Line]]
    megabytes: tuple[float, ...] = ()


ROWS: Mapping[str, Row] = {
    "storm": Row(measures.storm_sides, _sides, (200, 600, 2_000)),
    "steady": Row(measures.steady_sides, _sides, (600,)),
    "cores": Row(measures.cores, _cores, (600,)),
    "ingest": Row(measures.ingest, _one("ingest, tables written", "MB/s", 55, more=True), (2_000,)),
    "skew": Row(measures.skew, _skew, (measures.SKEWED_MB,)),
    "planted": Row(measures.planted, _planted, (2_000,)),
    "extraction": Row(measures.extraction, _extraction, (600,)),
    "parse": Row(measures.parse, _one("parse, a line", "µs", 10), (20,)),
    "judging": Row(measures.judging, _one("judging beyond replay, a request", "µs", 12), (20,)),
    "oracle": Row(measures.oracles, _oracle),
    "verdict": Row(measures.verdicts, _verdict),
    "report": Row(measures.report, _one("groupquake report, small run, cold", "s", 5)),
    "night": Row(measures.night, _one("a night of 100 small runs, one session", "s", 90)),
}


@click.command()
@click.option("--rows", type=click.Choice(list(ROWS)), multiple=True, help="Rows to measure; all.")
@click.option(
    "--megabytes", type=click.FloatRange(1), multiple=True,
    help="Sizes of the evidence.  [default: those that the goals name]",
)  # fmt: skip
@click.option("--pairs", type=click.IntRange(1), default=3, show_default=True, help="Rounds.")
@click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path),
    help="Keeps the evidence for the next call.  [default: a temporary folder]",
)  # fmt: skip
@click.option(
    "--json", "kept", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Keep the values there, beside those of other rows that it has.",
)  # fmt: skip
def main(
    rows: tuple[str, ...], megabytes: tuple[float, ...], pairs: int,
    work: Path | None, kept: Path | None,
) -> None:  # fmt: skip
    """Measure the pipeline beside the same work in one process, and a loop that does less."""
    found: Measured = json.loads(kept.read_text()) if kept and kept.exists() else {}
    with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as temporary:
        folder = work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in rows or ROWS:
            row = ROWS[name]
            for size in (megabytes or row.megabytes) if row.megabytes else (0.0,):
                label = f"{name} {size:g}" if size else name
                found[label] = {}
                for count in range(1, pairs + 1):
                    click.echo(f"{label}: {count} of {pairs}", err=True)
                    for series, values in row.measure(folder, size).items():
                        found[label].setdefault(series, []).extend(values)
                    if kept:
                        kept.write_text(json.dumps(found, indent=1) + "\n")
    click.echo(table([HEAD, *(line.cells for line in lines(found))]))
    click.echo(f"{os.cpu_count()} cores")


def lines(found: Measured) -> Iterator[Line]:
    """Yield the lines of measured rows."""
    for label, series in found.items():
        yield from ROWS[label.partition(" ")[0]].lines(Of(label, series))


if __name__ == "__main__":
    main()
