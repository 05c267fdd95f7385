"""Real processes that leak are found, and one that does not is flat."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import pandas as pd
import pytest

from selftest.soak.growth import BOUNDS, Sampler, allowed, name_of, slope_of, without

SAMPLES = 100
LEAKS = {
    "threads": "threading.Thread(target=threading.Event().wait, daemon=True).start()",
    "descriptors": "kept.append(socket.socket())",
    "memory MB": "kept.append(bytearray(1_000_000))",
}
PROGRAM = """
import socket, sys, threading, time
kept = []
print("up", flush=True)
while True:
    {leak}
    time.sleep(0.02)
"""


@contextmanager
def process(leak: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that is called as the load is, and does one thing again and again."""
    command = [sys.executable, "-c", PROGRAM.format(leak=leak), "locust"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        started.kill()


@pytest.mark.parametrize("leak", ["pass", *LEAKS.values()])
def test_a_planted_leak_is_found_by_its_kind_alone(leak: str) -> None:
    with process(leak) as started, Sampler(started.pid, every_s=0.02) as sampler:
        deadline = time.monotonic() + 60
        while len(sampler.rows) < SAMPLES * len(BOUNDS):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    samples = sampler.samples[10 * len(BOUNDS) :]
    assert set(samples["process"]) == {"Locust"}
    lasts_s = samples["at_s"].iloc[-1] - samples["at_s"].iloc[0]
    grows = set()
    for kind, mine in samples.groupby("of"):
        if kind != "memory MB" or leak == LEAKS[kind]:  # threads and sockets take memory, too
            slope = slope_of(mine[["at_s", "value"]].to_numpy())
            assert slope is not None
            if not slope.is_flat(allowed(kind, lasts_s)):
                grows.add(kind)
    assert grows == {kind for kind, planted in LEAKS.items() if planted == leak}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "-m", "groupquake", "run", "x"], "runner"),
        (["python", "-m", "locust", "-f", "x"], "Locust"),
        (["/v/python", "/v/bin/groupquake", "run", "x"], "runner"),
        (["python", "-m", "chaos.tap"], "tap"),
        (["python", "-I", "-S", "/v/chaos/clusters/guard.py", "processes", "x"], None),
        (["java", "-Xmx256m", "kafka.Kafka", "x"], None),
        (["java", "org.apache.spark.deploy.SparkSubmit"], None),
    ],
)
def test_processes_are_known_by_their_command_lines(command: list[str], name: str | None) -> None:
    assert name_of(command) == name


def test_the_times_of_faults_are_left_out() -> None:
    samples = pd.DataFrame({"at_s": [1.0, 2.0, 3.0], "value": [5.0, 6.0, 7.0]})
    assert list(without(samples, [(1.0, 2.0), (3.0, inf)])["value"]) == [6.0]
    assert list(without(samples, [])["value"]) == [5.0, 6.0, 7.0]
