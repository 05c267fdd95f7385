"""How many members one core holds.

Static members in Locust, in groups of 50, on one real broker: Locust and what it starts are kept to
one core, the broker to the others. With a number of processes nothing is kept anywhere, so that one
process and several can be compared. Once all have joined they send heartbeats for some seconds. It
ends with an error if they do not all join; sessions that the coordinator ended are counted.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Self

import psutil
import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import PROBE_FOLDER
from benchmarks.table import p99, quantile
from chaos.clusters.local import LocalCluster
from chaos.clusters.ports import HOST
from chaos.clusters.process import ProcessCluster
from groupquake.clients import programs
from loadtest.wire import Connection
from scenarios import find
from scenarios.clients import ADAPTERS

ROOT = Path(__file__).parents[1]
GROUP = 50
SESSION = "45s"
HEARTBEAT_S = 3
JOINED_WITHIN_S = 300.0
SPARE = 500
"""Descriptors that a process has beside its members' connections."""
BEAT = {"groupId": "nobody's", "generationId": 1, "memberId": "nobody"}
ASKED_EVERY_S = 0.02
SETTLED_S = 2 * HEARTBEAT_S
CONFIG = {
    "group.initial.rebalance.delay.ms": 3_000,
    "max.connections": 100_000,
    "offsets.topic.num.partitions": 8,
    "message.max.bytes": 50_000_000,  # the record of one big group
}
_SERVED = re.compile(r'"requestApiKey":12,.*"totalTimeMs":([0-9.]+)')
_REMOVED = ("has failed, removing it", "due to session expiration")


class Load:
    """Locust, in one process or in several, and the programs that it starts."""

    def __init__(
        self, folder: Path, bootstrap: str, experiment: Path, processes: int, *, on_one_core: bool
    ) -> None:
        self._log = folder / "locust.log"
        self._probes = folder / "probes"
        self._probes.mkdir()
        files = "loadtest/locustfile.py,benchmarks/probe.py"
        with self._log.open("wb") as log:
            self.process = psutil.Popen(
                [
                    *(sys.executable, "-m", "locust", "-f", files, "--headless"),
                    *("--bootstrap", bootstrap, "--history", str(folder / "history.jsonl")),
                    *([] if processes == 1 else ["--processes", str(processes)]),
                    *("--experiment", str(experiment)),
                ],
                cwd=ROOT,
                env={**os.environ, PROBE_FOLDER: str(self._probes)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        if on_one_core:
            self.process.cpu_affinity([0])
        while len(self._seen()) < processes:
            self._require_up()
            time.sleep(0.1)

    def _require_up(self) -> None:
        if self.process.poll() is not None:
            raise SystemExit(self._log.read_text())

    def _seen(self) -> list[dict[str, Any]]:
        """Return what the processes have measured, without those that have not begun."""
        return [json.loads(file.read_text()) for file in self._probes.glob("*.json")]

    def joined(self) -> int:
        """Return how many members have joined."""
        self._require_up()
        return sum(int(seen["joined"]) for seen in self._seen())

    def begin(self) -> None:
        """Begin to measure heartbeats and delays."""
        for file in self._probes.glob("*.json"):
            os.kill(int(file.stem), signal.SIGUSR1)

    def heartbeats(self) -> Counter[float]:
        """Return how often a heartbeat took how many ms."""
        beats: Counter[float] = Counter()
        for seen in self._seen():
            beats.update({int(tenths) / 10: n for tenths, n in seen["beats"].items()})
        return beats

    def hub_gap_p99_ms(self) -> float:
        """Return the p99 of the hub's longest delays in each second, of the worst process."""
        return max(p99(seen["gaps_ms"]) for seen in self._seen())

    def cpu_s(self) -> dict[int, float]:
        """Return the processor time that each process has taken."""
        spent = {}
        for one in (self.process, *self.process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                spent[one.pid] = float(times.user + times.system)
        return spent

    def memory(self) -> int:
        """Return the resident bytes that its members take."""
        resident = -sum(int(seen["bare"]) for seen in self._seen())
        for file in self._probes.glob("*.json"):
            worker = psutil.Process(int(file.stem))
            for one in (worker, *worker.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    resident += one.memory_info().rss
        return resident

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it; its members close."""
        with suppress(psutil.NoSuchProcess):
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=300)


def hold(
    folder: Path, client: str, count: int, seconds: float, commit: str,
    show: Callable[[str], None], processes: int | None = None,
    cluster_kind: type[LocalCluster] = ProcessCluster,
) -> dict[str, Any]:  # fmt: skip
    """Let members of a client join and stay, on one core unless a number of processes is given.

    Return what they cost and how they fared. `cpu` is a share of one core; of several processes
    that of the busiest one. `per_core` is how many members a core would hold, at this cost each.
    `memory_kb` is of each member, beyond what Locust takes without one. `hub_gap_p99_ms` is of the
    longest delays of each second, of the worst process. `lost` are the sessions that ended, and
    `served_p99_ms` is of a heartbeat in the broker, both by its log. `p50_ms` and `p99_ms` are of a
    heartbeat as its client sees it, where the client tells; `asked_p99_ms` is of one more client,
    which asks every 20 ms.
    """
    show(f"{count:,} members of {client} in {processes or 1} process(es), commits every {commit}")
    on_one_core, processes = processes is None, processes or 1
    _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= descriptors < count + SPARE:
        raise SystemExit(f"a process may open {descriptors:,} files, too few for {count:,} members;"
                         " raise the hard limit (ulimit -Hn)")  # fmt: skip
    folder.mkdir(parents=True)
    cores = os.sched_getaffinity(0)
    if on_one_core:  # brokers start there, and Locust moves to the first one
        os.sched_setaffinity(0, cores - {0} or cores)
    cluster = cluster_kind(
        f"bench-{os.getpid()}", folder / "brokers", brokers=1, heap_mb=2_048, config=CONFIG
    )
    with ExitStack() as stack:
        stack.callback(os.sched_setaffinity, 0, cores)
        stack.enter_context(cluster)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("orders", 8, 1)])["orders"].result()
        experiment = experiment_of(folder, client, count, commit)
        if client in ADAPTERS:
            programs.prepare(folder, find(str(experiment)), None, print)
        load = stack.enter_context(
            Load(folder, cluster.bootstrap, experiment, processes, on_one_core=on_one_core)
        )
        began = time.monotonic()
        while load.joined() < count:
            if time.monotonic() - began > JOINED_WITHIN_S:
                raise SystemExit(f"{client}: {load.joined()} of {count} have joined; see {folder}")
            time.sleep(1.0)
        show(f"all in after {time.monotonic() - began:.0f} s")
        time.sleep(SETTLED_S)
        group_log = cluster.brokers[0].group_log
        read_to = group_log.stat().st_size
        load.begin()
        began, before_s = time.monotonic(), load.cpu_s()
        asked_p99_ms = _asked_p99_ms(cluster.brokers[0].port, seconds)
        took_s, after_s = time.monotonic() - began, load.cpu_s()
        each = [(spent - before_s.get(pid, 0.0)) / took_s for pid, spent in after_s.items()]
        cpu = sum(each) if on_one_core else max(each)
        held = {
            "client": client, "members": count, "cpu": cpu, "per_core": count / processes / cpu,
            "memory_kb": load.memory() / count / 1024, "hub_gap_p99_ms": load.hub_gap_p99_ms(),
            "lost": sum(group_log.read_text().count(words) for words in _REMOVED),
            "served_p99_ms": _served_p99_ms(group_log, read_to), "asked_p99_ms": asked_p99_ms,
        }  # fmt: skip
        if beats := load.heartbeats():
            held |= {"p50_ms": quantile(beats, 0.5), "p99_ms": quantile(beats, 0.99)}
    show(", ".join(f"{name} {value}" for name, value in held.items()))
    return held


def _asked_p99_ms(port: int, seconds: float) -> float:
    """Return the p99 of the times that a client waits for answers to heartbeats, one at a time."""
    taken: list[float] = []
    until_s = time.monotonic() + seconds
    with closing(Connection(HOST, port, "asks")) as client:
        while (began_s := time.monotonic()) < until_s:
            client.ask("HEARTBEAT", 0, BEAT)
            taken.append(1000 * (time.monotonic() - began_s))
            time.sleep(ASKED_EVERY_S)
    return p99(taken)


def _served_p99_ms(group_log: Path, since: int) -> float:
    """Return the p99 of the times that heartbeats took in the broker."""
    with group_log.open() as lines:
        lines.seek(since)
        times = [float(found[1]) for line in lines if (found := _SERVED.search(line))]
    return p99(times)


def experiment_of(folder: Path, client: str, count: int, commit: str) -> Path:
    """Write an experiment whose members are in groups of `GROUP`."""
    groups = []
    for number in range(-(-count // GROUP)):
        members = {"kind": "static", "client": client, "count": min(GROUP, count - number * GROUP)}
        groups.append({
            "name": f"bench-{number}",
            "topics": ["orders"],
            "session_timeout": SESSION,
            "heartbeat_interval": f"{HEARTBEAT_S}s",
            "commit_interval": commit,
            "members": [{**members, "instance_id": f"bench-{number}-{{n}}"}],
        })  # fmt: skip
    topic = {"name": "orders", "partitions": 8, "replication_factor": 1}
    content = {
        "name": "members",
        "cluster": {"brokers": 1},
        "workload": {"topics": [topic], "groups": groups},
        "phases": {"impact": "5s", "recovery": "1s"},
    }
    file = folder / "experiment.yaml"
    file.write_text(yaml.safe_dump(content))
    return file
