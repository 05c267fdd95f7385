"""Gives the groups and topics of an experiment a prefix, as on a cluster that others use, too."""

from collections.abc import Mapping
from typing import Any

from scenarios.experiment import Experiment


def prefixed(experiment: Experiment, prefix: str) -> Experiment:
    """Return the experiment with `prefix` before the name of each group and topic.

    Dynamic members are called by their group, so their names change with it. Names that begin with
    the prefix already stay: those of a file that was written for this cluster.
    """

    def renamed(name: str) -> str:
        return name if name.startswith(prefix) else prefix + name

    workload = experiment.workload
    groups = {name: renamed(name) for name in experiment.group_names}
    topics = {topic.name: renamed(topic.name) for topic in workload.topics}
    document = experiment.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["cluster"]["prefix"] = prefix
    of_workload = document["workload"]
    for topic in of_workload["topics"]:
        topic["name"] = topics[topic["name"]]
    for producer in of_workload["producers"]:
        producer["topic"] = topics[producer["topic"]]
    for group in of_workload["groups"]:
        group["name"] = groups[group["name"]]
        group["topics"] = [topics[name] for name in group["topics"]]
    members = _members(experiment, groups)
    for fault in document["faults"]:
        _rename_fault(fault, groups, topics, members)
    for part in (
        *document["steady_state"].get("probes", ()),
        *document["expect"],
        *document["verdicts"],
    ):
        _rename(part, "group", groups)
    return type(experiment).model_validate(document)


def _members(experiment: Experiment, groups: Mapping[str, str]) -> dict[str, str]:
    """Return the new name of each member: only dynamic ones are called by their group."""
    return {
        member.name: groups[member.group] + member.name.removeprefix(member.group)
        if member.kind == "dynamic"
        else member.name
        for member in experiment.members()
    }


def _rename_fault(
    fault: dict[str, Any],
    groups: Mapping[str, str],
    topics: Mapping[str, str],
    members: Mapping[str, str],
) -> None:
    _rename(fault, "group", groups)
    _rename(fault, "topic", topics)
    _rename(fault.get("when") or {}, "group", groups)
    for key in ("target", "brokers"):
        target = fault.get(key)
        if not isinstance(target, dict):
            continue
        _rename(target, "coordinator-of", groups)
        _rename(target, "leader-member-of", groups)
        if "names" in target:
            target["names"] = [members[name] for name in target["names"]]
        if "partition-leader" in target:
            topic, _, number = target["partition-leader"].rpartition("/")
            target["partition-leader"] = f"{topics[topic]}/{number}"


def _rename(part: dict[str, Any], key: str, names: Mapping[str, str]) -> None:
    if part.get(key) is not None:
        part[key] = names[part[key]]
