import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from scenarios import Experiment, json_schema

TYPES = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
    "boolean": bool, "null": type(None),
}  # fmt: skip


def every(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for inside in node.values():
            yield from every(inside)
    elif isinstance(node, list):
        for inside in node:
            yield from every(inside)


def fits(node: dict[str, Any], value: Any, defs: dict[str, Any]) -> bool:
    """Judge a value by as much of JSON Schema as ours uses."""
    if "$ref" in node:
        return fits(defs[node["$ref"].removeprefix("#/$defs/")], value, defs)
    for combined in ("oneOf", "anyOf"):
        if combined in node:
            hits = sum(fits(option, value, defs) for option in node[combined])
            return hits == 1 if combined == "oneOf" else hits > 0
    if not isinstance(value, TYPES[node["type"]]):
        return False
    if isinstance(value, dict):
        [(named_like, others)] = node.get("patternProperties", {"$^": None}).items()
        known = node.get("properties", {})
        inside = [
            (key in known and fits(known[key], value[key], defs))
            or (bool(re.search(named_like, key)) and fits(others, value[key], defs))
            for key in value
        ]
        return all(inside) and set(node.get("required", [])) <= set(value)
    if isinstance(value, list):
        enough = len(value) >= node.get("minItems", 0)
        return enough and all(fits(node["items"], item, defs) for item in value)
    if isinstance(value, str):
        allowed = node.get("enum", [node.get("const", value)])
        return value in allowed and re.search(node.get("pattern", ""), value) is not None
    return bool(node.get("minimum", value) <= value <= node.get("maximum", value))


def test_it_is_json_and_names_its_dialect() -> None:
    assert json.loads(json.dumps(json_schema())) == json_schema()
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_unknown_keys_are_refused_everywhere() -> None:
    parts = [node for node in every(json_schema()) if node.get("type") == "object"]
    assert len(parts) > 15
    assert all(node["additionalProperties"] is False for node in parts)
    free = [node["description"] for node in parts if "patternProperties" in node]
    assert free == ["Broker properties, by Kafka's names."]


def test_the_documented_keys() -> None:
    schema = json_schema()
    defs = schema["$defs"]
    assert list(schema["properties"]) == [
        "name", "description", "tags", "judge", "cluster", "workload", "steady_state", "faults",
        "phases", "expect", "verdicts",
    ]  # fmt: skip
    for part, keys in {
        "Cluster": "kind bootstrap client_properties logs prefix hooks brokers broker_ids "
        "version coordinator heap_mb config",
        "Topic": "name partitions replication_factor",
        "Producer": "topic rate",
        "Group": "name topics assignor session_timeout heartbeat_interval max_poll_interval "
        "commit_interval metadata_max_age members",
        "StaticMembers": "client kind count instance_id",
        "DynamicMembers": "client kind count",
        "SteadyState": "within probes",
        "GroupMembersProbe": "name probe group tolerance",
        "MemberRestart": "fault at every repeat when target group allow_empty down_for becomes",
        "GroupBounce": "fault at every repeat when target group allow_empty down_for at_once"
        " becomes",
        "MemberKill": "fault at every repeat when target group allow_empty down_for",
        "DuplicateInstance": "fault at every repeat when target group allow_empty lasts",
        "RemoveMembers": "fault at every repeat when group instances",
        "AddPartitions": "fault at every repeat when topic to",
        "BrokerKill": "fault at every repeat when target down_for",
        "BrokerStop": "fault at every repeat when target down_for",
        "BrokerPause": "fault at every repeat when target down_for",
        "BrokerRestart": "fault at every repeat when target",
        "CoordinatorMove": "fault at every repeat when group to",
        "DiskFull": "fault at every repeat when target down_for",
        "ClockSkew": "fault at every repeat when target by lasts",
        "DiskSlow": "fault at every repeat when target lasts stall period",
        "MemberPause": "fault at every repeat when target group allow_empty down_for",
        "MemberSlowPoll": "fault at every repeat when target group allow_empty lasts",
        "MembersScale": "fault at every repeat when group to lasts",
        "NetDropAnswers": "fault at every repeat when target group allow_empty for brokers apis "
        "count probability then",
        "NetPartition": "fault at every repeat when target group allow_empty for brokers way",
        "RollingRestart": "fault at every repeat when down_for",
        "SwapInstance": "fault at every repeat when members lasts",
        "TopicDelete": "fault at every repeat when topic",
        "When": "group state members within",
        "Command": "command",
        "Logs": "folder command",
        "Static": "instance_id",
        "LeaderMemberOf": "leader-member-of",
        "Names": "names",
        "CoordinatorOf": "coordinator-of",
        "PartitionLeader": "partition-leader",
        "Brokers": "brokers",
        "Phases": "impact recovery",
        "Expectation": "group phase reason rebalances",
        "Ownership": "group unowned",
        "Range": "min max",
    }.items():
        assert list(defs[part]["properties"]) == keys.split()


def test_durations_are_text_with_a_unit() -> None:
    timeout = json_schema()["$defs"]["Group"]["properties"]["session_timeout"]
    assert (timeout["type"], timeout["default"]) == ("string", "45s")
    for text, fine in {"10s": True, "500ms": True, "2m": True, "10": False, "0s": False}.items():
        assert (re.search(timeout["pattern"], text) is not None) == fine
    assert re.search(json_schema()["$defs"]["MemberRestart"]["properties"]["at"]["pattern"], "0s")


def test_the_library_fits(library: dict[str, Experiment]) -> None:
    schema = json_schema()
    for experiment in library.values():
        document = yaml.safe_load(experiment.dump())
        assert fits(schema, document, schema["$defs"])
        assert not fits(schema, document | {"extra": 1}, schema["$defs"])
        document["faults"][0]["at"] = 3
        assert not fits(schema, document, schema["$defs"])
