import subprocess
import sys

import pytest

from tests.loadtest.conftest import ROOT

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "token", "error_line"),
    [
        ((), "", "--control-file needs a token in GROUPQUAKE_CONTROL_TOKEN"),
        (("--static-members", "0", "--dynamic-members", "0"), "t", "no members to run"),
        (
            ("--master", "--master-bind-port", "0", "--control-file", "/nowhere/port.json"),
            "t",
            "--control-file /nowhere/port.json: cannot",
        ),
        (("--experiment", "/nowhere/e.yaml"), "t", "/nowhere/e.yaml"),
        (("Producer",), "t", "no users of the named classes to run"),
    ],
    ids=["no token", "no members", "no folder", "no experiment", "no users"],
)
def test_bad_usage_ends_at_once_with_one_line(locust, arguments, token, error_line):
    child = locust("--headless", "-H", NOWHERE, *arguments, token=token)
    assert child.process.wait(timeout=60) == 64
    assert f"groupquake: {error_line}" in child.output
    assert "Traceback" not in child.output


@pytest.mark.parametrize(
    ("arguments", "error_line"),
    [
        ((), "no cluster to load; name one by -H HOST:PORT"),
        (("--experiment", "demo"), "no cluster to load; name one by -H HOST:PORT"),
        (("-H", NOWHERE), f"no broker answered at {NOWHERE} within 5 s ("),
        (("--bootstrap", NOWHERE), f"no broker answered at {NOWHERE} within 5 s ("),
    ],
)
def test_a_load_without_a_cluster_is_one_line(arguments, error_line):
    command = [*(sys.executable, "-m", "locust", "-f", "loadtest/locustfile.py", "--skip-log")]
    done = subprocess.run(
        [*command, "--headless", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 64
    [said] = done.stderr.splitlines()
    assert said.startswith(f"groupquake: {error_line}")
    assert done.stdout == ""
