"""The comparison in Spark beside one process: `python -m benchmarks.pipeline [--megabytes 200]…`.

The evidence is the recorded storm, multiplied to a size. One process reads the same lines with the
same functions and judges the same groups one after the other; it makes no verdict and no page. Each
side runs in a process of its own, and has to have read all lines and explained all responses. Then
come the recorded run by `groupquake report`, in a new process, and a synthesized run with planted
findings, all of which have to be found.
"""

import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.evidence import RECORDED, multiply
from benchmarks.table import HEAD, Line, table
from kafka_protocol.request_log import COMPLETED
from reference_coordinator.classic.releases import profile_for
from reports.judgement.group import check_rows
from reports.judgement.recording import Recording
from reports.judgement.run.run_folder import logs_bytes
from selftest.synth.folder import make
from selftest.synth.planting import differences
from selftest.synth.spec import Spec

Json = dict[str, Any]
RELEASE = "4.3.0"
PLANTED, PLANTED_GROUPS, PLANTED_SECONDS = 60, 4_000, 60.0
GOALS = {200.0: 1.4, 600.0: 1.85}
"""By size (MB): how many times as fast as one process the pipeline shall be on two cores."""


def in_spark(folder: Path) -> Json:
    """Judge a run folder with a session on this machine: tables, verdict and page."""
    from reports import analyse  # noqa: PLC0415 (the other side does without)
    from reports.ingest.spark import SparkOptions, session  # noqa: PLC0415

    size = logs_bytes(folder)
    with session(SparkOptions("local[*]"), size, folder / "spark.log") as spark:
        began = time.perf_counter()
        verdict = analyse(spark, folder)
        seconds = time.perf_counter() - began
    explained = sum(group["responses_explained"] for group in verdict["groups"].values())
    return {"s": seconds, "lines": verdict["coverage"]["lines_read"], "explained": explained}


def in_one_process(folder: Path) -> Json:
    """Judge the groups of a run folder one after the other."""
    began, recording, explained = time.perf_counter(), Recording(folder), 0
    for group, rows in recording.rows_by_group.items():
        for name, row in check_rows(recording.context, group, rows):
            explained += row["explained"] if name == "groups" else 0
    lines = sum(map(len, recording.texts.values()))
    return {"s": time.perf_counter() - began, "lines": lines, "explained": explained}


SIDES: dict[str, Callable[[Path], Json]] = {"spark": in_spark, "one process": in_one_process}


def storm(folder: Path, megabytes: float, pairs: int) -> Iterator[Line]:
    """Judge the storm by both sides in turn."""
    multiply(megabytes, folder)
    logs = [log.read_text().splitlines() for log in folder.glob("brokers/*/group.log")]
    lines = sum(map(len, logs))
    requests = sum(COMPLETED in line for log in logs for line in log)
    found: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(pairs):
        for side, seconds in found.items():
            result = json.loads(_run("-m", "benchmarks.pipeline", "--side", side, str(folder)))
            if (result["lines"], result["explained"]) != (lines, requests):
                raise click.ClickException(f"{side}: {result}, of {lines} lines and {requests}")
            seconds.append(result["s"])
    ratios = [one / spark for one, spark in zip(found["one process"], found["spark"], strict=True)]
    one_process = f"one process {median(found['one process']):.1f} s"
    yield Line(f"storm {megabytes:g} MB, Spark", one_process, median(found["spark"]), "s")
    yield Line(f"storm {megabytes:g} MB, one process : Spark", f"{requests:,} requests",
               median(ratios), "x", GOALS.get(megabytes), more=True)  # fmt: skip


def small_run(folder: Path) -> Line:
    """Judge the recorded run by `groupquake report`, in a new process."""
    shutil.copytree(RECORDED, folder, ignore=shutil.ignore_patterns("*.xz"))
    for packed in RECORDED.glob("brokers/*/group.log.xz"):
        log = folder / "brokers" / packed.parent.name / "group.log"
        log.write_bytes(lzma.decompress(packed.read_bytes()))
    began = time.perf_counter()
    _run("-m", "groupquake", "report", str(folder))
    return Line("groupquake report, small run, cold", "", time.perf_counter() - began, "s", 5)


def planted(folder: Path) -> Line:
    """Judge a synthesized run with planted findings; count what is missed or too much."""
    profile = profile_for(RELEASE, "java")
    assert profile is not None
    spec = Spec(PLANTED_GROUPS, PLANTED_SECONDS, "storm", 3, RELEASE, profile, PLANTED)
    made = make(spec, folder, lambda _: None)
    began = time.perf_counter()
    in_spark(folder)
    seconds = time.perf_counter() - began
    wrong = differences(json.loads((folder / "verdict.json").read_text()), made.planted)
    for line in wrong[:10]:
        click.echo(line, err=True)
    peer = f"{len(made.planted)} planted, {made.bytes / 1e6:,.0f} MB, {seconds:.0f} s"
    return Line("planted findings missed, or others found", peer, len(wrong), "", 0)


def _run(*arguments: str) -> str:
    """Run Python with these arguments; return what it prints."""
    done = subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


@click.command()
@click.option("--megabytes", type=click.FloatRange(1), multiple=True, default=list(GOALS),
              help="Sizes of the storm.", show_default=True)  # fmt: skip
@click.option("--pairs", type=click.IntRange(1), default=3, show_default=True, help="Rounds.")
@click.option("--side", type=click.Choice(list(SIDES)), hidden=True)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
def main(megabytes: tuple[float, ...], pairs: int, side: str | None, folder: Path | None) -> None:
    """Measure, and print goals beside figures."""
    if side is not None and folder is not None:
        click.echo(json.dumps(SIDES[side](folder)))
        return
    lines: list[tuple[str, ...]] = [HEAD]
    with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as scratch:
        for size in megabytes:
            lines += [line.cells for line in storm(Path(scratch) / f"{size:g}", size, pairs)]
        lines.append(small_run(Path(scratch) / "small").cells)
        lines.append(planted(Path(scratch) / "planted").cells)
    click.echo(table(lines))
    click.echo(f"{os.cpu_count()} cores")


if __name__ == "__main__":
    main()
