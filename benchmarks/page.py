"""The delays of a load's hub while its page is open: members of librdkafka, on three real brokers.

A browser starts a run from Locust's start form. Once all members have joined, the delays in the
run's history are taken for some seconds with no page open, then with the live page.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from benchmarks.members import JOINED_WITHIN_S, experiment_of
from benchmarks.table import p50, p99
from chaos.clusters.ports import HOST, free_ports

SETTINGS = ("cluster.brokers=3", "workload.topics.0.replication_factor=3", "phases.impact=2h")
Json = dict[str, Any]


def measure(folder: Path, count: int, seconds: float, show: Callable[[str], None]) -> Json:
    """Return p50 and p99 of each second's longest delay in ms, `closed` and `open`.

    `lost` are the memberships that ended meanwhile, `load` is the machine's load.
    """
    experiment = experiment_of(folder, "librdkafka", count, "5s")
    (port,) = free_ports(1)
    url, runs = f"http://{HOST}:{port}/", folder / "runs"
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "groupquake", "run", str(experiment), "--ui"),
                *("--web-port", str(port), "--runs", str(runs)),
                *(f"--set={setting}" for setting in SETTINGS),
            ],
            stdout=output,
            stderr=output,
        )
    history = runs / "latest" / "history.jsonl"
    try:
        _await(lambda: _listens(port), "the page", process)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            _start(browser, url)
            _await(lambda: _joined(history) == count, "all members", process)
            found: Json = {"closed": _gaps(history, seconds)}
            browser.new_page().goto(f"{url}groupquake/")
            found["open"] = _gaps(history, seconds)
            browser.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=300)
    found |= {"members": count, "load": os.getloadavg()[0]}
    show(json.dumps(found))
    return found


def _start(browser: Browser, url: str) -> None:
    page = browser.new_page()
    page.goto(url)
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Stop").wait_for()
    page.close()


def _await(done: Callable[[], bool], what: str, process: "subprocess.Popen[bytes]") -> None:
    began_s = time.monotonic()
    while not done():
        if process.poll() is not None or time.monotonic() - began_s > JOINED_WITHIN_S:
            raise SystemExit(f"{what}: not there; see output.txt")
        time.sleep(0.5)


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port)).close()
    except ConnectionRefusedError:
        return False
    return True


def _lines(history: Path) -> list[Json]:
    text = history.read_text() if history.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _joined(history: Path) -> int:
    return len({line["member"] for line in _lines(history) if line["event"] == "assigned"})


def _gaps(history: Path, seconds: float) -> Json:
    before = len(_lines(history))
    time.sleep(seconds)
    lines = _lines(history)[before:]
    gaps = [line["max_ms"] for line in lines if line["event"] == "hub_lag"]
    lost = sum(line["event"] == "lost" for line in lines)
    return {"p50_ms": p50(gaps), "p99_ms": p99(gaps), "seconds": len(gaps), "lost": lost}
