"""Members are answered errors that their broker did not give, and unsubscribe: nobody is blamed."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.groupquake.conftest import Command

GROUP = """\
      topics: [orders]
      session_timeout: 6s
      heartbeat_interval: 700ms
      max_poll_interval: 30s
      commit_interval: 1s
"""
EXPERIMENT = f"""\
name: answered-errors
cluster: {{brokers: 1, version: 4.3.0, config: {{offsets.topic.num.partitions: 6}}}}
workload:
  topics: [{{name: orders, partitions: 6, replication_factor: 1}}]
  producers: [{{topic: orders, rate: 20}}]
  groups:
    - name: static
      members: [{{kind: static, count: 3, instance_id: "static-{{n}}"}}]
{GROUP}
    - name: dynamic
      members: [{{kind: dynamic, count: 3}}]
{GROUP}
faults:
  - {{fault: net.answer-error, target: {{names: [static-0]}}, apis: [HEARTBEAT],
     error: UNKNOWN_MEMBER_ID, count: 1, at: 2s, for: 3s}}
  - {{fault: net.answer-error, target: {{names: [dynamic-dynamic-0]}}, apis: [OFFSET_COMMIT],
     error: ILLEGAL_GENERATION, after: 1, count: 1, at: 2s, for: 5s}}
  - {{fault: net.answer-error, target: {{names: [static-1]}}, apis: [HEARTBEAT],
     error: FENCED_INSTANCE_ID, count: 1, at: 16s, for: 3s}}
  - {{fault: member.unsubscribe, target: {{names: [static-2]}}, at: 6s, for: 4s}}
  - {{fault: member.unsubscribe, target: {{names: [dynamic-dynamic-1]}}, at: 10s, for: 4s}}
phases: {{impact: 24s, recovery: 3s}}
"""


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.spark
def test_neither_broker_nor_client_is_blamed(groupquake: Command, tmp_path: Path) -> None:
    file = tmp_path / "answered-errors.yaml"
    file.write_text(EXPERIMENT)
    done = groupquake("run", file, "--seed", 5, "--runs", tmp_path)
    assert done.code == 0, done.out + done.err
    verdict = json.loads(next(tmp_path.glob("2*/verdict.json")).read_text())
    assert verdict["client_findings"] == []
    assert Counter(one["name"] for one in verdict["faults"] if one["verified"]) == {
        "net.answer-error": 3,
        "member.unsubscribe": 2,
    }
