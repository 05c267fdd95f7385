"""The pipeline beside its yardsticks: `python -m benchmarks.comparison [--rows NAME]… [--pairs 3]`.

Each round runs three sides in turn, in processes of their own, on the same files: the plain loop
and the same work (`plain`), and the pipeline in Spark. Each has to have read all lines and
explained all responses. Figures are medians of the rounds, ratios medians of the rounds' ratios.
The storm is the recorded run, multiplied to a size; steady evidence is synthesized.
"""

import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import click
import psutil

from benchmarks import plain
from benchmarks.evidence import RECORDED, multiply
from benchmarks.table import HEAD, Line, table
from kafka_protocol.request_log import COMPLETED
from reference_coordinator.classic.releases import profile_for
from reports.judgement.run.run_folder import logs_bytes
from selftest.synth.folder import make
from selftest.synth.spec import Spec

Json = dict[str, Any]
RELEASE = "4.3.0"
STEADY_GROUPS, STEADY_SECONDS = 1_000, 330.0


def pipeline(folder: Path) -> Json:
    """Judge a run folder with a session on this machine: tables, verdict and page."""
    from reports import analyse  # noqa: PLC0415 (the other sides do without)
    from reports.ingest.spark import SparkOptions, session  # noqa: PLC0415

    with session(SparkOptions("local[*]"), logs_bytes(folder), folder / "spark.log") as spark:
        began, before_s = time.perf_counter(), _cpu_s()
        verdict = analyse(spark, folder)
        seconds, cpu_s = time.perf_counter() - began, _cpu_s() - before_s
    explained = sum(group["responses_explained"] for group in verdict["groups"].values())
    lines = verdict["coverage"]["lines_read"]
    return {"s": seconds, "cpu_s": cpu_s, "lines": lines, "explained": explained}


def _cpu_s() -> float:
    """Return the processor time of this process and of all that it started."""
    this = psutil.Process()
    return sum(sum(one.cpu_times()[:4]) for one in (this, *this.children(recursive=True)))


def _plain(side: Callable[[Path], plain.Found], folder: Path) -> Json:
    began, before_s = time.perf_counter(), time.process_time()
    found = side(folder)
    return {"s": time.perf_counter() - began, "cpu_s": time.process_time() - before_s, **found}


SIDES: dict[str, Callable[[Path], Json]] = {
    "loop": partial(_plain, plain.loop),
    "same work": partial(_plain, plain.same_work),
    "pipeline": pipeline,
}


def steady(folder: Path) -> None:
    """Write a run that is nearly all heartbeats and commits, about 600 MB."""
    profile = profile_for(RELEASE, "java")
    assert profile is not None
    make(Spec(STEADY_GROUPS, STEADY_SECONDS, "steady", 0, RELEASE, profile), folder, lambda _: None)


ROWS: dict[str, tuple[Callable[[Path], None], float | None]] = {
    "storm 200": (lambda folder: multiply(200, folder), 1.4),
    "storm 600": (lambda folder: multiply(600, folder), 1.85),
    "steady 600": (steady, 1.5),
}
"""Evidence, by its size in MB, and how many times as fast as the same work Spark shall be."""


def measure(row: str, folder: Path, pairs: int) -> Iterator[Line]:
    """Judge the evidence of a row by all sides in turn."""
    write, goal = ROWS[row]
    write(folder)
    lines = requests = 0
    for log in folder.glob("brokers/*/group.log"):
        with log.open() as of_broker:
            for line in of_broker:
                lines += 1
                requests += COMPLETED in line
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for _ in range(pairs):
        for side in SIDES:
            result = json.loads(_run("benchmarks.comparison", "--side", side, str(folder)))
            if (result["lines"], result["explained"]) != (lines, requests):
                raise click.ClickException(f"{side}: {result}, of {lines} lines and {requests}")
            found[side].append(result)
    for side, results in found.items():
        cpu = f"{median(one['cpu_s'] for one in results):.1f} s of processor time"
        yield Line(f"{row} MB: {side}", cpu, median(one["s"] for one in results), "s")
    for side in ("same work", "loop"):
        both = zip(found[side], found["pipeline"], strict=True)
        ratio = median(one["s"] / other["s"] for one, other in both)
        goes = goal if side == "same work" else None
        yield Line(f"{row} MB: {side} : pipeline", f"{requests:,} requests", ratio, "x", goes, True)


def report(folder: Path) -> Line:
    """Judge the recorded run by `groupquake report`, in a new process."""
    shutil.copytree(RECORDED, folder, dirs_exist_ok=True)
    for packed in folder.glob("brokers/*/group.log.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()
    began = time.perf_counter()
    _run("groupquake", "report", str(folder))
    return Line("groupquake report, small run, cold", "", time.perf_counter() - began, "s", 5)


def _run(*arguments: str) -> str:
    """Run a module of Python; return what it prints."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()


@click.command()
@click.option("--rows", type=click.Choice(list(ROWS)), multiple=True, default=list(ROWS),
              help="Rows to measure; all.")  # fmt: skip
@click.option("--pairs", type=click.IntRange(1), default=3, show_default=True, help="Rounds.")
@click.option("--side", type=click.Choice(list(SIDES)), hidden=True)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
def main(rows: tuple[str, ...], pairs: int, side: str | None, folder: Path | None) -> None:
    """Measure, and print goals beside figures."""
    if side is not None and folder is not None:
        click.echo(json.dumps(SIDES[side](folder)))
        return
    lines: list[tuple[str, ...]] = [HEAD]
    with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as scratch:
        for row in rows:
            lines += [line.cells for line in measure(row, Path(scratch) / row, pairs)]
        lines.append(report(Path(scratch) / "small").cells)
    click.echo(table(lines))
    click.echo(f"{os.cpu_count()} cores")


if __name__ == "__main__":
    main()
