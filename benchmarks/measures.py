"""What the comparison measures: each function runs one thing, and returns values by series.

Each first checks that the result is right; ClickException says what was found instead.
"""

import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks import oracle, verdict
from benchmarks.evidence import RECORDED, multiply
from benchmarks.group import STEADY, Simulation
from benchmarks.process import Watched, watch
from kafka_protocol.request_log import COMPLETED
from reference_coordinator.classic.releases import NEWEST, profile_for
from reference_coordinator.replay import replay
from reports.judgement.group import check_rows, evidence_of
from reports.judgement.log.log_places import LOG, log_file
from reports.judgement.log.reading import read
from reports.judgement.recording import Recording
from reports.judgement.run.run_folder import logs_bytes
from selftest.synth.folder import make
from selftest.synth.mix import MIXES
from selftest.synth.order import Order, Run
from selftest.synth.planting import differences

Json = dict[str, Any]
Series = dict[str, list[float]]
SIDES = ("loop", "same work", "pipeline")
EXPERIMENTS = ("demo", "rolling-bounce")
GIANT_REQUESTS, GIANT_MEMBERS, SMALL_GROUPS = 4_000_000, 500, 10_000
REQUESTS_PER_MEMBER_MS = 1 / 3_000 + 1 / 5_000
SMALL_MS = 40_000.0
SMALL_MEMBERS = 1.25
PLANTED = 60
SKEWED_MB = 3_600.0
"""The size of the logs of the giant group among the small ones."""
STEADY_GROUPS_MB = 1_000 / 600
RELEASE = "4.3.0"
NIGHT = 100
COMPLETED_MARK = COMPLETED.encode()


class Counts(NamedTuple):
    """What logs hold, counted without regard to what lines say."""

    lines: int = 0
    requests: int = 0

    @classmethod
    def of(cls, folder: Path) -> "Counts":
        """Count the lines of a run's logs, and those that tell of a request."""
        found = cls()
        for log in folder.glob(f"brokers/*/{LOG}"):
            with log.open("rb") as lines:
                for line in lines:
                    found = cls(found.lines + 1, found.requests + (COMPLETED_MARK in line))
        return found


def _made(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a folder of evidence; it is made once."""
    done = folder.with_name(f"{folder.name}.made")
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        make(folder)
        done.touch()
    return folder


def _storm(work: Path, megabytes: float) -> Path:
    """Return the recorded storm multiplied to a size."""
    return _made(work / f"storm-{megabytes:g}", lambda folder: multiply(megabytes, folder))


def _steady(work: Path, megabytes: float) -> Path:
    """Return a synthesized run that is nearly all heartbeats and commits."""
    order = _order("steady", max(10, round(megabytes * STEADY_GROUPS_MB)), megabytes)
    return _made(work / f"steady-{megabytes:g}", lambda folder: _synthesize(order, folder))


def _order(mix: str, groups: int, megabytes: float, seed: int = 0, plant: int = 0) -> Order:
    profile = profile_for(RELEASE, "java")
    assert profile is not None
    return Order(groups, megabytes * 1e6, MIXES[mix], mix, seed, RELEASE, profile, plant)


def _synthesize(order: Order, folder: Path, run: Run | None = None) -> None:
    make(order, folder, lambda _: None, run)


def _side(side: str, folder: Path, *more: str) -> tuple[Json, Watched]:
    watched = watch("-m", "benchmarks.sides", side, str(folder), *more)
    return json.loads(watched.output), watched


def _judged(side: str, folder: Path, counts: Counts, *more: str) -> tuple[Json, Watched]:
    """Run a side; its time counts only if all lines and requests are as expected."""
    result, watched = _side(side, folder, *more)
    expected = {"lines": counts.lines, "rejected": 0, "explained": counts.requests}
    found = {name: result["found"][name] for name in expected}
    if found != expected:
        raise click.ClickException(f"{side}: found {found} instead of {expected}")
    return result, watched


def _sides(folder: Path) -> Series:
    """Judge evidence by each side: seconds without imports and the start of Spark's session."""
    counts = Counts.of(folder)
    found: Series = {"load": [os.getloadavg()[0]]}
    for side in SIDES:
        result, watched = _judged(side, folder, counts)
        found[f"{side}_s"] = [sum(result["stages_s"].values())]
        found[f"{side}_cpu_s"] = [result.get("cpu_s", watched.cpu_s)]
        found[f"{side}_mb"] = [watched.peak_mb]
        if side == "pipeline":
            found["task_mb"] = [watched.task_mb]
        for name, seconds in result["stages_s"].items():
            found[f"{side}: {name}"] = [seconds]
    return found


def storm_sides(work: Path, megabytes: float) -> Series:
    """Judge the storm by each side."""
    return _sides(_storm(work, megabytes))


def steady_sides(work: Path, megabytes: float) -> Series:
    """Judge steady evidence by each side."""
    return _sides(_steady(work, megabytes))


def cores(work: Path, megabytes: float) -> Series:
    """Judge the storm by Spark on one core and on two."""
    folder, found = _storm(work, megabytes), {}
    counts = Counts.of(folder)
    for number in (1, 2):
        result, _ = _judged("pipeline", folder, counts, str(number))
        found[f"{number}_s"] = [sum(result["stages_s"].values())]
    return found


def extraction(work: Path, megabytes: float) -> Series:
    """Extract the same fields by DuckDB and by Spark, warm."""
    folder, found = _storm(work, megabytes), {}
    requests = Counts.of(folder).requests
    for side in ("duckdb", "spark"):
        result, _ = _side(f"extract-{side}", folder)
        if result["requests"] != requests:
            raise click.ClickException(f"{side}: extracted {result['requests']} requests")
        found[f"{side}_mb_s"] = result["mb_s"]
    return found


def ingest(work: Path, megabytes: float) -> Series:
    """Read the storm into the tables of its lines, written."""
    folder = _storm(work, megabytes)
    result, _ = _side("ingest", folder)
    if result["lines"] != Counts.of(folder).lines:
        raise click.ClickException(f"ingest: {result['lines']} lines were read")
    return {"mb_s": [logs_bytes(folder) / 1e6 / result["seconds"]]}


def parse(work: Path, megabytes: float) -> Series:
    """Read lines in this process, in processor time."""
    recording = Recording(_storm(work, megabytes))
    texts = recording.texts
    count = sum(map(len, texts.values()))
    began = time.process_time()
    for uri, lines in texts.items():
        file = log_file(uri)
        deque(read([(file.name, lines)], file.broker, recording.parser), 0)
    return {"us": [(time.process_time() - began) / count * 1e6]}


def judging(work: Path, megabytes: float) -> Series:
    """Judge groups, less their replay, in processor time."""
    recording = Recording(_storm(work, megabytes))
    groups, context = recording.rows_by_group, recording.context
    evidences = [evidence_of(context, group, rows) for group, rows in groups.items()]
    requests = sum(len(one.requests) for one in evidences)
    began = time.process_time()
    for evidence in evidences:
        replay(evidence, recording.profile)
    replayed = time.process_time()
    for group, rows in groups.items():
        for _table, _row in check_rows(context, group, rows):
            pass
    judged = time.process_time()
    return {"us": [((judged - replayed) - (replayed - began)) / requests * 1e6]}


def skew(work: Path, megabytes: float) -> Series:
    """Judge one giant group among small ones, and the same requests spread evenly."""
    scale = megabytes / SKEWED_MB
    requests, groups = GIANT_REQUESTS * scale, max(10, round(SMALL_GROUPS * scale))
    giant = max(5, round(GIANT_MEMBERS * scale))
    end_ms = requests / giant / REQUESTS_PER_MEMBER_MS
    even_ms = SMALL_MS + requests / groups / SMALL_MEMBERS / REQUESTS_PER_MEMBER_MS
    order = _order("steady", groups, megabytes, seed=1)
    runs = {
        "skewed": Run(order, end_ms, brief=1.0, brief_ms=SMALL_MS, giant=giant),
        "even": Run(order, end_ms, brief=1.0, brief_ms=even_ms),
    }
    found: Series = {}
    for name, run in runs.items():
        folder = _made(work / f"{name}-{megabytes:g}", partial(_synthesize, order, run=run))
        counts = Counts.of(folder)
        result, watched = _judged("pipeline", folder, counts)
        seconds = sum(result["stages_s"].values())
        found |= {
            f"{name}_us_request": [seconds / counts.requests * 1e6],
            f"{name}_task_mb": [watched.task_mb],
        }
    return found


def planted(work: Path, megabytes: float) -> Series:
    """Judge a synthesized run with planted findings; count what is missed or too much."""
    order = _order("storm", max(PLANTED, round(megabytes * 20)), megabytes, 3, PLANTED)
    folder = _made(work / f"planted-{megabytes:g}", partial(_synthesize, order))
    listed = [json.loads(line) for line in (folder / "planted.jsonl").read_text().splitlines()]
    _, watched = _side("pipeline", folder)
    judged = json.loads((folder / "verdict.json").read_text())
    wrong = differences(judged, listed)
    for line in wrong[:10]:
        click.echo(line, err=True)
    return {"planted": [len(listed)], "wrong": [len(wrong)], "seconds": [watched.wall_s]}


def oracles(_work: Path, _: float) -> Series:
    """Replay steady groups of 5 and of 500 members, and the recorded storm, on one core."""
    steady = {
        size: oracle.replayed([Simulation(size, NEWEST, STEADY).run(50_000)], NEWEST, 3, 1)
        for size in (oracle.SMALL, oracle.BIG)
    }
    storm_s = oracle.recorded(50_000, 3)["requests_per_s"]
    return {
        **{f"steady {size}": [figures["requests_per_s"]] for size, figures in steady.items()},
        "storm": [storm_s],
    }


def verdicts(_work: Path, _: float) -> Series:
    """Run experiments on real brokers: the seconds from the load's end to the verdict."""
    found: Series = {}
    for name in EXPERIMENTS:
        with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as folder:
            stages = verdict.run(Path(folder), name)["stages_s"]
        found[name] = [stages["teardown"] + stages["analysis"]]
    return found


def report(_work: Path, _: float) -> Series:
    """Judge a stored small run by `groupquake report`, in a new process."""
    return {"s": [_reported(1)]}


def night(_work: Path, _: float) -> Series:
    """Judge as many small runs as a night has by one `groupquake report`."""
    return {"s": [_reported(NIGHT)]}


def _reported(count: int) -> float:
    """Return the seconds of `groupquake report` on so many copies of the recorded run."""
    with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as folder:
        runs = [Path(folder) / f"run-{number}" for number in range(count)]
        for run in runs:
            shutil.copytree(RECORDED, run, ignore=shutil.ignore_patterns("*.xz"))
            for packed in RECORDED.glob("brokers/*/group.log.xz"):
                log = run / "brokers" / packed.parent.name / LOG
                log.write_bytes(lzma.decompress(packed.read_bytes()))
        command = [sys.executable, "-m", "groupquake", "report", *map(str, runs)]
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - began
