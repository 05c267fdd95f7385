"""A synthesized run folder: its brokers' logs, and the files beside them."""

import heapq
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from selftest.synth.cluster import BROKERS
from selftest.synth.spec import SIZES, Spec
from selftest.timing import BACK_MS, READY_MS, STOPS_AFTER_MS

STARTED_MS = 1_795_280_200_000
"""When the first broker of every synthesized run starts, UTC epoch ms."""
CLOCK_NS = 20_699_403_824_146
"""The brokers' nano clock then."""
MOST_WAITING = 48_000_000
"""How many characters of lines are sorted at once."""
DIGITS = 16

Process = tuple[str, int]
"""A broker, and which of its processes: 1 is the first."""


class Made(NamedTuple):
    """How much was written."""

    bytes: int
    lines: int


class LogFiles:
    """Collects lines of one group after the other, and writes them in order of time.

    Sorted lines wait in files, so that memory is bounded. Times are ms since the first start.
    """

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.waiting: dict[Process, list[str]] = defaultdict(list)
        self.files: dict[Process, list[Path]] = defaultdict(list)
        self.characters = 0

    def add(self, process: Process, at_ms: float, text: str) -> None:
        """Take a line of a broker's process."""
        self.waiting[process].append(f"{round(at_ms * 1e6):0{DIGITS}}{text}\n")
        self.characters += len(text)
        if self.characters > MOST_WAITING:
            self._flush()

    def _flush(self) -> None:
        for process, lines in self.waiting.items():
            file = self.scratch / f"{len(self.files[process])}-{process[0]}-{process[1]}"
            file.write_text("".join(sorted(lines)))
            self.files[process].append(file)
        self.waiting.clear()
        self.characters = 0

    def merge(self, brokers: Path) -> tuple[int, Mapping[Process, int]]:
        """Write the logs; return how many bytes there are, and the lines of each process."""
        self._flush()
        size, lines_of = 0, defaultdict[Process, int](int)
        for process in sorted(self.files):
            log = brokers / process[0] / "group.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            with ExitStack() as opened:
                written = opened.enter_context(log.open("a"))
                files = [opened.enter_context(one.open()) for one in self.files[process]]
                for serial, line in enumerate(heapq.merge(*files), 1):
                    nanos = int(line[:DIGITS])
                    at_ms = STARTED_MS + nanos // 1_000_000
                    size += written.write(f"{serial} {at_ms} {CLOCK_NS + nanos} {line[DIGITS:]}")
                    lines_of[process] = serial
        return size, lines_of


def make(spec: Spec, folder: Path, progress: Callable[[str], None]) -> Made:
    """Write a run folder, which must not exist. Raises OSError where that cannot be done."""
    progress(f"{spec.groups} groups for {spec.seconds:.0f} s")
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix=".synth-", dir=folder) as scratch:
        files = LogFiles(Path(scratch))
        for line in spec.cluster.lines():
            thread, level, body, logger = line.event
            files.add(
                (line.broker, line.process), line.at_ms, f"{thread} {level} {body} ({logger})"
            )
        for number in range(spec.groups):
            if number and number % 10_000 == 0:
                progress(f"{number} groups simulated")
            for broker, at_ms, text in spec.lines(number):
                files.add((broker, 1), at_ms, text)
        progress("merging")
        size, lines_of = files.merge(folder / "brokers")
    for name, content in _files(spec, lines_of[spec.cluster.killed, 1]).items():
        (folder / name).write_text(content, encoding="utf-8")
    return Made(size, sum(lines_of.values()))


def _files(spec: Spec, killed_lines: int) -> Mapping[str, str]:
    """Return the files beside the logs, by name; the killed broker's log had so many lines."""
    environment = {
        "kafka_version": spec.kafka,
        "coordinator": "java",
        "cluster": "process",
        "seed": spec.seed,
        "broker_config": spec.mix.broker_config,
        "repeat_command": f"python -m selftest synth --groups {spec.groups} --seconds"
        f" {spec.seconds:g} --mix {spec.mix_name} --seed {spec.seed}"
        f" --kafka {spec.kafka} --output FOLDER",
    }
    steps = [{"id": "f1"}] if spec.cluster.kill_ms is not None else []
    journal = (f"{json.dumps(entry)}\n" for entry in _journal(spec, killed_lines))
    return {
        "environment.json": json.dumps(environment, indent=2),
        "experiment.yaml": yaml.safe_dump(_experiment(spec), sort_keys=False),
        "plan.json": json.dumps({"steps": steps}),
        "journal.jsonl": "".join(journal),
    }


def _experiment(spec: Spec) -> dict[str, Any]:
    mix = spec.mix
    members: dict[str, Any] = {"kind": "static", "count": SIZES[0]}
    return {
        "name": "synthesized",
        "description": "Groups that were simulated; no broker wrote these logs.",
        "cluster": {
            "brokers": len(BROKERS),
            "version": spec.kafka,
            "coordinator": "java",
            "config": mix.broker_config,
        },
        "workload": {
            "topics": [{"name": "orders", "partitions": 8, "replication_factor": 3}],
            "groups": [
                {
                    "name": spec.name(0),
                    "topics": ["orders"],
                    "session_timeout": _duration(mix.session_ms),
                    "heartbeat_interval": _duration(mix.heartbeat_ms),
                    "members": [{**members, "instance_id": f"{spec.name(0)}-{{n}}"}],
                }
            ],
        },
        "phases": {"impact": _duration(spec.end_ms), "recovery": "1s"},
        "expect": [],
    }


def _duration(ms: float) -> str:
    return f"{round(ms)}ms"


def _journal(spec: Spec, killed_lines: int) -> Iterator[dict[str, Any]]:
    """Yield the entries; those of the broker that is killed tell how many lines its log had."""
    formed_ms, stopped_ms = READY_MS + 1_000, spec.end_ms - STOPS_AFTER_MS
    yield _entry("phase", READY_MS - 200, phase="formation")
    yield _entry("steady_state", formed_ms, ok=True, probes=[])
    yield _entry("phase", formed_ms, phase="impact")
    if (killed_ms := spec.cluster.kill_ms) is not None:
        fault, broker = {"fault_id": "f1"}, int(spec.cluster.killed)
        what = {"fault": "broker.kill", "target": f"broker-{broker}", "group": None}
        yield _entry("intent", killed_ms - 1, **fault, **what, args={"broker": broker})
        yield _entry("injected", killed_ms, **fault, log_lines=killed_lines)
        yield _entry("verified", killed_ms + 40, **fault, verified=True, witness="the simulation")
        healed_ms = killed_ms + BACK_MS + 400
        yield _entry("healed", healed_ms, **fault, healed=True, how="started again")
    yield _entry("phase", stopped_ms - 60, phase="recovery")
    yield _entry("phase", stopped_ms + STOPS_AFTER_MS / 2, phase="teardown")
    yield _entry("phase", spec.end_ms + 80, phase="end")


def _entry(event: str, at_ms: float, **more: Any) -> dict[str, Any]:
    return {"at_ms": STARTED_MS + round(at_ms), "event": event, **more}
