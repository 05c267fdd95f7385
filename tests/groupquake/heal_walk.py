"""Runners that are killed at a step of a fault, and what `groupquake heal` finds afterwards.

`python -m tests.groupquake.heal_walk FOLDER KIND [BATCH [STEP]]` walks all steps of all recoverable
faults, or of a batch of them, on clusters of a kind; it prints a line for each, and the figures. A
step is an instant just before or just after a line of the journal is written. The runner is
`groupquake run` itself, but that its journal ends the process there, as SIGKILL does. The faults of
a batch are open at the same time: each is held at the step until the last one has come there.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from chaos.clusters.docker_engine import engine
from chaos.clusters.guard import mark
from chaos.journal import Journal, open_faults, read
from groupquake import open_runs
from loadtest.members.settings import RUN_FOLDER
from tests.chaos.clusters import engine_marks

STEPS = (
    "after-intent", "before-injected", "after-injected", "before-healed", "after-healed"
)  # fmt: skip
"""Nothing is broken; it is broken, and the journal has the intent alone; it is broken, and the
journal has that; it is healed, and the journal lacks that; all is in the journal."""


def marked(step: str) -> pytest.MarkDecorator:
    """Return the mark of a walk's step: one is tested often, all of them in a night."""
    return pytest.mark.long if step == "after-injected" else pytest.mark.exhaustive


_ANSWER_ERROR = (
    "fault: net.answer-error, target: {names: [own-1]}, apis: [HEARTBEAT],"
    " error: REBALANCE_IN_PROGRESS, for: 3s"
)
BATCHES = {
    "members": (
        "fault: member.restart, target: {names: [static-0]}, down_for: 700ms",
        "fault: member.kill, target: {names: [static-1]}, down_for: 700ms",
        "fault: member.slow-poll, target: {names: [static-2]}, lasts: 4500ms",
        "fault: member.duplicate-instance, target: {names: [static-3]}, lasts: 700ms",
        "fault: member.swap-instance, members: [static-4, static-5], lasts: 700ms",
        "fault: member.pause, target: {names: [own-0]}, down_for: 700ms",
        "fault: members.scale, group: static, to: 7, lasts: 700ms",
    ),
    "net": (
        "fault: net.partition, target: {names: [static-0]}, brokers: {brokers: [1]}, for: 3s",
        "fault: net.isolate, target: {names: [static-1]}, for: 3s",
        "fault: net.delay, target: {names: [static-2]}, latency: 300ms, for: 3s",
        "fault: net.drop-answers, target: {names: [static-3]}, apis: [HEARTBEAT], for: 3s",
        "fault: net.hold, target: {names: [static-4]}, apis: [HEARTBEAT], for: 3s",
        "fault: net.duplicate, target: {names: [static-5]}, apis: [HEARTBEAT], for: 3s",
        _ANSWER_ERROR,
        "fault: member.unsubscribe, target: {names: [static-2]}, for: 3s",
    ),
    "broker.kill": ("fault: broker.kill, target: {brokers: [1]}, down_for: 300ms",),
    "broker.stop": ("fault: broker.stop, target: {brokers: [1]}, down_for: 300ms",),
    "broker.restart": ("fault: broker.restart, target: {brokers: [1]}",),
    "broker.pause": ("fault: broker.pause, target: {brokers: [1]}, down_for: 300ms",),
    "broker.partition": ("fault: broker.partition, target: {brokers: [1]}, for: 300ms",),
    "broker.slow-network": (
        "fault: broker.slow-network, target: {brokers: [1]}, for: 300ms, rate: 64kbit",
    ),
    "disk.full": ("fault: disk.full, target: {brokers: [1]}, down_for: 300ms",),
    "disk.slow": ("fault: disk.slow, target: {brokers: [1]}, lasts: 700ms",),
    "clock.skew": ("fault: clock.skew, target: {brokers: [1]}, by: 3s, lasts: 2s",),
}
"""Every recoverable fault, but for what becomes these in the plan."""

BETWEEN_BROKERS = ("broker.partition", "broker.slow-network")
"""The batches that need a second broker."""
IN_CONTAINERS_ALONE = (*BETWEEN_BROKERS, "clock.skew")

EXPERIMENT = """
name: walk
cluster:
  brokers: {brokers}
  config: {{group.min.session.timeout.ms: 1000, group.initial.rebalance.delay.ms: 0}}
workload:
  topics: [{{name: orders, partitions: 8, replication_factor: 1}}]
  groups:
    - name: static
      topics: [orders]
      session_timeout: 2s
      heartbeat_interval: 300ms
      max_poll_interval: 2s
      members:
        - {{kind: static, count: 6, instance_id: "static-{{n}}"}}
        - {{kind: static, count: 2, instance_id: "own-{{n}}", client: librdkafka-process}}
steady_state:
  probes: [{{name: all are in, probe: group.members, group: static, tolerance: all}}]
faults: [{faults}]
phases: {{impact: 100ms, recovery: 0s}}
"""


class EndingJournal(Journal):
    """A journal that ends its process once so many faults are at a step, as SIGKILL does."""

    step = ""
    faults = 0
    _here: ClassVar[list[str]] = []

    def write(self, event: str, **fields: Any) -> None:
        """Append an entry, unless the process ends before."""
        self._hold(f"before-{event}", fields)
        super().write(event, **fields)
        self._hold(f"after-{event}", fields)

    def _hold(self, at: str, fields: Mapping[str, Any]) -> None:
        if at != self.step or not fields.get("fault_id"):
            return
        self._here.append(fields["fault_id"])
        if len(self._here) == self.faults:
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


def run_until(step: str, faults: int, arguments: list[str]) -> None:
    """Be `groupquake`, until so many faults are at a step."""
    from groupquake.cli import main  # noqa: PLC0415 (in the child alone)

    EndingJournal.step, EndingJournal.faults = step, faults
    open_runs.Journal = EndingJournal  # type: ignore[misc]
    main(arguments)


def killed_run(
    folder: Path, kind: str, faults: Sequence[str], step: str, brokers: int, words: Sequence[str]
) -> Path:
    """Run the faults until the step ends the runner; return the run folder."""
    folder.mkdir(parents=True)
    file = folder / "walk.yaml"
    listed = ", ".join(f"{{at: 0s, {fault}}}" for fault in faults)
    file.write_text(EXPERIMENT.format(faults=listed, brokers=brokers))
    command = [
        *(sys.executable, "-m", "tests.groupquake.heal_walk", "--until", step, str(len(faults))),
        *("run", str(file), "--no-report", "--seed", "1", "--cluster", kind),
        *("--runs", str(folder / "runs"), *words),
    ]
    with (folder / "output.log").open("wb") as output:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        )
    assert done.returncode == -signal.SIGKILL, (folder / "output.log").read_text()
    return (folder / "runs" / "latest").resolve()


def heal(run: Path) -> str:
    """Heal a run by the command; return what it prints."""
    command = [sys.executable, "-m", "groupquake", "heal", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def left_over(run: Path) -> list[str]:
    """Say what is left of a run: open faults, processes, containers, networks, mounts."""
    own = open_runs.OpenRun.of(run / "journal.jsonl")
    found = open_or_running(run, mark(str(own.run_id)))
    found += [
        f"mount {line}" for line in Path("/proc/mounts").read_text().split() if str(run) in line
    ]
    if own.cluster == "docker":
        with engine() as client:
            found += engine_marks.marked(client, str(own.run_id))
    return found


def open_or_running(run: Path, *marks: str) -> list[str]:
    """Say which faults of a run are open, and which processes are its own, or have a mark."""
    marked = {*marks, f"{RUN_FOLDER}={run}"}
    found = [f"fault {entry['fault_id']}" for entry in open_faults(read(run / "journal.jsonl"))]
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            own = {*command, *(f"{k}={v}" for k, v in process.environ().items())}
        except psutil.Error:
            continue
        if marked & own or any(str(run) in part for part in command):
            found.append(f"process {process.pid} {' '.join(command)[:80]}")
    return found


def walk(folder: Path, kind: str, batch: str, step: str) -> list[str]:
    """Kill a run at a step, and heal it twice; return what is wrong then."""
    brokers = 2 if batch in BETWEEN_BROKERS else 1
    faults = BATCHES[batch]
    run = killed_run(folder / f"{kind}-{batch}-{step}", kind, faults, step, brokers, ())
    return healed_twice(run, len(faults), step, lambda: left_over(run))


def healed_twice(run: Path, faults: int, step: str, left: Callable[[], list[str]]) -> list[str]:
    """Heal a run that was killed at a step twice; return what is wrong then."""
    events = Counter(entry["event"] for entry in read(run / "journal.jsonl"))
    written = ("intent", "injected", "healed")[: (STEPS.index(step) + 2) // 2]
    wrong = [
        f"{events[event]} x {event} in the journal"
        for event in ("intent", "injected", "healed")
        if events[event] != faults * (event in written)
    ]
    heal(run)
    wrong += left()
    journal = (run / "journal.jsonl").read_bytes()
    if "nothing to heal" not in heal(run) or journal != (run / "journal.jsonl").read_bytes():
        wrong.append("the second time there was something to heal")
    return wrong


def main() -> int:
    """Walk, and print the figures; return 1 if anything is left over."""
    folder, kind, *chosen = sys.argv[1:]
    able = [batch for batch in BATCHES if kind == "docker" or batch not in IN_CONTAINERS_ALONE]
    batches = chosen[:1] or able
    steps = chosen[1:] or [*STEPS]
    total = 0
    for batch in batches:
        for step in steps:
            began = time.monotonic()
            left = walk(Path(folder), kind, batch, step)
            total += len(left)
            took = f"{time.monotonic() - began:.0f} s"
            print(f"{kind} {batch} {step}: left over {len(left)} {left or ''} ({took})", flush=True)
    faults = sum(len(BATCHES[batch]) for batch in batches)
    print(f"{len(steps)} steps x {faults} faults on {kind}: left over {total}")
    return int(total > 0)


if __name__ == "__main__":
    if sys.argv[1] == "--until":
        run_until(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    sys.exit(main())
