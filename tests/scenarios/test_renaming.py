import yaml

from scenarios import Experiment, named, names
from scenarios.renaming import prefixed

TARGETS = """
name: targets
cluster: {kind: external, bootstrap: "b:1"}
workload:
  topics: [{name: t, partitions: 2}]
  groups:
    - name: g
      topics: [t]
      members:
        - {kind: static, count: 1, instance_id: g-static}
        - {kind: dynamic, count: 1}
steady_state: {probes: [{name: in, probe: group.members, group: g, tolerance: 2}]}
faults:
  - {fault: member.restart, target: {names: [g-static, g-dynamic-0]}, at: 1s, down_for: 9s,
     when: {group: g, state: Stable}}
  - {fault: broker.kill, target: {partition-leader: t/1}, at: 1s, down_for: 9s}
phases: {impact: 5s, recovery: 0s}
"""


def test_every_experiment_of_the_library_can_be_renamed() -> None:
    """All names are found: what refers to a group, topic or member would be refused otherwise."""
    external = ["cluster.kind=external", "cluster.bootstrap=b:1"]
    for name in names():
        experiment = named(name)
        if experiment.workload.wire_scripts:
            continue
        renamed = prefixed(experiment.override(external), "mine-")
        assert all(group.startswith("mine-") for group in renamed.group_names)
        assert all(topic.name.startswith("mine-") for topic in renamed.workload.topics)
        assert len(renamed.members()) == len(experiment.members())
        assert prefixed(renamed, "mine-") == renamed


def test_targets_follow_their_groups_members_and_topics() -> None:
    experiment = Experiment.model_validate(yaml.safe_load(TARGETS))
    first, second = prefixed(experiment, "p-").model_dump(by_alias=True)["faults"]
    assert first["target"]["names"] == ("g-static", "p-g-dynamic-0")
    assert first["when"]["group"] == "p-g"
    assert second["target"]["partition-leader"] == "p-t/1"
