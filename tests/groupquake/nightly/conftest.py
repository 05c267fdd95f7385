from collections.abc import Callable
from pathlib import Path

import pytest

TINY = """\
name: {name}
cluster:
  brokers: 1
  config: {{group.initial.rebalance.delay.ms: 100}}
workload:
  topics: [{{name: orders, partitions: 2}}]
  groups:
    - name: clerks
      topics: [orders]
      session_timeout: 8s
      heartbeat_interval: 250ms
      max_poll_interval: 10s
      members: [{{kind: static, count: 2, instance_id: "clerk-{{n}}"}}]
steady_state:
  within: 30s
  probes:
    - {{name: all in, probe: group.members, group: clerks, tolerance: 2}}
    - {{name: settled, probe: group.state, group: clerks, tolerance: Stable}}
faults:
  - {{fault: member.restart, target: {{names: [clerk-0]}}, at: 200ms, down_for: {down_for}}}
phases: {{impact: {impact}, recovery: 500ms}}
expect:
  - {{group: clerks, phase: impact, rebalances: {rebalances}}}
"""

Write = Callable[..., Path]


@pytest.fixture
def experiment(tmp_path: Path) -> Write:
    """Writes an experiment of one static group whose first member restarts once."""

    def write(
        name: str = "tiny", *, rebalances: int = 0, down_for: str = "1s", impact: str = "4s"
    ) -> Path:
        file = tmp_path / f"{name}.yaml"
        file.write_text(
            TINY.format(name=name, rebalances=rebalances, down_for=down_for, impact=impact)
        )
        return file

    return write


@pytest.fixture
def suite(tmp_path: Path) -> Write:
    """Writes a suite of experiments beside it, on 4.3.0, with more lines as given."""

    def write(*experiments: str, on: str = "{kafka: 4.3.0}", more: str = "seeds: [11]") -> Path:
        file = tmp_path / "suite.yaml"
        listed = ", ".join(f"./{name}.yaml" for name in experiments)
        file.write_text(f"name: mine\nexperiments: [{listed}]\non: [{on}]\n{more}\n")
        return file

    return write
