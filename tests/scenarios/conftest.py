from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios import Experiment, ScenarioError, load, named, names

SMALL = """\
name: small
cluster: {brokers: 3, config: {offsets.topic.num.partitions: 6}}
workload:
  topics:
    - {name: orders, partitions: 4, replication_factor: 3}
  producers:
    - {topic: orders, rate: 5}
  groups:
    - name: payments
      topics: [orders]
      session_timeout: 10s
      heartbeat_interval: 1s
      max_poll_interval: 30s
      members:
        - {kind: static, count: 2, instance_id: "teller-{n}"}
steady_state:
  probes:
    - {name: all in, probe: group.members, group: payments, tolerance: 2}
faults:
  - {fault: group.bounce, target: all, group: payments, at: 1s, down_for: 2s, every: 5s}
  - {fault: member.restart, target: {names: [teller-1]}, at: 1s, down_for: 2s}
phases: {impact: 20s, recovery: 0s}
expect:
  - {group: payments, phase: impact, rebalances: 0}
"""
"""A small valid experiment."""
Load = Callable[[str], Experiment]
Problems = Callable[[str], list[str]]


@pytest.fixture
def load_text(tmp_path: Path) -> Load:
    def load_text(text: str) -> Experiment:
        path = tmp_path / "x.yaml"
        path.write_text(text, "utf-8")
        return load(path)

    return load_text


@pytest.fixture
def problems(tmp_path: Path, load_text: Load) -> Problems:
    """Load text that must be refused; return the lines, each without the file's name."""

    def problems(text: str) -> list[str]:
        with pytest.raises(ScenarioError) as caught:
            load_text(text)
        lines = str(caught.value).splitlines()
        prefix = f"{tmp_path / 'x.yaml'}:"
        assert all(line.startswith(prefix) for line in lines)
        return [line.removeprefix(prefix) for line in lines]

    return problems


@pytest.fixture(scope="session")
def library() -> dict[str, Experiment]:
    """Every experiment of the library, by its name."""
    return {name: named(name) for name in names()}
