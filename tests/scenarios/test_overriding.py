from typing import get_args

import pytest

from scenarios import Experiment, ScenarioError, named
from scenarios.model import Judge

JUDGES = ", ".join(get_args(Judge))


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return named("rolling-bounce")


def refused(experiment: Experiment, *assignments: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        experiment.override(assignments)
    return str(caught.value).splitlines()


def test_keys_indices_and_yaml_values(experiment: Experiment) -> None:
    changed = experiment.override(
        [
            "workload.groups.0.session_timeout=8s",
            "tags=[a, b=c]",
            "expect.0.rebalances=1",
            "expect.1.rebalances.max=20",
            "faults.0.allow_empty=true",
            "expect.1.reason=leave",
            "cluster.version=3.9.1",
            "cluster.config.group.initial.rebalance.delay.ms=0",
            "cluster.config.auto.create.topics.enable=false",
        ]
    )
    assert changed.workload.groups[0].session_timeout_ms == 8_000
    assert changed.tags == ("a", "b=c")
    assert [(e.rebalances.min, e.rebalances.max) for e in changed.expect] == [(1, 1), (12, 20)]
    assert changed.faults[0].allow_empty
    assert changed.expect[1].reason == "leave"
    assert changed.cluster.version == "3.9.1"
    assert changed.cluster.config == {
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 6,
        "auto.create.topics.enable": False,
    }
    assert changed.workload.topics == experiment.workload.topics


def test_the_original_is_unchanged_and_the_last_assignment_counts(experiment: Experiment) -> None:
    assert experiment.override([]) == experiment
    assert experiment.override(["phases.impact=1m", "phases.impact=2m"]).phases.impact_ms == 120_000
    assert experiment.phases.impact_ms == 45_000


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("phases.impact", "not KEY=VALUE; write phases.impact=30s, for example"),
        ("=3", "not KEY=VALUE; write phases.impact=30s, for example"),
        ("phases.impact=30", "phases.impact: 30 has no unit; write 30s for seconds or 30ms"),
        ("phases.impakt=3s", "phases.impakt: unknown key; did you mean 'impact'?"),
        ("worklod.groups.0.assignor=range", "worklod: unknown key; did you mean 'workload'?"),
        ("workload.groups.2.assignor=range",
         "workload.groups has no item '2'; it has 2, counted from 0"),
        ("workload.groups.static.assignor=range",
         "workload.groups has no item 'static'; it has 2, counted from 0"),
        ("workload.groups.-1={}", "workload.groups has no item '-1'; it has 2, counted from 0"),
        ("name.x=1", "name is 'rolling-bounce', with nothing inside; leave out '.x'"),
        ("judge=", f"judge: nothing is not known; choose from {JUDGES}"),
        ("name=a: b: c",
         "the value is not valid YAML (mapping values are not allowed here); put it in quotes"),
        ("phases={impact: 3s, impact: 4s, recovery: 0s}",
         "impact: also on line 1; remove one of the two"),
        ("expect.1.rebalances.max=3",
         "expect.1.rebalances: no number is from 12 to 3; swap min and max"),
    ],
)  # fmt: skip
def test_refused_in_one_line_that_names_it(
    experiment: Experiment, assignment: str, message: str
) -> None:
    assert refused(experiment, assignment) == [f"--set {assignment}: {message}"]


def test_each_problem_names_the_assignments_that_caused_it_or_all(experiment: Experiment) -> None:
    assert refused(experiment, "a", "b", "tags=[]") == [
        "--set a: not KEY=VALUE; write phases.impact=30s, for example",
        "--set b: not KEY=VALUE; write phases.impact=30s, for example",
    ]
    assert refused(experiment, "judge=x", "phases.recovery=1") == [
        f"--set judge=x: judge: 'x' is not known; choose from {JUDGES}",
        "--set phases.recovery=1: phases.recovery: 1 has no unit; write 1s for seconds or 1ms",
    ]
    [line] = refused(experiment, "cluster.brokers=1", "tags=[]")
    assert line.startswith(
        "--set cluster.brokers=1 --set tags=[]: workload.topics.0.replication_factor: 3 replicas"
    )
