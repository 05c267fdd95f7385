"""Locust runs in a child process only: importing it would patch this interpreter."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clusters.process import ProcessCluster

ROOT = Path(__file__).parents[2]
TOKEN = "known to this test alone"
PARTITIONS = 8
T = TypeVar("T")

EXPERIMENT = """
name: small
cluster: {brokers: 1}
workload:
  topics:
    - {name: orders, partitions: 8, replication_factor: 1}
  producers:
    - {topic: orders, rate: 25}
  groups:
    - name: calm
      topics: [orders]
      assignor: cooperative-sticky
      session_timeout: 6s
      heartbeat_interval: 500ms
      max_poll_interval: 60s
      commit_interval: 1s
      members:
        - {kind: static, count: 2, instance_id: "static-{n}"}
    - name: lively
      topics: [orders]
      assignor: roundrobin
      session_timeout: 8s
      heartbeat_interval: 1500ms
      commit_interval: 2s
      members:
        - {kind: dynamic, count: 1}
phases: {impact: 5s, recovery: 1s}
"""


class Locust:
    """A Locust child of its own group, spoken to as the runner does."""

    def __init__(self, folder: Path, *arguments: str, token: str = TOKEN) -> None:
        self.history_file = folder / "history.jsonl"
        self.stats_file = folder / "stats.json"
        self._control_file = folder / "control.json"
        self._output = folder / "locust.log"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "locust", "-f", "loadtest/locustfile.py"),
                    *("--history", str(self.history_file)),
                    *("--control-file", str(self._control_file)),
                    *("--json-file", str(self.stats_file.with_suffix(""))),
                    *arguments,
                ],
                cwd=ROOT,
                env={**os.environ, "GROUPQUAKE_CONTROL_TOKEN": token},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._connection: socket.socket | None = None
        self._asked = 0

    @property
    def output(self) -> str:
        return self._output.read_text()

    def history(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.history_file.read_text().splitlines()]

    def ask(self, do: str, **fields: Any) -> Any:
        """Return the result; a refusal fails the test."""
        reply = self.reply_to(do, **fields)
        assert reply["ok"], reply
        return reply["result"]

    def send(self, do: str, **fields: Any) -> None:
        """Send an order and leave its reply for later."""
        if self._connection is None:
            port = self.wait_for(self._port)
            self._connection = socket.create_connection(("127.0.0.1", port), timeout=20)
            self._lines = self._connection.makefile("rb")
            self._write({"token": TOKEN})
        self._asked += 1
        self._write({"id": self._asked, "do": do, **fields})

    def reply_to(self, do: str, **fields: Any) -> dict[str, Any]:
        self.send(do, **fields)
        reply = json.loads(self._lines.readline())
        assert reply["id"] == self._asked
        return reply

    def members(self) -> dict[str, dict[str, Any]]:
        return {row["name"]: row for row in self.ask("members")}

    def wait_for(self, attempt: Callable[[], T], within_s: float = 120) -> T:
        deadline = time.monotonic() + within_s
        while not (result := attempt()):
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, f"{attempt} not within {within_s} s: {self.output}"
            time.sleep(0.05)
        return result

    def wait_joined(self, *names: str) -> dict[str, dict[str, Any]]:
        """Wait until these members (all, if none is named) have joined and share all partitions."""

        def joined() -> dict[str, dict[str, Any]] | None:
            rows = self.members()
            states = {rows[name]["state"] for name in names or rows}
            shared = Counter(row["group"] for row in rows.values() for _ in row["partitions"])
            whole = all(shared[row["group"]] == PARTITIONS for row in rows.values())
            return rows if states == {"joined"} and whole else None

        return self.wait_for(joined)

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout=60)

    def close(self) -> None:
        if self._connection is not None:
            self._lines.close()
            self._connection.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _write(self, line: dict[str, Any]) -> None:
        assert self._connection is not None
        self._connection.sendall(json.dumps(line).encode() + b"\n")

    def _port(self) -> int | None:
        if not self._control_file.exists():
            return None
        return json.loads(self._control_file.read_text())["port"]


@pytest.fixture
def locust(tmp_path: Path) -> Iterator[Callable[..., Locust]]:
    children: list[Locust] = []

    def start(*arguments: str, **more: Any) -> Locust:
        children.append(Locust(tmp_path, *arguments, **more))
        return children[-1]

    yield start
    for child in children:
        child.close()


@pytest.fixture
def port() -> int:
    """A port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Tell whether something takes connections at a port."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.fixture
def experiment_file(tmp_path: Path) -> Path:
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    """A real broker with a topic `orders`, which lets sessions be short."""
    folder = tmp_path_factory.mktemp("kafka")
    settings = {"group.initial.rebalance.delay.ms": 500, "group.min.session.timeout.ms": 300}
    with ProcessCluster(f"loadtest-{os.getpid()}", folder, brokers=1, config=settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for created in admin.create_topics([NewTopic("orders", PARTITIONS, 1)]).values():
            created.result()
        yield cluster


@pytest.fixture(scope="session")
def kafka(broker: ProcessCluster) -> str:
    """Its bootstrap servers."""
    return broker.bootstrap
