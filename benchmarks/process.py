"""Runs a program, and measures memory and processor time of it and all its children."""

import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Watched:
    """The output of a program, and the resources of it and its children together.

    `peak_mb` is the largest sum of resident memory; shared pages count for each process. `task_mb`
    is the largest of one of Spark's Python workers, 0 without. `cpu_s` is processor time over all
    cores, as last sampled before each process ended.
    """

    output: str
    wall_s: float
    cpu_s: float
    peak_mb: float
    task_mb: float


def watch(*arguments: str) -> Watched:
    """Run `python` with these arguments until it ends.

    Raises CalledProcessError if it fails; its standard error is passed through.
    """
    command = [sys.executable, *arguments]
    began = time.perf_counter()
    peak = task = 0
    cpu: dict[tuple[int, float], float] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        tree = psutil.Process(started.pid)
        output = None
        while output is None:
            resident, of_task = _look(tree, cpu)
            peak, task = max(peak, resident), max(task, of_task)
            with suppress(subprocess.TimeoutExpired):
                output, _ = started.communicate(timeout=EVERY_S)
    if started.returncode:
        raise subprocess.CalledProcessError(started.returncode, command)
    wall_s = time.perf_counter() - began
    return Watched(output, wall_s, sum(cpu.values()), peak / 1e6, task / 1e6)


def _look(tree: psutil.Process, cpu: dict[tuple[int, float], float]) -> tuple[int, int]:
    """Sample processor times; return the resident bytes of all processes, and of a Spark worker."""
    resident = task = 0
    with suppress(psutil.NoSuchProcess):
        for process in (tree, *tree.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                cpu[process.pid, process.create_time()] = times.user + times.system
                mine = process.memory_info().rss
                resident += mine
                if any("daemon" in word for word in process.cmdline()):
                    task = max(task, mine)
    return resident, task
