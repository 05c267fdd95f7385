"""The manifest for Locust's operator fits its resource, and Locust takes what it says."""

import copy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

MANIFEST = Path(__file__).parents[2] / "docs" / "kubernetes" / "load.yaml"
_NAMED = {"type": "object", "additionalProperties": {"type": "string"}}
_POD = {
    "type": "object",
    "properties": {
        "labels": _NAMED,
        "annotations": _NAMED,
        "resources": {
            "type": "object",
            "properties": {"requests": {"type": "object"}, "limits": {"type": "object"}},
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
LOCUST_TEST = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "locust.io/v1"},
        "kind": {"const": "LocustTest"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "required": ["workers"],
            "properties": {
                "annotations": _NAMED,
                "labels": _NAMED,
                "image": {"type": "string"},
                "imagePullPolicy": {"enum": ["IfNotPresent", "Always", "Never"]},
                "imagePullSecrets": {"type": "array"},
                "workers": {"type": "integer", "minimum": 1},
                "args": {"type": "string"},
                "env": {"type": "array", "items": {"type": "object", "required": ["name"]}},
                "master": _POD,
                "worker": _POD,
                "locustfile": {
                    "type": "object",
                    "properties": {"content": {"type": "string"}, "configMap": {"type": "object"}},
                    "oneOf": [{"required": ["content"]}, {"required": ["configMap"]}],
                },
                "metrics": {"type": "object"},
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
"""The fields of the resource, and no others: `charts/locust-operator/crds/locusttest.yaml` of
locustio/k8s-operator, commit 6b50cadef8314376c038067982551f7263859b41."""


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(MANIFEST.read_text("utf-8"))
    return loaded


def test_the_manifest_fits_the_resource(manifest: dict[str, Any]) -> None:
    jsonschema.validate(manifest, LOCUST_TEST)
    for wrong in ({"workers": 0}, {"arguments": ""}, {"locustfile": {}}):
        changed = copy.deepcopy(manifest)
        changed["spec"] |= wrong
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(changed, LOCUST_TEST)


def locust(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "locust", "-f", str(file), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_locust_takes_its_locustfile_and_arguments(
    manifest: dict[str, Any], tmp_path: Path
) -> None:
    """Locust reads all arguments before it lists the users."""
    file = tmp_path / "locustfile.py"
    file.write_text(manifest["spec"]["locustfile"]["content"])
    arguments = shlex.split(manifest["spec"]["args"])
    done = locust(file, *arguments, "--list")
    assert done.returncode == 0, done.stderr
    assert "StaticMember" in done.stdout
    assert locust(file, *arguments, "--static-membres", "3", "--list").returncode != 0
