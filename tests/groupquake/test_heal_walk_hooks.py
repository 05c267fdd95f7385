"""`groupquake heal` after a runner that was killed at each step of a fault by hooks of a user's."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from kafka.admin import KafkaAdminClient

from chaos.clusters import ClusterError
from chaos.clusters.process import ProcessCluster
from scenarios.faults import FAULTS
from tests.conftest import SOON_BACK
from tests.groupquake.heal_walk import STEPS, healed_twice, killed_run, marked, open_or_running

BATCHES = {
    "kill-and-pause": (
        "fault: broker.kill, target: {brokers: [1]}, down_for: 300ms",
        "fault: broker.pause, target: {brokers: [2]}, down_for: 300ms",
    ),
    "stop": ("fault: broker.stop, target: {brokers: [3]}, down_for: 300ms",),
    "restart": ("fault: broker.restart, target: {brokers: [1]}",),
}
"""Every fault that hooks carry out; those of a batch are open at the same time."""
VERBS = ("kill", "stop", "start", "pause", "resume")
SETTINGS = {
    "group.min.session.timeout.ms": 1_000, "group.initial.rebalance.delay.ms": 0, **SOON_BACK
}  # fmt: skip


class Operator(threading.Thread):
    """Does to brokers what files in a folder ask for, `kill-1`, and removes each once it is done.

    A broker that runs already needs no start.
    """

    def __init__(self, cluster: ProcessCluster, folder: Path) -> None:
        super().__init__()
        self.over = threading.Event()
        self._folder = folder
        self._cluster = cluster

    @property
    def hooks(self) -> str:
        """Return the commands of a user's, as the file has them."""
        asked = f"{self._folder}/%s-{{broker}}"
        command = f"touch {asked}; while [ -e {asked} ]; do sleep 0.1; done"
        each = ", ".join(f"{verb}: '{command.replace('%s', verb)}'" for verb in VERBS)
        return f"{{any: {{{each}}}}}"

    def run(self) -> None:
        """Work until it is over."""
        while not self.over.wait(0.05):
            for asked in self._folder.iterdir():
                verb, _, broker = asked.name.partition("-")
                with suppress(ClusterError):
                    self._cluster.act(verb, int(broker))
                asked.unlink()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProcessCluster, Operator]]:
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "asked").mkdir()
    with ProcessCluster("walked", folder / "brokers", config=SETTINGS) as cluster:
        operator = Operator(cluster, folder / "asked")
        operator.start()
        try:
            yield cluster, operator
        finally:
            operator.over.set()
            operator.join()


def names(cluster: ProcessCluster) -> tuple[str, set[str]]:
    """Return the id of the cluster, and its topics and groups, but for that of their offsets."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        found = {*client.list_topics(), *(group["group_id"] for group in client.list_groups())}
        return client.describe_cluster()["cluster_id"], found - {"__consumer_offsets"}
    finally:
        client.close()


def left_over(run: Path, cluster: ProcessCluster) -> list[str]:
    """Say what a run has left on a cluster: its names, and brokers that do not run."""
    found = open_or_running(run) + sorted(names(cluster)[1])
    found += [f"broker {info.id} is down" for info in cluster.brokers
              if info.id not in cluster.process_ids]  # fmt: skip
    return found + [
        f"broker {node} is paused"
        for node, pid in cluster.process_ids.items()
        if psutil.Process(pid).status() == psutil.STATUS_STOPPED
    ]


def test_every_fault_with_hooks_is_walked() -> None:
    walked = {
        fault.split(",")[0].removeprefix("fault: ") for of in BATCHES.values() for fault in of
    }
    own = {name for name, kind in FAULTS.items() if kind.needs == "volume"}
    assert walked == {name for name, kind in FAULTS.items() if kind.process} - own


@pytest.mark.cluster
@pytest.mark.parametrize("step", [pytest.param(step, marks=marked(step)) for step in STEPS])
@pytest.mark.parametrize("batch", BATCHES)
def test_every_step(
    tmp_path: Path, theirs: tuple[ProcessCluster, Operator], batch: str, step: str
) -> None:
    cluster, operator = theirs
    words = [
        *("--bootstrap", cluster.bootstrap, "--allow-faults", names(cluster)[0]),
        *("--set", f"cluster.hooks={operator.hooks}", "--set", "cluster.logs=none"),
    ]
    faults = BATCHES[batch]
    run = killed_run(tmp_path / "walk", "external", faults, step, 3, words)
    assert healed_twice(run, len(faults), step, lambda: left_over(run, cluster)) == []
