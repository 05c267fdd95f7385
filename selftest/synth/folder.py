"""A synthesized run folder: its brokers' logs, and the files beside them."""

import heapq
import json
import random
import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml

from selftest.synth.cluster import BROKERS
from selftest.synth.planting import KINDS, Kind, Planted
from selftest.synth.spec import SIZES, Spec
from selftest.timing import BACK_MS, READY_MS, STOPS_AFTER_MS

STARTED_MS = 1_795_280_200_000
"""When the first broker of every synthesized run starts, UTC epoch ms."""
CLOCK_NS = 20_699_403_824_146
"""The brokers' nano clock then."""
TRIES = 200
"""In how many groups a place is looked for, for a finding to plant."""
MOST_WAITING = 48_000_000
"""How many characters of lines are sorted at once."""
DIGITS = 16
BACK = "back"
"""Marks the first line of the killed broker's second process."""


@dataclass(frozen=True)
class Made:
    """What was written."""

    bytes: int
    lines: int
    planted: list[dict[str, Any]] = field(default_factory=list)


class LogFiles:
    """Collects lines of one group after the other, and writes them in order of time.

    Sorted lines wait in files, so that memory is bounded. Times are ms since the first start.
    """

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.waiting: dict[tuple[str, int], list[str]] = defaultdict(list)
        self.files: dict[tuple[str, int], list[Path]] = defaultdict(list)
        self.characters = 0

    def add(self, broker: str, process: int, at_ms: float, text: str, mark: str = "") -> None:
        """Take a line of a broker's process; `mark` names it in what `merge` returns."""
        self.waiting[broker, process].append(f"{round(at_ms * 1e6):0{DIGITS}}{mark}\1{text}\n")
        self.characters += len(text)
        if self.characters > MOST_WAITING:
            self._flush()

    def _flush(self) -> None:
        for piece, lines in self.waiting.items():
            file = self.scratch / f"{len(self.files[piece])}-{piece[0]}-{piece[1]}"
            file.write_text("".join(sorted(lines)))
            self.files[piece].append(file)
        self.waiting.clear()
        self.characters = 0

    def merge(self, brokers: Path) -> tuple[int, int, dict[str, tuple[str, int]]]:
        """Write the logs; return bytes, lines, and the broker and line number of each mark."""
        self._flush()
        marks: dict[str, tuple[str, int]] = {}
        size, lines_of = 0, defaultdict[str, int](int)
        for broker, process in sorted(self.files):
            (brokers / broker).mkdir(parents=True, exist_ok=True)
            with ExitStack() as opened:
                log = opened.enter_context((brokers / broker / "group.log").open("a"))
                files = [opened.enter_context(one.open()) for one in self.files[broker, process]]
                for serial, line in enumerate(heapq.merge(*files), 1):
                    mark, _, text = line[DIGITS:].partition("\1")
                    nanos = int(line[:DIGITS])
                    at_ms = STARTED_MS + nanos // 1_000_000
                    size += log.write(f"{serial} {at_ms} {CLOCK_NS + nanos} {text}")
                    lines_of[broker] += 1
                    if mark:
                        marks[mark] = broker, lines_of[broker]
        return size, sum(lines_of.values()), marks


def make(spec: Spec, folder: Path, progress: Callable[[str], None]) -> Made:
    """Write a run folder, which must not exist. Raises OSError where that cannot be done."""
    progress(f"{spec.groups} groups for {spec.seconds:.0f} s")
    folder.mkdir(parents=True)
    plants = _plants(spec)
    with tempfile.TemporaryDirectory(prefix=".synth-", dir=folder) as scratch:
        files = LogFiles(Path(scratch))
        of_brokers = [*spec.cluster.lines()]
        again = (line for line in of_brokers if line.process == 2)
        back = min(again, key=attrgetter("at_ms"), default=None)
        for line in of_brokers:
            thread, level, body, logger = line.event
            text, mark = f"{thread} {level} {body} ({logger})", BACK if line is back else ""
            files.add(line.broker, line.process, line.at_ms, text, mark)
        for number in range(spec.groups):
            if number and number % 10_000 == 0:
                progress(f"{number} groups simulated")
            _, planted = plants.get(number, (None, None))
            lines = planted.lines if planted else spec.lines(number)
            for place, (broker, at_ms, text) in enumerate(lines):
                shows = planted is not None and place == planted.place
                files.add(broker, 1, at_ms, text, str(number) if shows else "")
        progress("merging")
        size, count, marks = files.merge(folder / "brokers")
    found = [
        {
            "group": spec.name(number),
            "broker": marks[str(number)][0],
            "line": marks[str(number)][1],
            "kind": kind.kind,
            "what": kind.what,
        }
        for number, (kind, _) in sorted(plants.items())
    ]
    killed_lines = marks[BACK][1] - 1 if back else None
    for name, content in _files(spec, found, killed_lines).items():
        (folder / name).write_text(content, encoding="utf-8")
    return Made(size, count, found)


def _plants(spec: Spec) -> Mapping[int, tuple[Kind, Planted]]:
    """Choose the groups with something wrong; a kind that no group has a place for is left out."""
    left = random.Random(f"{spec.seed}-plants").sample(range(spec.groups), spec.groups)
    plants: dict[int, tuple[Kind, Planted]] = {}
    kinds = deque(KINDS)
    while len(plants) < spec.plant and kinds:
        kind = kinds[0]
        found = ((number, spec.planted(number, kind)) for number in left[:TRIES])
        number, planted = next((one for one in found if one[1]), (None, None))
        if number is None or planted is None:
            kinds.popleft()
            continue
        plants[number] = kind, planted
        left.remove(number)
        kinds.rotate(-1)
    return plants


def _files(spec: Spec, planted: list[dict[str, Any]], killed_lines: int | None) -> dict[str, str]:
    """Return the files beside the logs, by name; the killed broker's log had so many lines."""
    environment = {
        "kafka_version": spec.kafka,
        "coordinator": "java",
        "cluster": "process",
        "seed": spec.seed,
        "broker_config": spec.mix.broker_config,
        "repeat_command": f"python -m selftest synth --groups {spec.groups} --seconds"
        f" {spec.seconds:g} --mix {spec.mix_name} --seed {spec.seed}"
        f" --plant {spec.plant} --kafka {spec.kafka} --output FOLDER",
    }
    steps = [{"id": "f1"}] if spec.cluster.kill_ms is not None else []
    journal = (f"{json.dumps(entry)}\n" for entry in _journal(spec, killed_lines))
    files = {
        "environment.json": json.dumps(environment, indent=2),
        "experiment.yaml": yaml.safe_dump(_experiment(spec), sort_keys=False),
        "plan.json": json.dumps({"steps": steps}),
        "journal.jsonl": "".join(journal),
    }
    if spec.plant:
        files["planted.jsonl"] = "".join(f"{json.dumps(entry)}\n" for entry in planted)
    return files


def _experiment(spec: Spec) -> dict[str, Any]:
    mix = spec.mix
    members: dict[str, Any] = {"kind": "static", "count": SIZES[0]}
    duration = lambda ms: f"{round(ms)}ms"
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
                    "session_timeout": duration(mix.session_ms),
                    "heartbeat_interval": duration(mix.heartbeat_ms),
                    "members": [{**members, "instance_id": f"{spec.name(0)}-{{n}}"}],
                }
            ],
        },
        "phases": {"impact": duration(spec.end_ms), "recovery": "1s"},
        "expect": [],
    }


def _journal(spec: Spec, killed_lines: int | None) -> Iterator[dict[str, Any]]:
    cluster = spec.cluster
    at = lambda ms: STARTED_MS + round(ms)
    phase = lambda name, ms: {"at_ms": at(ms), "event": "phase", "phase": name}
    formed_ms = READY_MS + 1_000
    yield phase("formation", READY_MS - 200)
    yield {"at_ms": at(formed_ms), "event": "steady_state", "ok": True, "probes": []}
    yield phase("impact", formed_ms)
    if cluster.kill_ms is not None:
        fault = {"fault_id": "f1"}
        killed_ms, broker = cluster.kill_ms, int(cluster.killed)
        yield {"at_ms": at(killed_ms - 1), "event": "intent", "fault": "broker.kill",
               "target": f"broker-{broker}", "group": None, "args": {"broker": broker},
               **fault}  # fmt: skip
        yield {"at_ms": at(killed_ms), "event": "injected", "log_lines": killed_lines, **fault}
        yield {"at_ms": at(killed_ms + 40), "event": "verified", "verified": True,
               "witness": "the simulation", **fault}  # fmt: skip
        yield {"at_ms": at(killed_ms + BACK_MS + 400), "event": "healed", "healed": True,
               "how": "started again", **fault}  # fmt: skip
    yield phase("recovery", spec.end_ms - STOPS_AFTER_MS - 60)
    yield phase("teardown", spec.end_ms - STOPS_AFTER_MS / 2)
    yield phase("end", spec.end_ms + 80)
