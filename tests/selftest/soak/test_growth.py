"""The slope rule finds a leak and no noise; real processes that leak are found."""

import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from math import inf

import pandas as pd
import psutil
import pytest

from selftest.soak.growth import BOUNDS, OURS, Sampler, Slope, allowed, name_of, slope_of, without
from selftest.timing import HOUR_S, SAMPLED_EVERY_S

HALF_HOUR = range(0, 1_800, int(SAMPLED_EVERY_S))


def rising(per_hour: float, strays: Iterable[float], base: float = 200.0) -> Slope:
    """Return the slope of half an hour of samples that rise, and stray."""
    pairs = zip(HALF_HOUR, strays, strict=True)
    found = slope_of([(at_s, base + stray + per_hour * at_s / HOUR_S) for at_s, stray in pairs])
    assert found is not None
    return found


def test_a_line_has_its_slope_and_no_error_and_few_samples_have_none() -> None:
    found = rising(10.0, repeat(0.0, len(HALF_HOUR)))
    assert found.per_hour == pytest.approx(10.0)
    assert found.error == pytest.approx(0.0, abs=1e-6)
    assert found.is_flat(10.1)
    assert not found.is_flat(9.9)
    assert slope_of([]) is None
    assert slope_of([(float(at_s), 1.0) for at_s in range(4)]) is None


def noise(seed: int, sigma: float) -> list[float]:
    """Return values that stray as the memory of a process does: each is near the one before."""
    chance, value, values = random.Random(seed), 0.0, []
    for _ in HALF_HOUR:
        value += chance.gauss(0.0, sigma) - value / 20
        values.append(value)
    return values


@pytest.mark.parametrize("kind", BOUNDS)
def test_noise_is_no_leak_and_a_leak_shows_in_it(kind: str) -> None:
    """The noise has the size of what faults do: a member's sockets and threads come and go."""
    bound = allowed(kind, 1_800)
    noisy, bare, leaking = [], [], []
    for seed in range(200):
        strays = noise(seed, bound / 6)
        flat = rising(0.0, strays)
        noisy.append(not flat.is_flat(bound))
        bare.append(flat.per_hour >= bound)
        leaking.append(not rising(5 * bound, strays).is_flat(bound))
    assert sum(noisy) == 0
    assert sum(bare) > 5, "without error bars noise would be taken for a leak"
    assert all(leaking)


def test_the_error_bars_hold_the_true_slope() -> None:
    """With independent noise they miss it in 5 % of cases: in 400, about 20, and less than 36."""
    chance = random.Random(1)
    found = [rising(0.0, [chance.gauss(0.0, 1.0) for _ in HALF_HOUR]) for _ in range(400)]
    assert 6 < sum(abs(one.per_hour) > one.error for one in found) < 36


def test_a_step_is_not_taken_for_a_slope_with_small_error() -> None:
    """Memory that rises once, as a cache fills, has wide error bars."""
    found = rising(0.0, [35.0 * (at_s > 900) for at_s in HALF_HOUR])
    bound = allowed("memory MB", 1_800)
    assert found.per_hour > bound
    assert found.is_flat(bound)


def test_a_short_time_allows_for_what_fills_once() -> None:
    assert allowed("threads", 60) == allowed("threads", 3_600) == BOUNDS["threads"]
    assert allowed("memory MB", 3_600) == BOUNDS["memory MB"] + 20
    assert allowed("memory MB", 360) == BOUNDS["memory MB"] + 200


SAMPLES = 40
LEAKS = {
    "threads": "threading.Thread(target=threading.Event().wait, daemon=True).start()",
    "descriptors": "kept.append(socket.socket())",
    "memory MB": "kept.append(bytearray(1_000_000))",
}
BROKER = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
kept = [listener.accept() for _ in iter(int, 1)]
"""
PROGRAM = """
import socket, subprocess, sys, threading, time
broker = subprocess.Popen([sys.executable, "-c", sys.argv[2]], stdout=subprocess.PIPE)
address = ("127.0.0.1", int(broker.stdout.readline()))
kept = []
print("up", flush=True)
while True:
    {leak}
    time.sleep(0.02)
"""


@contextmanager
def process(leak: str, word: str = "locust") -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that is called as one of ours is, and does one thing again and again."""
    command = [sys.executable, "-c", PROGRAM.format(leak=leak), word, BROKER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        try:
            yield started
        finally:
            for ends in (*psutil.Process(started.pid).children(), started):
                ends.kill()


def grown(leak: str, word: str = "locust") -> set[str]:
    """Return what grows in a program of ours with a leak."""
    with process(leak, word) as started, Sampler(started.pid, every_s=0.02) as sampler:
        deadline = time.monotonic() + 240
        while len(sampler.rows) < SAMPLES * len(BOUNDS):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    samples = sampler.samples[10 * len(BOUNDS) :]
    assert set(samples["process"]) == {OURS[word]}
    lasts_s = samples["at_s"].iloc[-1] - samples["at_s"].iloc[0]
    grows = set()
    for kind, mine in samples.groupby("of"):
        if kind != "memory MB" or leak == LEAKS[kind]:  # threads and sockets take memory, too
            slope = slope_of(mine[["at_s", "value"]].to_numpy())
            assert slope is not None
            if not slope.is_flat(allowed(kind, lasts_s)):
                grows.add(kind)
    return grows


@pytest.mark.parametrize("leak", ["pass", *LEAKS.values()])
def test_a_planted_leak_is_found_by_its_kind_alone(leak: str) -> None:
    assert grown(leak) == {kind for kind, planted in LEAKS.items() if planted == leak}


@pytest.mark.parametrize(
    ("word", "grows"),
    [("locust", set()), ("chaos.tap", {"descriptors"}), ("groupquake", {"descriptors"})],
)
def test_only_clients_may_keep_connections_to_brokers(word: str, grows: set[str]) -> None:
    """The tap has one for each that a client has to it, and the runner is no client."""
    assert grown("kept.append(socket.create_connection(address))", word) == grows


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
