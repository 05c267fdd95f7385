"""The comparison beside DuckDB and a plain loop: `python -m benchmarks.comparison`.

Each row runs one thing, in pairs and processes of their own, and prints goal, measured value, and
whether it is met. Rows can be measured one at a time (`--rows`, `--json`) and joined (`--join`).
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click

from benchmarks import measures
from benchmarks.measures import Series
from benchmarks.table import table

Measured = dict[str, Series]
"""Values by row and series; a row is a name, and a size behind it where it has one."""
MEGABYTES = (200.0, 600.0, 2_000.0)
LOOP_GOALS = {200.0: 1.2, 600.0: 1.5, 2_000.0: 1.7}


class Row(NamedTuple):
    """How a row is measured. `sizes`: once for each of --megabytes, for the largest, or once."""

    measure: Callable[[Path, float], Series]
    sizes: str = "none"


ROWS: Mapping[str, Row] = {
    "loop": Row(measures.against_loop, "each"),
    "extraction": Row(measures.extraction, "largest"),
    "ingest": Row(measures.ingest, "largest"),
    "parse": Row(measures.parse),
    "judging": Row(measures.judging),
    "cores": Row(measures.cores, "largest"),
    "skew": Row(measures.skew, "scale"),
    "planted": Row(measures.planted, "largest"),
    "oracle": Row(measures.oracles),
    "verdict": Row(measures.verdicts),
    "report": Row(measures.report),
}


class Result(NamedTuple):
    """A line of the table. `better` is whether more is better."""

    what: str
    duckdb: str
    loop: str
    spark: str
    goal: float
    measured: float
    unit: str
    more: bool = True

    @property
    def met(self) -> bool:
        """Whether the goal is met."""
        return self.measured >= self.goal if self.more else self.measured <= self.goal

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        sign = "≥" if self.more else "≤"
        number = lambda value: f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
        goal, measured = (
            f"{number(value)} {self.unit}".strip() for value in (self.goal, self.measured)
        )
        met = "yes" if self.met else "no"
        return (self.what, self.duckdb, self.loop, self.spark, f"{sign} {goal}", measured, met)


@click.command()
@click.option("--rows", type=click.Choice(list(ROWS)), multiple=True, help="Rows to measure; all.")
@click.option(
    "--megabytes", type=click.FloatRange(1), multiple=True, default=MEGABYTES, show_default=True,
    help="Sizes of the evidence.",
)  # fmt: skip
@click.option("--pairs", type=click.IntRange(1), default=3, show_default=True, help="Repetitions.")
@click.option(
    "--scale", type=click.FloatRange(0.001, 1), default=0.05, show_default=True,
    help="Of the skewed run: 1 is 4 million requests in one group among 10,000.",
)  # fmt: skip
@click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path),
    help="Keeps the evidence for the next call.  [default: a temporary folder]",
)  # fmt: skip
@click.option(
    "--json", "as_json", type=click.Path(dir_okay=False, path_type=Path),
    help="Also write all values there.",
)  # fmt: skip
@click.option(
    "--join", type=click.Path(exists=True, dir_okay=False, path_type=Path), multiple=True,
    help="Measure nothing; print the values of these files.",
)  # fmt: skip
def main(
    rows: tuple[str, ...], megabytes: tuple[float, ...], pairs: int, scale: float,
    work: Path | None, as_json: Path | None, join: tuple[Path, ...],
) -> None:  # fmt: skip
    """Measure what the pipeline, DuckDB and a plain loop do in a second."""
    measured: Measured = {}
    if join:
        for file in join:
            _add(measured, json.loads(file.read_text()))
    else:
        with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as temporary:
            folder = work or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            for name, size in _due(rows or tuple(ROWS), megabytes, scale):
                for number in range(1, pairs + 1):
                    label = f"{name} {size:g}".strip() if size else name
                    click.echo(f"{label}: {number} of {pairs}", err=True)
                    _add(measured, {label: ROWS[name].measure(folder, size)})
                    if as_json:
                        as_json.write_text(json.dumps(measured, indent=2))
    head = ("", "DuckDB", "loop", "Spark", "goal", "measured", "met")
    click.echo(table([head, *(result.cells for result in results(measured))]))
    click.echo(f"{os.cpu_count()} cores; medians of {pairs if not join else 'all values'}")


def _due(
    rows: tuple[str, ...], megabytes: tuple[float, ...], scale: float
) -> Iterator[tuple[str, float]]:
    """Yield the rows to measure, each with its size; 0 where it has none."""
    for name in rows:
        match ROWS[name].sizes:
            case "each":
                yield from ((name, size) for size in megabytes)
            case "largest":
                yield name, max(megabytes)
            case "scale":
                yield name, scale
            case _:
                yield name, 0.0


def _add(measured: Measured, more: Measured) -> None:
    for row, series in more.items():
        for name, values in series.items():
            measured.setdefault(row, {}).setdefault(name, []).extend(values)


def results(measured: Measured) -> Iterator[Result]:
    """Yield the table's lines."""
    for row, series in measured.items():
        middle = {name: median(values) for name, values in series.items()}
        name, _, size = row.partition(" ")
        yield from _RESULTS[name](middle, float(size or 0))
    loops = {float(row.partition(" ")[2]): row for row in measured if row.startswith("loop ")}
    if len(loops) > 1:
        yield from _growth(measured, loops)


def _growth(measured: Measured, loops: Mapping[float, str]) -> Iterator[Result]:
    least, most = min(loops), max(loops)
    of = lambda size, name: median(measured[loops[size]][name])
    times = of(most, "spark_s") / of(least, "spark_s")
    what = f"{least:g} MB to {most:g} MB"
    yield Result(f"{what}: time", "", f"{of(most, 'loop_s') / of(least, 'loop_s'):.2f} x",
                 f"{times:.2f} x", 0.95 * most / least, times, "x", more=False)  # fmt: skip
    tasks = of(most, "task_mb") / of(least, "task_mb")
    yield Result(f"{what}: memory of a task", "", "", f"{of(most, 'task_mb'):.0f} MB",
                 1.15, tasks, "x", more=False)  # fmt: skip


def _loop(of: Mapping[str, float], size: float) -> Iterator[Result]:
    yield Result(
        f"storm {size:g} MB: against the loop", "", f"{of['loop_s']:.1f} s",
        f"{of['spark_s']:.1f} s", LOOP_GOALS.get(size, 1.0), of["loop_s"] / of["spark_s"], "x",
    )  # fmt: skip


def _extraction(of: Mapping[str, float], size: float) -> Iterator[Result]:
    duckdb, spark = of["duckdb_mb_s"], of["spark_mb_s"]
    yield Result(f"extraction, warm, {size:g} MB", f"{duckdb:.0f} MB/s", "", f"{spark:.0f} MB/s",
                 0.5, spark / duckdb, "x")  # fmt: skip


def _one(
    what: str, name: str, goal: float, unit: str, *, more: bool = True
) -> Callable[[Mapping[str, float], float], Iterator[Result]]:
    """Return what yields one line of one series, with no other side."""

    def line(of: Mapping[str, float], size: float) -> Iterator[Result]:
        behind = f" {size:g} MB" if size else ""
        yield Result(what + behind, "", "", "", goal, of[name], unit, more)

    return line


def _cores(of: Mapping[str, float], size: float) -> Iterator[Result]:
    one, two = of["cores_1_s"], of["cores_2_s"]
    yield Result(f"one core to two, {size:g} MB", "", "", f"{one:.1f} to {two:.1f} s", 1.7,
                 one / two, "x")  # fmt: skip


def _skew(of: Mapping[str, float], scale: float) -> Iterator[Result]:
    skewed, even = of["skewed_us_request"], of["even_us_request"]
    yield Result(f"skew, scale {scale:g}", "", "", f"{of['skewed_s']:.1f} and {of['even_s']:.1f} s",
                 1.3, skewed / even, "x", more=False)  # fmt: skip


def _planted(of: Mapping[str, float], size: float) -> Iterator[Result]:
    yield Result(f"planted {of['planted']:.0f} in {size:g} MB: missed, or found beside", "", "",
                 f"{of['seconds']:.0f} s", 0, of["wrong"], "", more=False)  # fmt: skip


def _oracle(of: Mapping[str, float], _: float) -> Iterator[Result]:
    goals = {"steady_5": 250_000, "steady_500": 150_000, "storm": 20_000}
    for name, goal in goals.items():
        yield Result(f"oracle: {name.replace('_', ' ')}", "", "", "", goal, of[name], "requests/s")


def _verdict(of: Mapping[str, float], _: float) -> Iterator[Result]:
    for name, goal in (("demo", 6), ("rolling-bounce", 8)):
        yield Result(f"{name}: load's end to verdict", "", "", "", goal, of[f"{name}_s"], "s",
                     more=False)  # fmt: skip


_RESULTS: Mapping[str, Callable[[Mapping[str, float], float], Iterator[Result]]] = {
    "loop": _loop,
    "extraction": _extraction,
    "ingest": _one("ingest, tables written,", "mb_s", 55, "MB/s"),
    "parse": _one("parse, a line", "us", 10, "µs", more=False),
    "judging": _one("judging beyond replay, a request", "us", 12, "µs", more=False),
    "cores": _cores,
    "skew": _skew,
    "planted": _planted,
    "oracle": _oracle,
    "verdict": _verdict,
    "report": _one("groupquake report, small run, cold", "s", 9, "s", more=False),
}

if __name__ == "__main__":
    main()
