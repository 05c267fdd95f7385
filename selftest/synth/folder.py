"""A synthesized run folder: its brokers' logs, and the files beside them."""

import json
import random
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml

from selftest.synth.cluster import BACK_MS, BROKERS, READY_MS
from selftest.synth.coordinator_lines import Line
from selftest.synth.log_files import PIECE_BYTES, LogFiles
from selftest.synth.order import WAIT_MS, Order, Run, run_of
from selftest.synth.planting import KINDS, Kind, Planted

STARTED_MS = 1_795_280_200_000
"""When the first broker of every synthesized run starts, UTC epoch ms."""
CLOCK_NS = 20_699_403_824_146
"""The brokers' nano clock then."""
TRIES = 200
"""In how many groups a place is looked for, for a finding to plant."""
BACK = "back"
"""Marks the first line of the killed broker's second process."""


@dataclass(frozen=True)
class Made:
    """What was written."""

    bytes: int
    lines: int
    seconds: float
    """How long the simulated run lasts."""
    planted: list[dict[str, Any]] = field(default_factory=list)


def make(
    order: Order, folder: Path, progress: Callable[[str], None], run: Run | None = None
) -> Made:
    """Write a run folder, which must not exist; `run` if it does not follow from the order's size.

    Raises OSError where that cannot be done, ValueError where the size cannot be met.
    """
    run = run or run_of(order)
    progress(f"{order.groups} groups for {run.end_ms / 1_000:.0f} s")
    folder.mkdir(parents=True)
    plants = _plants(run)
    with tempfile.TemporaryDirectory(prefix=".synth-", dir=folder) as scratch:
        slices = max(1.0, order.bytes / len(BROKERS) / PIECE_BYTES)
        files = LogFiles(
            Path(scratch), run.end_ms / slices, STARTED_MS, CLOCK_NS,
            random.Random(f"{order.seed}-order"),
        )  # fmt: skip
        of_brokers = [*run.setting.cluster.lines()]
        again = (line for line in of_brokers if line.process == 2)
        back = min(again, key=attrgetter("at_ms"), default=None)
        for line in of_brokers:
            thread, level, body, logger = line.event
            text, mark = f"{thread} {level} {body} ({logger})", BACK if line is back else ""
            files.add(line.broker, line.process, line.at_ms, text, mark)
        for number in range(order.groups):
            if number and number % 10_000 == 0:
                progress(f"{number} groups simulated")
            _, planted = plants.get(number, (None, None))
            lines = planted.lines if planted else run.lines(number)
            place = planted.place if planted else None
            _add(files, lines, place, str(number))
        progress("merging")
        size, count, marks = files.merge(folder / "brokers")
    found = [
        {
            "group": run.name(number),
            "broker": marks[str(number)][0],
            "line": marks[str(number)][1],
            "kind": kind.kind,
            "what": kind.what,
        }
        for number, (kind, _) in sorted(plants.items())
    ]
    killed_lines = marks[BACK][1] - 1 if back else None
    for name, content in _files(run, found, killed_lines).items():
        (folder / name).write_text(content, encoding="utf-8")
    return Made(size, count, run.end_ms / 1_000, found)


def _add(files: LogFiles, lines: list[Line], place: int | None, mark: str) -> None:
    for number, (broker, at_ms, text) in enumerate(lines):
        files.add(broker, 1, at_ms, text, mark if number == place else "")


def _plants(run: Run) -> Mapping[int, tuple[Kind, Planted]]:
    """Choose the groups with something wrong; a kind that no group has a place for is left out."""
    order = run.order
    left = random.Random(f"{order.seed}-plants").sample(range(order.groups), order.groups)
    plants: dict[int, tuple[Kind, Planted]] = {}
    kinds = deque(KINDS)
    while len(plants) < order.plant and kinds:
        kind = kinds[0]
        found = ((number, run.planted(number, kind)) for number in left[:TRIES])
        number, planted = next((one for one in found if one[1]), (None, None))
        if number is None or planted is None:
            kinds.popleft()
            continue
        plants[number] = kind, planted
        left.remove(number)
        kinds.rotate(-1)
    return plants


def _files(run: Run, planted: list[dict[str, Any]], killed_lines: int | None) -> dict[str, str]:
    """Return the files beside the logs, by name; the killed broker's log had so many lines."""
    order = run.order
    environment = {
        "kafka_version": order.kafka,
        "coordinator": "java",
        "cluster": "process",
        "seed": order.seed,
        "broker_config": order.mix.broker_config,
        "repeat_command": f"python -m selftest synth --groups {order.groups} --size"
        f" {order.bytes:.0f}B --mix {order.mix_name} --seed {order.seed}"
        f" --plant {order.plant} --kafka {order.kafka} --output FOLDER",
    }
    steps = [{"id": "f1"}] if run.setting.cluster.kill_ms is not None else []
    files = {
        "environment.json": json.dumps(environment, indent=2),
        "experiment.yaml": yaml.safe_dump(_experiment(run), sort_keys=False),
        "plan.json": json.dumps({"steps": steps}),
        "journal.jsonl": "".join(f"{json.dumps(entry)}\n" for entry in _journal(run, killed_lines)),
    }
    if order.plant:
        files["planted.jsonl"] = "".join(f"{json.dumps(entry)}\n" for entry in planted)
    return files


def _experiment(run: Run) -> dict[str, Any]:
    mix, first = run.order.mix, run.simulation(0)
    members: dict[str, Any] = {"kind": "static", "count": first.size}
    duration = lambda ms: f"{round(ms)}ms"
    return {
        "name": "synthesized",
        "description": "Groups that were simulated; no broker wrote these logs.",
        "cluster": {
            "brokers": len(BROKERS),
            "version": run.order.kafka,
            "coordinator": "java",
            "config": mix.broker_config,
        },
        "workload": {
            "topics": [{"name": "orders", "partitions": 8, "replication_factor": 3}],
            "groups": [
                {
                    "name": first.name,
                    "topics": ["orders"],
                    "session_timeout": duration(mix.session_ms),
                    "heartbeat_interval": duration(mix.heartbeat_ms),
                    "members": [{**members, "instance_id": f"{first.name}-{{n}}"}],
                }
            ],
        },
        "phases": {"impact": duration(run.end_ms), "recovery": "1s"},
        "expect": [],
    }


def _journal(run: Run, killed_lines: int | None) -> Iterator[dict[str, Any]]:
    cluster = run.setting.cluster
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
    yield phase("recovery", run.end_ms - WAIT_MS - 60)
    yield phase("teardown", run.end_ms - WAIT_MS / 2)
    yield phase("end", run.end_ms + 80)
