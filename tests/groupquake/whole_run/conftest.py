"""One run that all tests of this folder ask, with what needs no run of its own."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.clusters import jars
from tests.conftest import VERSION
from tests.groupquake.conftest import SMALL, arguments, running, state_in
from tests.groupquake.test_own_builds import ACME
from tests.groupquake.whole_run.collector import Collector
from tests.other_thread import signal_other_thread

Json = dict[str, Any]
TOO_LONG_S = 600
"""After that the run is killed, and what waits for it ends."""

SHOP: Json = {
    "name": "shop",
    "topics": ["parcels"],
    "session_timeout": "10s",
    "heartbeat_interval": "500ms",
    "commit_interval": "2s",
    "members": [{"kind": "static", "count": 25, "instance_id": "shop-{n}", "client": "wire"}],
}
WAVES: Json = {
    "fault": "group.bounce", "target": "all", "group": "shop", "at": "1s", "down_for": "1s",
    "every": "2500ms", "at_once": 12,
}  # fmt: skip


def written(folder: Path) -> Path:
    """Write the small experiment with a larger group beside its two, of our own members."""
    experiment = yaml.safe_load(SMALL)
    experiment["workload"]["topics"].append({"name": "parcels", "partitions": 25})
    experiment["workload"]["groups"].append(SHOP)
    experiment["steady_state"]["within"] = "60s"
    experiment["steady_state"]["probes"] += [
        {"name": "all in the shop", "probe": "group.members", "group": "shop", "tolerance": "all"},
        {"name": "settled shop", "probe": "group.state", "group": "shop", "tolerance": "Stable"},
    ]
    experiment["faults"].append(WAVES)
    experiment["phases"]["impact"] = "8s"
    experiment["expect"].append({"group": "shop", "phase": "impact", "rebalances": 0})
    file = folder / "whole.yaml"
    file.write_text(yaml.safe_dump(experiment, sort_keys=False))
    return file


@dataclass(frozen=True)
class WholeRun:
    """The run, with what it printed and exported."""

    command: Sequence[str]
    libs: Path
    folder: Path
    code: int
    out: str
    err: str
    left: Sequence[str]
    """What ran when it had ended: the cluster was kept, and a signal came."""
    collector: Collector

    @cached_property
    def verdict(self) -> Json:
        content: Json = json.loads((self.folder / "verdict.json").read_text())
        return content

    @cached_property
    def journal(self) -> list[Json]:
        return lines(self.folder / "journal.jsonl")

    @cached_property
    def history(self) -> list[Json]:
        return lines(self.folder / "history.jsonl")


def lines(file: Path) -> list[Json]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    """A build of the user's, telemetry, and a cluster that is kept until a signal comes."""
    folder = tmp_path_factory.mktemp("whole")
    libs = folder / "kafka" / "libs"
    libs.mkdir(parents=True)
    for jar in jars.class_path(VERSION):
        (libs / jar.name.replace(VERSION, ACME)).symlink_to(jar)
    words = [str(written(folder)), "--seed=5", f"--kafka-home={libs.parent}", "--profile=4.3"]
    collector = Collector()
    with (
        collector.serving() as variables,
        subprocess.Popen(
            arguments("run", *words, "--keep", "--otel"),
            cwd=folder,
            env=state_in(folder) | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stderr is not None
        too_long = threading.Timer(TOO_LONG_S, process.kill)
        too_long.start()
        try:
            read_until("the cluster keeps running", process.stderr)
            signal_other_thread(process.pid, signal.SIGINT)
            out, err = process.communicate()
        finally:
            too_long.cancel()
            process.kill()
    left = running(str(folder))
    run = (folder / "runs" / "latest").resolve()
    return WholeRun(words, libs, run, process.returncode, out, err, left, collector)


def read_until(text: str, output: Iterable[str]) -> None:
    """Read what a run says until a line has a text."""
    said = []
    for line in output:
        said.append(line)
        if text in line:
            return
    pytest.fail(f"it ended before it said {text!r}: {''.join(said)}")
