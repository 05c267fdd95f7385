"""A synthesized run folder: how long its groups live, their logs, and the files beside them."""

import json
import random
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from groupquake.selftest.mutants.wordings import Wording
from groupquake.selftest.synth.cluster import BACK_MS, BROKERS, READY_MS, Cluster
from groupquake.selftest.synth.coordinator_lines import Line
from groupquake.selftest.synth.faults import befalls
from groupquake.selftest.synth.group import Setting, Simulation
from groupquake.selftest.synth.log_files import PIECE_BYTES, LogFiles
from groupquake.selftest.synth.mix import Mix
from groupquake.selftest.synth.planting import KINDS, Kind, Planted
from groupquake.selftest.synth.printing import delays
from kafka_protocol.coordinator_lines import grammar_of
from reference_coordinator.classic.profiles import Profile, Settings

STARTED_MS = 1_795_280_200_000
"""When the first broker of every synthesized run starts, UTC epoch ms."""
CLOCK_NS = 20_699_403_824_146
"""The brokers' nano clock then."""
SIZES = (2, 3, 4, 5)
"""The members of a group, in turn."""
TRIES = 200
"""In how many groups a place is looked for, for a finding to plant."""
SAMPLE = 2 * len(SIZES) * 4
"""How many groups tell how large a group's log becomes."""
CONNECTIONS = 1_000
"""How many connections a group may open: a broker numbers them, and no two may be the same."""
SAMPLE_MS = 20_000.0
LEAST_MS = 8_000.0
"""The shortest life of a group: its members have joined."""
WAIT_MS = 250.0
"""How long after the last request the brokers stop."""


@dataclass(frozen=True)
class Order:
    """What is asked for: so many groups, about so many bytes of logs."""

    groups: int
    bytes: float
    mix: Mix
    mix_name: str
    seed: int
    kafka: str
    profile: Profile
    plant: int = 0
    end_ms: float | None = None
    """How long the run lasts; from the size, if it is not given."""
    sizes: tuple[int, ...] = SIZES


@dataclass(frozen=True)
class Made:
    """What was written."""

    bytes: int
    lines: int
    seconds: float
    """How long the simulated run lasts."""
    planted: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """All groups of an order, until `end_ms`."""

    order: Order
    end_ms: float

    @cached_property
    def setting(self) -> Setting:
        """What its groups share."""
        mix = self.order.mix
        grammar = grammar_of(self.order.kafka, "java")
        kill_ms = self._kill_ms if mix.failover else None
        cluster = Cluster(grammar, self.order.groups, self.end_ms, kill_ms)
        profile = self.order.profile.with_settings(Settings.from_properties(mix.broker_config))
        dice = random.Random(f"{self.order.seed}-delays")
        return Setting(mix, cluster, profile, Wording(grammar), delays(dice), self.end_ms - WAIT_MS)

    @property
    def _kill_ms(self) -> float | None:
        """Half-way, if the killed broker can be back before the end."""
        at_ms = self.end_ms * 0.5
        return at_ms if at_ms + BACK_MS + 1_000 < self.end_ms else None

    def name(self, number: int) -> str:
        """Return the name of a group."""
        return f"{self.order.mix_name}-{number:06}"

    def simulation(self, number: int) -> Simulation:
        """Return the simulation of a group, ready to run."""
        sizes = self.order.sizes
        return Simulation(
            self.name(number),
            self.setting,
            size=sizes[number % len(sizes)],
            static=number // len(sizes) % 2 == 0,
            newer=number // len(sizes) % 8 >= 6,
            dice=random.Random(f"{self.order.seed}-{number}"),
            connections=3 + number * CONNECTIONS,
        )

    def lines(self, number: int, kind: Kind | None = None) -> list[Line]:
        """Simulate a group, whose coordinator may break a rule."""
        simulation = self.simulation(number)
        if kind is not None:
            kind.prepare(simulation)
        return simulation.run(befalls(simulation))

    def planted(self, number: int, kind: Kind) -> Planted | None:
        """Simulate a group with something wrong; None where it has no place for it."""
        if kind.static not in (None, self.simulation(number).static):
            return None
        return kind.alter(self.lines(number, kind))


def make(order: Order, folder: Path, progress: Callable[[str], None]) -> Made:
    """Write a run folder, which must not exist. Raises OSError where that cannot be done."""
    run = Run(order, order.end_ms or _end_ms(order))
    progress(f"{order.groups} groups for {run.end_ms / 1_000:.0f} s")
    folder.mkdir(parents=True)
    plants = _plants(run)
    with tempfile.TemporaryDirectory(prefix=".synth-", dir=folder) as scratch:
        slices = max(1.0, order.bytes / len(BROKERS) / PIECE_BYTES)
        files = LogFiles(
            Path(scratch), run.end_ms / slices, STARTED_MS, CLOCK_NS,
            random.Random(f"{order.seed}-order"),
        )  # fmt: skip
        for line in run.setting.cluster.lines():
            thread, level, body, logger = line.event
            files.add(line.broker, line.process, line.at_ms, f"{thread} {level} {body} ({logger})")
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
    for name, content in _files(run, found).items():
        (folder / name).write_text(content, encoding="utf-8")
    return Made(size, count, run.end_ms / 1_000, found)


def _add(files: LogFiles, lines: list[Line], place: int | None, mark: str) -> None:
    for number, (broker, at_ms, text) in enumerate(lines):
        files.add(broker, 1, at_ms, text, mark if number == place else "")


def _end_ms(order: Order) -> float:
    """Return how long the run must last for its size: measured on some groups, then in proportion.

    Like groups differ, so that the size is met to some percent.
    """
    count = min(order.groups, SAMPLE)
    sizes = []
    for end_ms in (LEAST_MS, SAMPLE_MS, 2 * SAMPLE_MS):
        run = Run(order, end_ms)
        sizes.append(sum(
            len(line.text) + 45 for number in range(count) for line in run.lines(number)
        ) * order.groups / count)  # fmt: skip
    least, first, second = sizes
    rate = (second - first) / SAMPLE_MS
    if order.bytes <= first:
        rate = (first - least) / (SAMPLE_MS - LEAST_MS)
        return max(LEAST_MS, LEAST_MS + (order.bytes - least) / rate)
    return SAMPLE_MS + (order.bytes - first) / rate


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


def _files(run: Run, planted: list[dict[str, Any]]) -> dict[str, str]:
    """Return the files beside the logs, by name."""
    order = run.order
    environment = {
        "kafka_version": order.kafka,
        "coordinator": "java",
        "cluster": "process",
        "seed": order.seed,
        "broker_config": order.mix.broker_config,
        "repeat_command": f"groupquake dev synth --groups {order.groups} --size"
        f" {order.bytes:.0f}B --mix {order.mix_name} --seed {order.seed}"
        f" --plant {order.plant} --kafka {order.kafka} --output FOLDER",
    }
    steps = [{"id": "f1"}] if run.setting.cluster.kill_ms is not None else []
    files = {
        "environment.json": json.dumps(environment, indent=2),
        "experiment.yaml": yaml.safe_dump(_experiment(run), sort_keys=False),
        "plan.json": json.dumps({"steps": steps}),
        "journal.jsonl": "".join(f"{json.dumps(entry)}\n" for entry in _journal(run)),
    }
    if order.plant:
        files["planted.jsonl"] = "".join(f"{json.dumps(entry)}\n" for entry in planted)
    return files


def _experiment(run: Run) -> dict[str, Any]:
    mix, first = run.order.mix, run.simulation(0)
    members: dict[str, Any] = {"kind": "static", "count": first.size}
    seconds = lambda ms: f"{ms:g}ms"
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
                    "session_timeout": seconds(mix.session_ms),
                    "heartbeat_interval": seconds(mix.heartbeat_ms),
                    "members": [{**members, "instance_id": f"{first.name}-{{n}}"}],
                }
            ],
        },
        "phases": {"impact": seconds(round(run.end_ms)), "recovery": "1s"},
        "expect": [],
    }


def _journal(run: Run) -> Iterator[dict[str, Any]]:
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
        yield {"at_ms": at(killed_ms), "event": "injected", **fault}
        yield {"at_ms": at(killed_ms + 40), "event": "verified", "verified": True,
               "witness": "the simulation", **fault}  # fmt: skip
        yield {"at_ms": at(killed_ms + BACK_MS + 400), "event": "healed", "healed": True,
               "how": "started again", **fault}  # fmt: skip
    yield phase("recovery", run.end_ms - WAIT_MS - 60)
    yield phase("teardown", run.end_ms - WAIT_MS / 2)
    yield phase("end", run.end_ms + 80)
