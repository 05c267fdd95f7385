"""What the comparison measures: each function runs one thing, and returns values by series.

Each first checks that the result is right; ClickException says what was found instead.
"""

import json
import lzma
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from benchmarks import oracle, verdict
from benchmarks.evidence import RECORDED, Evidence, multiply
from benchmarks.group import STEADY, Simulation
from benchmarks.process import Watched, watch
from groupquake.selftest.synth.folder import make
from groupquake.selftest.synth.mix import MIXES
from groupquake.selftest.synth.order import Order, Run
from groupquake.selftest.synth.planting import differences
from reference_coordinator.classic.releases import NEWEST, profile_for
from reference_coordinator.replay import replay
from reports.judgement.log.log_places import log_file
from reports.judgement.log.reading import read
from reports.judgement.recording import Recording

Json = dict[str, Any]
Series = dict[str, list[float]]
GIANT_REQUESTS, GIANT_MEMBERS, SMALL_GROUPS = 4_000_000, 500, 10_000
REQUESTS_PER_MEMBER_MS = 1 / 3_000 + 1 / 5_000
SMALL_MS = 40_000.0
SMALL_MEMBERS = 1.25
PLANTED = 60


def storm(work: Path, megabytes: float) -> Evidence:
    """Return the recorded storm multiplied to a size; it is made once in `work`."""
    folder = work / f"storm-{megabytes:g}"
    known = work / f"storm-{megabytes:g}.json"
    if not known.exists():
        shutil.rmtree(folder, ignore_errors=True)
        made = multiply(megabytes, folder)
        known.write_text(json.dumps({**asdict(made), "folder": str(folder)}))
    kept = json.loads(known.read_text())
    return Evidence(**{**kept, "folder": folder})


def _side(side: str, folder: Path, *more: str) -> tuple[Json, Watched]:
    watched = watch("-m", "benchmarks.sides", side, str(folder), *more)
    return json.loads(watched.output), watched


def _judged(side: str, evidence: Evidence, *more: str) -> tuple[Json, Watched]:
    """Run a side; its time counts only if all lines and requests are as expected."""
    result, watched = _side(side, evidence.folder, *more)
    expected = {"lines": evidence.lines, "rejected": 0, "explained": evidence.requests}
    found = {name: result["found"][name] for name in expected}
    if found != expected:
        raise click.ClickException(f"{side}: found {found} instead of {expected}")
    return result, watched


def against_loop(work: Path, megabytes: float) -> Series:
    """Judge the storm by Spark and by the plain loop: whole processes, session start left out."""
    evidence = storm(work, megabytes)
    found: Series = defaultdict(list)
    for side in ("spark", "loop"):
        result, watched = _judged(side, evidence)
        found[f"{side}_s"].append(watched.wall_s - result["start_up_s"])
        found[f"{side}_start_s"].append(result["start_up_s"])
        found[f"{side}_peak_mb"].append(watched.peak_mb)
        if side == "spark":
            found["task_mb"].append(watched.task_mb)
        for name, seconds in result["stages_s"].items():
            found[f"{side}: {name}"].append(seconds)
    return dict(found)


def cores(work: Path, megabytes: float) -> Series:
    """Judge the storm by Spark on one core and on two."""
    evidence, found = storm(work, megabytes), {}
    for number in (1, 2):
        result, watched = _judged("spark", evidence, str(number))
        found[f"cores_{number}_s"] = [watched.wall_s - result["start_up_s"]]
    return found


def extraction(work: Path, megabytes: float) -> Series:
    """Extract the same fields by DuckDB and by Spark, warm."""
    evidence, found = storm(work, megabytes), {}
    for side in ("duckdb", "spark"):
        result, _ = _side(f"extract-{side}", evidence.folder)
        if result["requests"] != evidence.requests:
            raise click.ClickException(f"{side}: extracted {result['requests']} requests")
        found[f"{side}_mb_s"] = result["mb_s"]
    return found


def ingest(work: Path, megabytes: float) -> Series:
    """Read the storm into the tables of the line pass, written."""
    evidence = storm(work, megabytes)
    result, _ = _side("ingest", evidence.folder)
    if result["lines"] != evidence.lines:
        raise click.ClickException(f"ingest: {result['lines']} lines were read")
    return {"mb_s": [evidence.bytes / 1e6 / result["seconds"]]}


def parse(work: Path, _: float) -> Series:
    """Read 20 MB of lines in this process, in processor time."""
    recording = Recording(storm(work, 20).folder)
    texts = recording.texts
    count = sum(map(len, texts.values()))
    began = time.process_time()
    for split, lines in texts.items():
        deque(read(lines, log_file(split.file).broker, recording.parser), 0)
    return {"us": [(time.process_time() - began) / count * 1e6]}


def judging(work: Path, _: float) -> Series:
    """Judge the groups of 20 MB, less their replay, in processor time."""
    recording = Recording(storm(work, 20).folder)
    groups, judge = recording.rows_by_group, recording.judge
    evidences = [judge.evidence(group, rows) for group, rows in groups.items()]
    requests = sum(len(one.requests) for one in evidences)
    began = time.process_time()
    for evidence in evidences:
        replay(evidence, recording.profile)
    replayed = time.process_time()
    for group, rows in groups.items():
        for _table, _row in judge.tables(group, rows):
            pass
    judged = time.process_time()
    return {
        "us": [((judged - replayed) - (replayed - began)) / requests * 1e6],
        "replay_us": [(replayed - began) / requests * 1e6],
    }


def skew(work: Path, scale: float) -> Series:
    """Judge one giant group among small ones, and the same requests spread evenly."""
    requests, groups = GIANT_REQUESTS * scale, max(10, round(SMALL_GROUPS * scale))
    giant = max(5, round(GIANT_MEMBERS * scale))
    end_ms = requests / giant / REQUESTS_PER_MEMBER_MS
    even_ms = SMALL_MS + requests / groups / SMALL_MEMBERS / REQUESTS_PER_MEMBER_MS
    profile = profile_for("4.3.0", "java")
    assert profile is not None
    order = Order(groups, requests * 900, MIXES["steady"], "steady", 1, "4.3.0", profile)
    runs = {
        "skewed": Run(order, end_ms, brief=1.0, brief_ms=SMALL_MS, giant=giant),
        "even": Run(order, end_ms, brief=1.0, brief_ms=even_ms),
    }
    found: Series = {}
    for name, run in runs.items():
        folder = work / f"{name}-{scale:g}"
        if not (folder / "journal.jsonl").exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(order, folder, lambda _: None, run)
        result, watched = _side("spark", folder)
        if result["found"]["violations"] or result["found"]["rejected"]:
            raise click.ClickException(f"{name}: found {result['found']}")
        explained = result["found"]["explained"]
        seconds = watched.wall_s - result["start_up_s"]
        found |= {
            f"{name}_s": [seconds],
            f"{name}_requests": [explained],
            f"{name}_us_request": [seconds / explained * 1e6],
            f"{name}_task_mb": [watched.task_mb],
        }
    return found


def planted(work: Path, megabytes: float) -> Series:
    """Synthesize a run with planted findings, judge it, count what is missed or too much."""
    folder = work / f"planted-{megabytes:g}"
    if not (folder / "planted.jsonl").exists():
        shutil.rmtree(folder, ignore_errors=True)
        profile = profile_for("4.3.0", "java")
        assert profile is not None
        groups = max(PLANTED, round(megabytes * 20))
        order = Order(
            groups, megabytes * 1e6, MIXES["storm"], "storm", 3, "4.3.0", profile, PLANTED
        )
        make(order, folder, lambda _: None)
    listed = [json.loads(line) for line in (folder / "planted.jsonl").read_text().splitlines()]
    _, watched = _side("spark", folder)
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
        **{f"steady_{size}": [figures["requests_per_s"]] for size, figures in steady.items()},
        "storm": [storm_s],
    }


def verdicts(_work: Path, _: float) -> Series:
    """Run experiments on real brokers: the seconds from the load's end to the verdict."""
    found: Series = {}
    for name in ("demo", "rolling-bounce"):
        with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as folder:
            stages = verdict.run(Path(folder), name)["stages_s"]
        found[f"{name}_s"] = [stages["teardown"] + stages["analysis"]]
        found[f"{name}_analysis_s"] = [stages["analysis"]]
    return found


def report(_work: Path, _: float) -> Series:
    """Judge a stored small run by `groupquake report`, in a new process."""
    with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as folder:
        run = Path(folder) / "run"
        shutil.copytree(RECORDED, run, ignore=shutil.ignore_patterns("*.xz"))
        for packed in RECORDED.glob("brokers/*/group.log.xz"):
            log = run / "brokers" / packed.parent.name / "group.log"
            log.write_bytes(lzma.decompress(packed.read_bytes()))
        command = [sys.executable, "-m", "groupquake", "report", str(run)]
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return {"s": [time.perf_counter() - began]}
