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

from selftest.synth import cluster
from selftest.synth.spec import SIZES, Spec
from selftest.timing import READY_MS, STOPS_AFTER_MS

STARTED_MS = 1_795_280_200_000
"""When the first broker of every synthesized run starts, UTC epoch ms."""
CLOCK_NS = 20_699_403_824_146
"""The brokers' nano clock then."""
MOST_WAITING = 48_000_000
"""How many characters of lines are sorted at once."""
DIGITS = 16


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
        self.waiting: dict[str, list[str]] = defaultdict(list)
        self.files: dict[str, list[Path]] = defaultdict(list)
        self.characters = 0

    def add(self, broker: str, at_ms: float, text: str) -> None:
        """Take a line of a broker."""
        self.waiting[broker].append(f"{round(at_ms * 1e6):0{DIGITS}}{text}\n")
        self.characters += len(text)
        if self.characters > MOST_WAITING:
            self._flush()

    def _flush(self) -> None:
        for broker, lines in self.waiting.items():
            file = self.scratch / f"{len(self.files[broker])}-{broker}"
            file.write_text("".join(sorted(lines)))
            self.files[broker].append(file)
        self.waiting.clear()
        self.characters = 0

    def merge(self, brokers: Path) -> Made:
        """Write the logs."""
        self._flush()
        size = count = 0
        for broker, sorted_files in self.files.items():
            log = brokers / broker / "group.log"
            log.parent.mkdir(parents=True)
            with ExitStack() as opened:
                written = opened.enter_context(log.open("w"))
                files = [opened.enter_context(one.open()) for one in sorted_files]
                for serial, line in enumerate(heapq.merge(*files), 1):
                    nanos = int(line[:DIGITS])
                    at_ms = STARTED_MS + nanos // 1_000_000
                    size += written.write(f"{serial} {at_ms} {CLOCK_NS + nanos} {line[DIGITS:]}")
                    count += 1
        return Made(size, count)


def make(spec: Spec, folder: Path, progress: Callable[[str], None]) -> Made:
    """Write a run folder, which must not exist. Raises OSError where that cannot be done."""
    progress(f"{spec.groups} groups for {spec.seconds:.0f} s")
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix=".synth-", dir=folder) as scratch:
        files = LogFiles(Path(scratch))
        for line in cluster.lines(spec.wording, spec.end_ms):
            files.add(*line)
        for number in range(spec.groups):
            if number and number % 10_000 == 0:
                progress(f"{number} groups simulated")
            for line in spec.lines(number):
                files.add(*line)
        progress("merging")
        made = files.merge(folder / "brokers")
    for name, content in _files(spec).items():
        (folder / name).write_text(content, encoding="utf-8")
    return made


def _files(spec: Spec) -> Mapping[str, str]:
    """Return the files beside the logs, by name."""
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
    journal = (f"{json.dumps(entry)}\n" for entry in _journal(spec))
    return {
        "environment.json": json.dumps(environment, indent=2),
        "experiment.yaml": yaml.safe_dump(_experiment(spec), sort_keys=False),
        "plan.json": json.dumps({"steps": []}),
        "journal.jsonl": "".join(journal),
    }


def _experiment(spec: Spec) -> dict[str, Any]:
    mix = spec.mix
    members: dict[str, Any] = {"kind": "static", "count": SIZES[0]}
    return {
        "name": "synthesized",
        "description": "Groups that were simulated; no broker wrote these logs.",
        "cluster": {
            "brokers": len(cluster.BROKERS),
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


def _journal(spec: Spec) -> Iterator[dict[str, Any]]:
    formed_ms, stopped_ms = READY_MS + 1_000, spec.end_ms - STOPS_AFTER_MS
    yield _entry("phase", READY_MS - 200, phase="formation")
    yield _entry("steady_state", formed_ms, ok=True, probes=[])
    yield _entry("phase", formed_ms, phase="impact")
    yield _entry("phase", stopped_ms - 60, phase="recovery")
    yield _entry("phase", stopped_ms + STOPS_AFTER_MS / 2, phase="teardown")
    yield _entry("phase", spec.end_ms + 80, phase="end")


def _entry(event: str, at_ms: float, **more: Any) -> dict[str, Any]:
    return {"at_ms": STARTED_MS + round(at_ms), "event": event, **more}
