"""Runs experiments on brokers that are stopped now and then, or on a machine that is kept busy.

python -m tests.groupquake.starved.play RUNS NAME… [--kafka X] [--coordinator Y] [--seed N]
                                        [--stops] [--stopped-s MIN MAX] [--brokers N…]
                                        [--stop-at AT_S FOR_S] [--load N]

With `--stops` each broker gets SIGSTOP again and again, for 0.3 to 3 s, as the seed has it; no
journal notes it. With `--stop-at` all of them get it once, so long after the impact began. `--load`
keeps so many busy loops running. Prints a line for each run: experiment, verdict, and why it is no
`pass`.
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

RUNNING_S = (2.0, 10.0)
"""How long a broker runs between two stops."""


@contextmanager
def load(loops: int) -> Iterator[None]:
    """Keep so many processes busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _brokers(folder: Path) -> dict[int, int]:
    """Return the process ids of the brokers of a run, by broker id."""
    found = {}
    for process in psutil.process_iter(["cmdline"]):
        last = Path((process.info["cmdline"] or [""])[-1])
        if last.name == "server.properties" and last.parent.parent == folder / "brokers":
            found[int(last.parent.name)] = process.pid
    return found


def _phase(folder: Path) -> str:
    """Return the phase that a run is in."""
    try:
        lines = (folder / "journal.jsonl").read_text().splitlines()
        entries = [json.loads(line) for line in lines]
    except (OSError, ValueError):
        return ""
    return next((e["phase"] for e in reversed(entries) if e["event"] == "phase"), "")


def stop_now_and_then(
    runs: Path, broker: int, seed: str, stopped_s: tuple[float, float], over: threading.Event
) -> None:
    """Stop and continue one broker of the run in `runs`, until the run is being torn down."""
    chance = random.Random(f"{seed} {broker}")
    while not over.wait(chance.uniform(*RUNNING_S)):
        held_s = chance.uniform(*stopped_s)
        folder = (runs / "latest").resolve()
        pid = _brokers(folder).get(broker)
        if pid is None or _phase(folder) not in ("formation", "impact", "recovery"):
            continue
        with suppress(ProcessLookupError):
            at_ms = round(time.time() * 1000)
            os.kill(pid, signal.SIGSTOP)
            over.wait(held_s)
            os.kill(pid, signal.SIGCONT)
            note = {"broker": broker, "from_ms": at_ms, "until_ms": round(time.time() * 1000)}
            with (runs / "stops.jsonl").open("a") as out:
                out.write(json.dumps(note) + "\n")


def stop_once(runs: Path, at_s: float, held_s: float, over: threading.Event) -> None:
    """Stop all brokers once, so long after the impact began."""
    while _phase((runs / "latest").resolve()) != "impact":
        if over.wait(0.05):
            return
    if over.wait(at_s):
        return
    pids = _brokers((runs / "latest").resolve()).values()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    over.wait(held_s)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def run(runs: Path, name: str, asked: argparse.Namespace) -> dict[str, object]:
    """Run one experiment; return its verdict, and its exit code in `exit`."""
    command = [sys.executable, "-m", "groupquake", "run", name, f"--runs={runs}", "--no-report"]
    command += [f"--seed={asked.seed}"]
    command += [f"--kafka={asked.kafka}"] if asked.kafka else []
    command += [f"--coordinator={asked.coordinator}"] if asked.coordinator else []
    over = threading.Event()
    brokers = asked.brokers if asked.stops else ()
    threads = [
        threading.Thread(
            target=stop_now_and_then,
            args=(runs, broker, f"{name} {asked.seed}", tuple(asked.stopped_s), over),
            daemon=True,
        )
        for broker in brokers
    ]
    if asked.stop_at:
        aimed = (runs, *asked.stop_at, over)
        threads.append(threading.Thread(target=stop_once, args=aimed, daemon=True))
    runs.mkdir(parents=True, exist_ok=True)
    with (runs / "output.log").open("a") as output, load(asked.load):
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        for thread in threads:
            thread.start()
        try:
            process.wait()
        finally:
            over.set()
            for thread in threads:
                thread.join()
            if process.poll() is None:
                process.terminate()
                process.wait()
    folder = (runs / "latest").resolve()
    judging = [sys.executable, "-m", "groupquake", "report", str(folder)]
    with (runs / "output.log").open("a") as output:
        judged = subprocess.run(judging, stdout=output, stderr=subprocess.STDOUT, check=False)
    verdict: dict[str, object] = {"verdict": None, "unknown_because": [], "findings": []}
    if (folder / "verdict.json").is_file():
        verdict = json.loads((folder / "verdict.json").read_text())
    return {**verdict, "exit": process.returncode or judged.returncode}


def main(asked: argparse.Namespace) -> int:
    """Run the experiments one after the other; return how many failed."""
    failed = 0
    for name in asked.names:
        verdict = run(asked.runs / name, name, asked)
        failed += verdict["exit"] == 1
        print(f"{name}: {verdict['verdict']} (exit {verdict['exit']})", flush=True)
        for reason in verdict["unknown_because"]:  # type: ignore[attr-defined]
            print(f"    {reason}", flush=True)
        for finding in verdict["findings"]:  # type: ignore[attr-defined]
            if finding["root"]:
                print(
                    f"    {finding['kind']} proven={finding['proven']}:"
                    f" {finding['observed']} instead of {finding['expected']}",
                    flush=True,
                )
        for item in verdict.get("expectations_unmet", ()):  # type: ignore[attr-defined]
            print(f"    unmet: {item}", flush=True)
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--kafka")
    parser.add_argument("--coordinator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stops", action="store_true")
    parser.add_argument("--stopped-s", type=float, nargs=2, default=(0.3, 3.0))
    parser.add_argument("--stop-at", type=float, nargs=2)
    parser.add_argument("--brokers", type=int, nargs="+", default=(1, 2, 3))
    parser.add_argument("--load", type=int, default=0)
    sys.exit(main(parser.parse_args()))
