"""Coordinators that break a rule, served: the comparison of their logs tells each from Kafka's."""

import json
import time

import pytest

from chaos.plan import make_plan
from groupquake import folders
from loadtest.wire_scripts.__main__ import run_scripts
from reference_coordinator.classic.step import step
from reports.judgement.recording import Recording
from scenarios import find
from selftest.broken_rules import BROKEN_RULES
from selftest.mutants.judging import fails
from tests.reference_coordinator.server.serving import serving

EXPERIMENT = "protocol-corners"
BROKEN = (
    "does_not_fence_syncs", "does_not_fence_commits", "does_not_fence_joins",
    "does_not_tell_returning_leader", "does_not_fence_leaves", "accepts_unknown_members_heartbeat",
    "calls_the_replaced_unknown", "has_no_max_size", "counts_one_too_many", "gives_no_id_first",
)  # fmt: skip


def judged(folder, group, coordinator):
    """Play the script of a group against a served coordinator; whether its log is proven wrong."""
    experiment = find(EXPERIMENT)
    plan, unsampled = make_plan(experiment, 1), {"machine_samples": None}
    run = folders.create(folder, experiment, plan, "oracle", ["groupquake"], unsampled)
    begun_ms = int(time.time() * 1000)
    with serving(run / "brokers", config=experiment.cluster.config, coordinator=coordinator) as at:
        errors = run_scripts([group], at.ports, seed=1)
    phases = ("formation", "impact", "recovery", "teardown", "end")
    entries = [{"at_ms": begun_ms - 10 + n, "event": "phase", "phase": phase}
               for n, phase in enumerate(phases)]  # fmt: skip
    entries[-1]["at_ms"] = int(time.time() * 1000) + 10
    (run / "journal.jsonl").write_text("".join(json.dumps(one) + "\n" for one in entries))
    recording = Recording(run)
    assert any(line.group == group and line.request for line in recording.lines)
    return fails(recording, group), errors


@pytest.mark.parametrize("group", sorted({BROKEN_RULES[name].group for name in BROKEN}))
def test_kafka_s_own_rules_are_not_found_wrong(group, tmp_path):
    wrong, errors = judged(tmp_path, group, step)
    assert not errors
    assert not wrong


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_found(name, tmp_path):
    assert BROKEN_RULES[name].experiment == EXPERIMENT
    wrong, _ = judged(tmp_path, BROKEN_RULES[name].group, BROKEN_RULES[name].broken)
    assert wrong
