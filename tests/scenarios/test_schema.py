import json
import re
from collections.abc import Iterator
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from scenarios import Experiment, json_schema


def every(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for inside in node.values():
            yield from every(inside)
    elif isinstance(node, list):
        for inside in node:
            yield from every(inside)


def test_it_is_json_and_names_its_dialect() -> None:
    assert json.loads(json.dumps(json_schema())) == json_schema()
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_unknown_keys_are_refused_everywhere() -> None:
    parts = [node for node in every(json_schema()) if node.get("type") == "object"]
    assert len(parts) > 15
    assert all(node["additionalProperties"] is False for node in parts)
    free = [node["description"] for node in parts if "patternProperties" in node]
    assert free == [
        "Broker properties, by Kafka's names.",
        "Their values by name; an empty text for the default.",
    ]


def test_durations_are_text_with_a_unit() -> None:
    timeout = json_schema()["$defs"]["Group"]["properties"]["session_timeout"]
    assert (timeout["type"], timeout["default"]) == ("string", "45s")
    for text, fine in {"10s": True, "500ms": True, "2m": True, "10": False, "0s": False}.items():
        assert (re.search(timeout["pattern"], text) is not None) == fine
    assert re.search(json_schema()["$defs"]["MemberRestart"]["properties"]["at"]["pattern"], "0s")


def test_the_library_fits(library: dict[str, Experiment]) -> None:
    schema = Draft202012Validator(json_schema())
    for experiment in library.values():
        document = yaml.safe_load(experiment.dump())
        assert schema.is_valid(document)
        assert not schema.is_valid(document | {"extra": 1})
        for fault in document["faults"]:  # none where faults come by hand
            assert not schema.is_valid(document | {"faults": [fault | {"at": 3}]})
