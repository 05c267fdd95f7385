from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scenarios import Experiment
from scenarios import load as load_experiment
from tests.chaos.fake_cluster import FakeCluster
from tests.chaos.fakes import BrokerLog, FakeLoad
from tests.chaos.run import Run

EXPERIMENT = """
name: small
cluster: {{brokers: 3, config: {{group.min.session.timeout.ms: 100}}}}
workload:
  topics: [{{name: orders, partitions: 8, replication_factor: 1}}]
  groups:
    - name: static
      topics: [orders]
      session_timeout: 300ms
      heartbeat_interval: 50ms
      max_poll_interval: 300ms
      members:
        - {{kind: static, count: 4, instance_id: "static-{{n}}", client: librdkafka-process}}
    - name: mixed
      topics: [orders]
      session_timeout: 300ms
      heartbeat_interval: 50ms
      max_poll_interval: 300ms
      members: [{{kind: dynamic, count: 2}}, {{kind: static, count: 1, instance_id: lone}}]
steady_state:
  within: 500ms
  probes:
    - {{name: all are in, probe: group.members, group: static, tolerance: 4}}
    - {{name: it is stable, probe: group.state, group: static, tolerance: Stable}}
faults: {faults}
phases: {{impact: {impact}, recovery: {recovery}}}
"""

Make = Callable[..., Experiment]


@pytest.fixture
def experiment(tmp_path: Path) -> Make:
    """Makes an experiment of two groups with the faults given, as YAML."""

    def make(*faults: str, impact: str = "50ms", recovery: str = "20ms") -> Experiment:
        listed = "[" + ", ".join(faults) + "]"
        file = tmp_path / "experiment.yaml"
        file.write_text(EXPERIMENT.format(faults=listed, impact=impact, recovery=recovery))
        return load_experiment(file)

    return make


@pytest.fixture
def log(tmp_path: Path) -> BrokerLog:
    return BrokerLog(tmp_path / "group.log")


@pytest.fixture
def load(experiment: Make, log: BrokerLog) -> Iterator[FakeLoad]:
    fake = FakeLoad(experiment().members(), log)
    yield fake
    fake.die()


@pytest.fixture
def fake_cluster(log: BrokerLog, tmp_path: Path) -> Iterator[FakeCluster]:
    """Three brokers; the group's log is that of the first."""
    cluster = FakeCluster(log.path, tmp_path / "2" / "group.log", tmp_path / "3" / "group.log")
    (tmp_path / "2").mkdir()
    (tmp_path / "3").mkdir()
    yield cluster
    cluster.close()


@pytest.fixture
def run(load: FakeLoad, fake_cluster: FakeCluster, tmp_path: Path) -> Run:
    return Run(load, fake_cluster, tmp_path / "journal.jsonl")
