"""Samples the machine while a run lasts: CPU pressure, throttling, brokers that are stopped.

A run's verdict rests on times. `machine.jsonl` in the run folder tells when the machine, or one of
the brokers, could not work at its pace. It is written as it happens, one JSON object a line, times
in UTC epoch ms:

    sample   once a second: load average, share of the time in which a CPU was busy, was stolen by
             the hypervisor, or was waited for (`/proc/stat`, `/proc/pressure/cpu`, both of the
             machine), time for which the control groups of runner and brokers were throttled
    late     the sampler itself ran later than it meant to: the stall detector
    stopped  the process of a broker was stopped (state T or t in `/proc/<pid>/stat`), from the
             first look that saw it so to the last one: what lies before and after is not seen

What a system does not tell is left out. Source of the forms: proc(5), cgroups(7), Linux
Documentation/accounting/psi.rst.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from groupquake import folders, timing
from groupquake.background import Background

FILE = "machine.jsonl"
BUSY_WAITING = 0.6
"""A share of the time, over 10 s, in which something waited for a CPU: then times are unsure."""
BUSY_LOAD = 2.0
"""The same as a load average per core, where the system does not tell the pressure."""

Pids = Callable[[], Mapping[int, int]]


def busy_line() -> str | None:
    """Say in a line that the machine is too busy to time anything; None if it is not."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    waiting = _pressure_avg10()
    if waiting is None and load < BUSY_LOAD * cores:
        return None
    if waiting is not None and waiting < BUSY_WAITING:
        return None
    share = "" if waiting is None else f", a CPU waited for {waiting:.0%}"
    return f"the machine is busy (load {load:.1f} on {cores} cores{share}); times may be unsure"


@dataclass
class MachineSampler(Background):
    """Samples in a thread of its own as long as the context lasts, into the file `into`.

    `brokers` returns the process ids of the brokers that run, by broker id. `full` gets a line once
    the disk has no room for evidence; then the file ends early, of which the verdict tells.
    """

    thread_name = "machine sampler"
    into: Path
    brokers: Pids
    full: Callable[[str], object] = lambda _: None

    def _run(self) -> None:
        folder = self.into.parent
        try:
            with self.into.open("a", encoding="utf-8", buffering=1) as out:
                ticks = _Ticks(out, self.brokers)
                while not self._over.wait(timing.SAMPLER_TICK_S):
                    ticks.tick()
                    folders.require_room(folder, folders.TO_GO_ON_MB)
                ticks.tick()
                ticks.end()
        except OSError as error:
            self.full(
                f"evidence: no space left on {folder} ({error.strerror});"
                f" free {folders.TO_BEGIN_MB} MB or give another --runs"
            )


def _now_ms() -> int:
    return round(time.time() * 1000)


@dataclass
class _Ticks:
    """What is noted from tick to tick; times of the system's monotonic clock in s."""

    out: IO[str]
    brokers: Pids
    _tick_s: float = field(default_factory=time.monotonic)
    _tick_ms: int = field(default_factory=_now_ms)
    _pids: Mapping[int, int] = field(default_factory=dict)
    _stopped_ms: dict[int, tuple[int, int]] = field(default_factory=dict)
    _sampled_s: float = float("-inf")
    _counters: dict[str, float] = field(default_factory=dict)

    def tick(self) -> None:
        """Look once."""
        now_s, now_ms = time.monotonic(), _now_ms()
        if now_s - self._tick_s > timing.SAMPLER_TICK_S + timing.SAMPLER_LATE_S:
            self._write("late", from_ms=self._tick_ms, until_ms=now_ms)
        if now_s - self._sampled_s >= timing.SAMPLE_S:
            self._sample(now_s)
        for broker, pid in self._pids.items():
            if _is_stopped(pid):
                since_ms, _ = self._stopped_ms.get(broker, (now_ms, now_ms))
                self._stopped_ms[broker] = since_ms, now_ms
            elif broker in self._stopped_ms:
                self._went_on(broker)
        self._tick_s, self._tick_ms = now_s, now_ms

    def end(self) -> None:
        """Write down what is open."""
        for broker in list(self._stopped_ms):
            self._went_on(broker)

    def _went_on(self, broker: int) -> None:
        from_ms, until_ms = self._stopped_ms.pop(broker)
        self._write("stopped", broker=str(broker), from_ms=from_ms, until_ms=until_ms)

    def _sample(self, now_s: float) -> None:
        with suppress(Exception):  # brokers come and go; what cannot be read is left out
            self._pids = dict(self.brokers())
        for broker in self._stopped_ms.keys() - self._pids.keys():
            self._went_on(broker)
        before, counters = self._counters, _counters(self._pids)
        grown = {name: counters[name] - before[name] for name in counters if name in before}
        interval_s = now_s - self._sampled_s
        self._sampled_s, self._counters = now_s, counters
        if before:
            self._write("sample", interval_ms=round(interval_s * 1000), **_rates(grown, interval_s))

    def _write(self, event: str, **fields: Any) -> None:
        self.out.write(json.dumps({"at_ms": _now_ms(), "event": event, **fields}) + "\n")


def _rates(grown: Mapping[str, float], interval_s: float) -> dict[str, Any]:
    """Turn what counters grew by into shares of the time, and ms for which groups were throttled.

    A control group without a broker is the runner's.
    """
    rates: dict[str, Any] = {"load": round(os.getloadavg()[0], 2)}
    if "waiting_us" in grown:
        rates["cpu_waiting"] = round(min(grown["waiting_us"] / 1e6 / interval_s, 1.0), 3)
    if grown.get("all"):
        rates["cpu_busy"] = round(1 - grown["idle"] / grown["all"], 3)
        rates["cpu_stolen"] = round(grown["steal"] / grown["all"], 3)
    throttled = {
        name.removeprefix("throttled "): round(grew)
        for name, grew in grown.items()
        if name.startswith("throttled ") and grew > 0
    }
    return {**rates, "throttled_ms": throttled} if throttled else rates


def _counters(pids: Mapping[int, int]) -> dict[str, float]:
    """Read the counters that the system has."""
    found: dict[str, float] = {}
    with suppress(OSError, ValueError, IndexError):
        pressure = Path("/proc/pressure/cpu").read_text()
        found["waiting_us"] = float(pressure.split("total=")[1].split()[0])
    with suppress(OSError, ValueError, IndexError):
        with Path("/proc/stat").open() as stat:
            times = [float(word) for word in stat.readline().split()[1:9]]
        found |= {"all": sum(times), "idle": times[3] + times[4], "steal": times[7]}
    for name, pid in {"runner": os.getpid(), **{str(b): pid for b, pid in pids.items()}}.items():
        with suppress(OSError, ValueError, IndexError):
            found[f"throttled {name}"] = _throttled_ms(pid)
    return found


def _throttled_ms(pid: int) -> float:
    """Read for how long the control group of a process was throttled.

    A line of /proc/PID/cgroup that names no controllers is of cgroup v2; cgroup v1 has the CPU's
    figures in a folder of their own. Raises OSError or IndexError if no such figure is found.
    """
    for group in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = group.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        file = Path(f"/sys/fs/cgroup{'/cpu' if controllers else ''}{path}/cpu.stat")
        with suppress(OSError):
            figures = dict(line.split() for line in file.read_text().splitlines())
            if "throttled_usec" in figures:
                return float(figures["throttled_usec"]) / 1e3
            if "throttled_time" in figures:
                return float(figures["throttled_time"]) / 1e6
    raise IndexError(pid)


def _is_stopped(pid: int) -> bool:
    """Tell whether a process is stopped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in (b"T", b"t")


def _pressure_avg10() -> float | None:
    """Return the share of the last 10 s in which something waited for a CPU; None without it."""
    try:
        return float(Path("/proc/pressure/cpu").read_text().split("avg10=")[1].split()[0]) / 100
    except (OSError, ValueError, IndexError):
        return None
