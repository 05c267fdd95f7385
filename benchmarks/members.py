"""How many members one core holds: `python -m benchmarks.members [--client NAME=COUNT]… [--json]`.

Static members in Locust, in groups of 50, on one real broker: Locust is kept to one core, the
broker to the others. Once all have joined and Locust has started its figures anew, they send
heartbeats for `--seconds`. It ends with an error if a member is not in at the end, or if the
coordinator removed one.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clusters.process import ProcessCluster

ROOT = Path(__file__).parents[1]
GROUP = 50
SESSION = "45s"
HEARTBEAT_S = 3
JOINED_WITHIN_S = 300.0
SETTLED_S = 2 * HEARTBEAT_S
TOKEN = "benchmark"  # noqa: S105 (of a server on the loopback, for as long as this runs)
CONFIG = {
    "group.initial.rebalance.delay.ms": 3_000,
    "max.connections": 100_000,
    "offsets.topic.num.partitions": 8,
}


@dataclass
class Held:
    """What members of a client cost. `cpu` is a share of one core; heartbeats where it has them."""

    client: str
    members: int
    joined_s: float
    cpu: float
    memory_kb: float
    """Of each member, beyond what Locust takes without one."""
    hub_gap_p99_ms: float
    heartbeats: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None

    @property
    def per_core(self) -> float:
        """How many members one core would hold, at this cost each."""
        return self.members / self.cpu


class Load:
    """Locust on the first core."""

    def __init__(self, folder: Path, bootstrap: str, experiment: Path) -> None:
        self._folder = folder
        self._control = folder / "control.json"
        self._asked = 0
        with (folder / "locust.log").open("wb") as log:
            self.process = psutil.Popen(
                [
                    *(sys.executable, "-m", "locust", "-f", "loadtest/locustfile.py"),
                    *("--headless", "--bootstrap", bootstrap, "--experiment", str(experiment)),
                    *("--history", str(folder / "history.jsonl")),
                    *("--control-file", str(self._control), "--json-file", str(folder / "stats")),
                    "--reset-stats",
                ],
                cwd=ROOT,
                env={**os.environ, "GROUPQUAKE_CONTROL_TOKEN": TOKEN},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.process.cpu_affinity([0])
        while not self._control.exists():
            self._require_up()
            time.sleep(0.1)
        self.bare_bytes = self.process.memory_info().rss
        port = json.loads(self._control.read_text())["port"]
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._lines = self._socket.makefile("rb")
        self._socket.sendall(json.dumps({"token": TOKEN}).encode() + b"\n")

    def _require_up(self) -> None:
        if self.process.poll() is not None:
            raise SystemExit((self._folder / "locust.log").read_text())

    def ask(self, do: str) -> Any:
        """Return the result of a command."""
        self._require_up()
        self._asked += 1
        line = json.dumps({"id": self._asked, "do": do}).encode() + b"\n"
        self._socket.sendall(line)
        return json.loads(self._lines.readline())["result"]

    def joined(self) -> int:
        """Return how many members have joined."""
        return sum(row["state"] == "joined" for row in self.ask("members"))

    def cpu_s(self) -> float:
        """Return the processor time that it has taken."""
        spent = self.process.cpu_times()
        return float(spent.user + spent.system)

    def end(self) -> list[dict[str, Any]]:
        """End it; return Locust's rows."""
        self._socket.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=300)
        rows: list[dict[str, Any]] = json.loads((self._folder / "stats.json").read_text())
        return rows

    def hub_gaps_ms(self) -> list[float]:
        """Return the longest delay of the hub of each second."""
        with (self._folder / "history.jsonl").open() as lines:
            return [json.loads(line)["max_ms"] for line in lines if '"hub_lag"' in line]


def hold(folder: Path, client: str, count: int, seconds: float, commit: str) -> Held:
    """Let members of a client join and stay."""
    folder.mkdir()
    experiment = _experiment(folder, client, count, commit)
    cluster = ProcessCluster(
        f"bench-{os.getpid()}", folder / "brokers", brokers=1, heap_mb=2_048, config=CONFIG
    )
    with cluster:
        _create_topic(cluster.bootstrap)
        load = Load(folder, cluster.bootstrap, experiment)
        _keep_off_first_core(folder / "brokers")
        began = time.monotonic()
        while load.joined() < count:
            if time.monotonic() - began > JOINED_WITHIN_S:
                raise SystemExit(f"{client}: {load.joined()} of {count} have joined; see {folder}")
            time.sleep(1.0)
        joined_s = time.monotonic() - began
        time.sleep(SETTLED_S)
        gaps_before = len(load.hub_gaps_ms())
        began, before_s = time.monotonic(), load.cpu_s()
        time.sleep(seconds)
        cpu = (load.cpu_s() - before_s) / (time.monotonic() - began)
        gaps = sorted(load.hub_gaps_ms()[gaps_before:])
        memory = (load.process.memory_info().rss - load.bare_bytes) / count / 1024
        if (still := load.joined()) != count:
            raise SystemExit(f"{client}: {still} of {count} members are in at the end")
        log = cluster.brokers[0].group_log.read_text()
        rows = load.end()
    if removed := log.count("has failed, removing it") + log.count("due to session expiration"):
        raise SystemExit(f"{client}: the coordinator removed {removed} members")
    held = Held(client, count, joined_s, cpu, memory, gaps[int(0.99 * (len(gaps) - 1))])
    beats = next((row for row in rows if row["name"] == "heartbeat"), None)
    if beats is not None:
        times = {float(ms): number for ms, number in beats["response_times"].items()}
        held.heartbeats = sum(times.values())
        held.p50_ms, held.p99_ms = _quantile(times, 0.5), _quantile(times, 0.99)
    return held


def _quantile(times: dict[float, int], share: float) -> float:
    """Return a quantile of counted times."""
    wanted, seen = share * sum(times.values()), 0
    for ms in sorted(times):
        seen += times[ms]
        if seen >= wanted:
            return ms
    raise ValueError("no times")


def _experiment(folder: Path, client: str, count: int, commit: str) -> Path:
    groups = [
        {
            "name": f"bench-{number}",
            "topics": ["orders"],
            "session_timeout": SESSION,
            "heartbeat_interval": f"{HEARTBEAT_S}s",
            "commit_interval": commit,
            "members": [
                {
                    "kind": "static",
                    "client": client,
                    "count": min(GROUP, count - number * GROUP),
                    "instance_id": f"bench-{number}-{{n}}",
                }
            ],
        }
        for number in range(-(-count // GROUP))
    ]
    file = folder / "experiment.yaml"
    content = {
        "name": "members",
        "cluster": {"brokers": 1},
        "workload": {
            "topics": [{"name": "orders", "partitions": 8, "replication_factor": 1}],
            "groups": groups,
        },
        "phases": {"impact": "5s", "recovery": "1s"},
    }
    file.write_text(yaml.safe_dump(content))
    return file


def _create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic("orders", 8, 1)]).values():
        created.result()


def _keep_off_first_core(brokers: Path) -> None:
    others = list(range(1, os.cpu_count() or 1)) or [0]
    for row in json.loads((brokers / "processes.json").read_text())["brokers"]:
        psutil.Process(row["pid"]).cpu_affinity(others)


def _given(text: str) -> tuple[str, int]:
    client, _, count = text.partition("=")
    return client, int(count)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.members", description=__doc__)
    parser.add_argument("--client", type=_given, action="append", metavar="NAME=COUNT")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--commit", default="5s", help="commit interval (%(default)s)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="groupquake-members-") as folder:
        found = [
            hold(Path(folder) / client, client, count, given.seconds, given.commit)
            for client, count in given.client or [("librdkafka", 300), ("wire", 10_000)]
        ]
    if given.json:
        json.dump([asdict(one) | {"per_core": one.per_core} for one in found], sys.stdout, indent=1)
        print()
        return
    for one in found:
        beats = ""
        if one.p50_ms is not None:
            beats = f"  heartbeat p50 {one.p50_ms:g} ms p99 {one.p99_ms:g} ms"
        print(
            f"{one.client:11} {one.members:6} members in after {one.joined_s:.0f} s"
            f"  {one.cpu:.0%} of a core, {one.memory_kb:.0f} KB each, {one.per_core:,.0f} a core,"
            f" hub gap p99 {one.hub_gap_p99_ms:g} ms{beats}"
        )
    peer = found[0].per_core
    for one in found[1:]:
        print(f"{one.client} holds {one.per_core / peer:.1f} times as many as {found[0].client}")


if __name__ == "__main__":
    main()
