"""Gives the groups and topics of an experiment a prefix, as on a cluster that others use, too."""

from typing import Any

from scenarios.experiment import Experiment


def prefixed(experiment: Experiment, prefix: str) -> Experiment:
    """Return the experiment with `prefix` before the name of each group and topic.

    Dynamic members are called by their group, so their names change with it. Names that begin with
    the prefix already stay: those of a file that was written for this cluster.
    """

    def renamed(name: str) -> str:
        return name if name.startswith(prefix) else prefix + name

    groups = {name: renamed(name) for name in experiment.group_names}
    topics = {topic.name: renamed(topic.name) for topic in experiment.workload.topics}
    members = {
        member.name: groups[member.group] + member.name.removeprefix(member.group)
        for member in experiment.members()
        if member.kind == "dynamic"
    }
    of_key = {
        **dict.fromkeys(("group", "coordinator-of", "leader-member-of"), groups),
        **dict.fromkeys(("topic", "topics"), topics),
        "names": members,
    }

    def walked(node: Any, key: str = "") -> Any:
        """Return a part of the file, which stands under a key, with the new names."""
        if isinstance(node, dict):
            return {inner: walked(value, inner) for inner, value in node.items()}
        if isinstance(node, list):
            return [walked(item, key) for item in node]
        if key == "partition-leader":
            topic, _, number = node.rpartition("/")
            return f"{topics[topic]}/{number}"
        return of_key.get(key, {}).get(node, node)

    document = walked(experiment.model_dump(mode="json", by_alias=True, exclude_none=True))
    document["cluster"]["prefix"] = prefix
    for part in (*document["workload"]["topics"], *document["workload"]["groups"]):
        part["name"] = renamed(part["name"])
    return type(experiment).model_validate(document)
