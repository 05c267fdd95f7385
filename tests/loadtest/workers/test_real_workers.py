"""Locust's own master and workers, without a broker: their members never join."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from chaos.clusters.ports import HOST, free_ports
from tests.loadtest.conftest import EXPERIMENT, ROOT, Locust
from tests.process_family import below


class Load:
    """A master with an experiment whose brokers do not exist, and workers that come and go."""

    def __init__(self, locust: Callable[..., Locust], folder: Path) -> None:
        self._folder = folder
        self._port, nobody = free_ports(2)
        self.workers: list[subprocess.Popen[bytes]] = []
        wire = EXPERIMENT.replace("count: 2,", "count: 2, client: wire,")
        wire = wire.replace("kind: dynamic, count: 1", "kind: dynamic, count: 2, client: wire")
        experiment = folder / "experiment.yaml"
        experiment.write_text(wire)
        self.master = locust(
            *("--headless", "--master", "--expect-workers", "2", "--experiment", str(experiment)),
            *("--master-bind-host", HOST, "--master-bind-port", str(self._port)),
            *("--bootstrap", f"{HOST}:{nobody}"),
        )

    def add_worker(self) -> subprocess.Popen[bytes]:
        with (self._folder / f"worker-{len(self.workers)}.log").open("wb") as log:
            worker = subprocess.Popen(
                [
                    *(sys.executable, "-m", "locust", "-f", "loadtest/locustfile.py", "--worker"),
                    *("--master-host", HOST, "--master-port", str(self._port)),
                ],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.workers.append(worker)
        ready = lambda: self.master.output.count("reported as ready") == len(self.workers)
        self.master.wait_for(ready)
        return worker

    def of(self, *events: str) -> list[dict[str, Any]]:
        """Return the lines of these events, without those of the producer."""
        history = self.master.history()
        return [line for line in history if line["event"] in events and line["kind"] != "producer"]

    def named(self, *events: str) -> list[str]:
        return sorted(line["member"] for line in self.of(*events))

    def states(self) -> dict[str, str]:
        return {name: row["state"] for name, row in self.master.members().items()}

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()


CRASHED = 1
TOKEN = "GROUPQUAKE_CONTROL_TOKEN"
MEMBERS = ["lively-dynamic-0", "lively-dynamic-1", "static-0", "static-1"]


@pytest.fixture
def load(locust: Callable[..., Locust], tmp_path: Path) -> Iterator[Load]:
    load = Load(locust, tmp_path)
    yield load
    load.close()


def test_members_stay_where_they_are_whichever_workers_come_and_go(load: Load) -> None:
    first, second = load.add_worker(), load.add_worker()
    load.master.wait_for(lambda: load.named("created") == MEMBERS)

    os.kill(first.pid, signal.SIGSTOP)
    third = load.add_worker()
    [lost] = load.master.wait_for(lambda: load.of("worker_lost"))
    gone = {*MEMBERS} & {*lost["members"]}
    assert gone
    assert gone < {*MEMBERS}
    states = {**dict.fromkeys(MEMBERS, "starting"), **dict.fromkeys(gone, "killed")}
    assert load.states() == states

    os.kill(first.pid, signal.SIGCONT)
    assert first.wait(timeout=20) == CRASHED, "it hears that it is lost"
    assert load.master.reply_to("start", member=min(gone))["gone"]
    assert load.states() == states

    os.kill(second.pid, signal.SIGSTOP)
    os.kill(third.pid, signal.SIGSTOP)
    load.master.wait_for(lambda: len(load.of("worker_lost")) == 3, within_s=30)
    assert load.states() == dict.fromkeys(MEMBERS, "killed")
    assert "stopping test" not in load.master.output, "the run ends when its plan says so"

    missing = load.master.ask("finish")
    assert len([one for one in missing if " was lost at " in one]) == 2, "the third had nothing"
    assert load.named("created") == load.named("killed") == MEMBERS
    assert load.of("closing", "closed") == []
    load.master.send("quit")
    assert load.master.process.wait(timeout=20) == 0, load.master.output


def test_forked_workers_hide_the_token_of_the_load_and_one_may_be_killed(
    locust: Callable[..., Locust], tmp_path: Path
) -> None:
    experiment = tmp_path / "experiment.yaml"
    experiment.write_text(EXPERIMENT.replace("count: 2,", "count: 2, client: librdkafka-process,"))
    port, nobody = free_ports(2)
    master = locust(
        *("--headless", "--processes", "2", "--experiment", str(experiment)),
        *("--master-bind-host", HOST, "--master-bind-port", str(port)),
        *("--master-host", HOST, "--master-port", str(port)),
        *("--bootstrap", f"{HOST}:{nobody}"),
    )
    of = lambda event: [line for line in master.history() if line["event"] == event]
    states = lambda: {name: row["state"] for name, row in master.members().items()}
    master.wait_for(lambda: {*states().values()} == {"starting"})
    master.wait_for(lambda: {line["member"] for line in of("created")} >= states().keys())
    programs = below(master.process.pid, "confluent-kafka/member.py")
    assert len(programs) == 2
    assert [one.environ().get(TOKEN) for one in programs] == [None, None]

    killed, _ = psutil.Process(master.process.pid).children()
    killed.kill()
    [lost] = master.wait_for(lambda: of("worker_lost"))
    gone = {name for name, state in states().items() if state == "killed"}
    assert gone == {*lost["members"]} - {"producer-0"}
    assert 0 < len(gone) < 3
    master.send("quit")
    assert master.process.wait(timeout=60) == 0, master.output
    assert "Traceback" not in master.output
