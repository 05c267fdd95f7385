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
LOCUST_TEST = yaml.safe_load("""
type: object
required: [apiVersion, kind, metadata, spec]
additionalProperties: false
properties:
  apiVersion: {const: locust.io/v1}
  kind: {const: LocustTest}
  metadata: {type: object, required: [name]}
  spec:
    type: object
    required: [workers]
    additionalProperties: false
    properties:
      annotations: &named {type: object, additionalProperties: {type: string}}
      labels: *named
      image: {type: string}
      imagePullPolicy: {enum: [IfNotPresent, Always, Never]}
      imagePullSecrets: {type: array}
      workers: {type: integer, minimum: 1}
      args: {type: string}
      env: {type: array, items: {type: object, required: [name]}}
      master: &pod
        type: object
        additionalProperties: false
        properties:
          labels: *named
          annotations: *named
          resources:
            type: object
            additionalProperties: false
            properties: {requests: {type: object}, limits: {type: object}}
      worker: *pod
      locustfile:
        type: object
        properties: {content: {type: string}, configMap: {type: object}}
        oneOf: [{required: [content]}, {required: [configMap]}]
      metrics: {type: object}
""")
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


@pytest.mark.parametrize(("more", "fine"), [([], True), (["--static-membres", "3"], False)])
def test_locust_takes_its_locustfile_and_arguments(
    manifest: dict[str, Any], tmp_path: Path, more: list[str], *, fine: bool
) -> None:
    """Locust reads all arguments before it lists the users."""
    file = tmp_path / "locustfile.py"
    file.write_text(manifest["spec"]["locustfile"]["content"])
    arguments = [*shlex.split(manifest["spec"]["args"]), *more, "--list"]
    command = [sys.executable, "-m", "locust", "-f", str(file), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode == 0) == fine, done.stderr
    assert ("StaticMember" in done.stdout) == fine
