"""Runs experiments on brokers that are stopped now and then, and judges them.

python -m tests.groupquake.starved.play RUNS NAME… [--stops] [--stop-at AT_S FOR_S] [--seed N]
                                        [OPTION…]

With `--stops` each broker gets SIGSTOP again and again, for 0.3 to 3 s, as the seed has it; no
journal notes it. With `--stop-at` all of them get it once, so long after the impact began. Further
options are those of `groupquake run`, as `--kafka=3.9.1`.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tests.groupquake.conftest import arguments

RUNNING_S = (2.0, 10.0)
"""How long a broker runs between two stops."""
STOPPED_S = (0.3, 3.0)
BROKERS = (1, 2, 3)


def brokers_of(run: Path) -> dict[int, int]:
    """Return the process ids of the brokers of a run, by broker id."""
    found = {}
    for process in psutil.process_iter(["cmdline"]):
        last = Path((process.info["cmdline"] or [""])[-1])
        if last.name == "server.properties" and last.parent.parent == run / "brokers":
            found[int(last.parent.name)] = process.pid
    return found


def phase_of(run: Path) -> str:
    """Return the phase that a run is in."""
    try:
        entries = list(map(json.loads, (run / "journal.jsonl").read_text().splitlines()))
    except (OSError, ValueError):
        return ""
    return next((e["phase"] for e in reversed(entries) if e["event"] == "phase"), "")


def hold(pids: Sequence[int], held_s: float, over: threading.Event) -> None:
    """Stop processes for some time, but not longer than the run lasts."""
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGSTOP:
            over.wait(held_s)


def stop_now_and_then(runs: Path, broker: int, seed: str, over: threading.Event) -> None:
    """Stop one broker again and again, and note when; members are served then by no one."""
    chance = random.Random(f"{seed} {broker}")
    while not over.wait(chance.uniform(*RUNNING_S)):
        held_s = chance.uniform(*STOPPED_S)
        run = (runs / "latest").resolve()
        pid = brokers_of(run).get(broker)
        if pid is None or phase_of(run) not in ("formation", "impact", "recovery"):
            continue
        at_ms = round(time.time() * 1000)
        hold([pid], held_s, over)
        note = {"broker": broker, "from_ms": at_ms, "until_ms": round(time.time() * 1000)}
        with (runs / "stops.jsonl").open("a") as out:
            out.write(json.dumps(note) + "\n")


def stop_once(runs: Path, at_s: float, held_s: float, over: threading.Event) -> None:
    """Stop all brokers once, so long after the impact began."""
    while phase_of((runs / "latest").resolve()) != "impact":
        if over.wait(0.05):
            return
    if not over.wait(at_s):
        hold([*brokers_of((runs / "latest").resolve()).values()], held_s, over)


def play(runs: Path, name: str, asked: argparse.Namespace, options: Sequence[str]) -> int:
    """Run one experiment and judge it; return the exit code of the verdict."""
    runs.mkdir(parents=True, exist_ok=True)
    over = threading.Event()
    threads = [
        threading.Thread(
            target=stop_now_and_then,
            args=(runs, broker, f"{name} {asked.seed}", over),
            daemon=True,
        )
        for broker in BROKERS
        if asked.stops
    ]
    if asked.stop_at:
        once = (runs, *asked.stop_at, over)
        threads.append(threading.Thread(target=stop_once, args=once, daemon=True))
    for thread in threads:
        thread.start()
    words = ("run", name, f"--runs={runs}", "--no-report", f"--seed={asked.seed}", *options)
    try:
        subprocess.run(arguments(*words), check=False)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    return subprocess.run(arguments("report", runs / "latest"), check=False).returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stops", action="store_true")
    parser.add_argument("--stop-at", type=float, nargs=2)
    asked, options = parser.parse_known_args()
    sys.exit(max(play(asked.runs / name, name, asked, options) for name in asked.names))
