"""Two runs at the same time, on either coordinator of one release, with the faults that no bundled
experiment has: both pass, and neither sees the other.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.groupquake.conftest import arguments, running

EXPERIMENT = """\
name: other-faults
description: A member is killed; the coordinator pauses, the controller restarts, a leader stops.
cluster:
  brokers: 3
  version: 3.9.1
  config:
    group.initial.rebalance.delay.ms: 300
    offsets.topic.num.partitions: 6
    broker.session.timeout.ms: 3000
    broker.heartbeat.interval.ms: 500
workload:
  topics: [{name: orders, partitions: 6, replication_factor: 3}]
  producers: [{topic: orders, rate: 20}]
  groups:
    - name: static
      topics: [orders]
      session_timeout: 30s
      heartbeat_interval: 700ms
      max_poll_interval: 40s
      commit_interval: 1s
      members: [{kind: static, count: 3, instance_id: "clerk-{n}"}]
steady_state:
  within: 60s
  probes:
    - {name: all in, probe: group.members, group: static, tolerance: 3}
    - {name: settled, probe: group.state, group: static, tolerance: Stable}
faults:
  - {fault: member.kill, target: {names: [clerk-1]}, at: 1s, down_for: 2s}
  - {fault: broker.pause, target: {coordinator-of: static}, at: 6s, down_for: 2s}
  - {fault: broker.restart, target: controller, at: 12s}
  - {fault: broker.stop, target: {partition-leader: orders/0}, at: 32s, down_for: 2s}
phases: {impact: 50s, recovery: 3s}
expect:
  - {group: static, phase: impact, rebalances: 0}
"""
FAULTS = {"member.kill", "broker.pause", "broker.restart", "broker.stop"}


@pytest.mark.long
@pytest.mark.cluster
def test_both_pass(tmp_path: Path) -> None:
    file = tmp_path / "other-faults.yaml"
    file.write_text(EXPERIMENT)
    folders = {name: tmp_path / name for name in ("scala", "java")}
    processes = [
        subprocess.Popen(
            arguments("run", file, "--seed", 5, "--coordinator", name, "--runs", folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, folder in folders.items()
    ]
    for process in processes:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, out[-3000:] + err[-3000:]
    for name, folder in folders.items():
        verdict = json.loads((folder / "latest" / "verdict.json").read_text())
        assert (verdict["verdict"], verdict["coordinator"]) == ("pass", name)
        assert {fault["name"] for fault in verdict["faults"]} == FAULTS
    assert running(str(tmp_path)) == []
