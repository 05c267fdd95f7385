"""Commands that show experiments do not import what runs and judges them."""

import json
import pkgutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from groupquake.cli import Lazy, cli

HEAVY = (
    *("confluent_kafka", "docker", "gevent", "jgo", "kafka", "locust", "numpy", "pandas"),
    *("plotly", "psutil", "pyarrow", "pyspark", "requests", "testcontainers"),
)
PROGRAM = """
import json, sys
from groupquake.cli import main
try:
    main(sys.argv[1:])
finally:
    print(json.dumps(list(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["list"],
        ["plan", "demo"],
        ["plan", "--help"],
        ["validate", "demo"],
        ["validate", "--schema"],
    ],
    ids=" ".join,
)
def test_a_light_command_imports_nothing_heavy(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(find_spec(name) for name in HEAVY), "a name that nothing has proves nothing"
    assert set(HEAVY) & set(json.loads(done.stderr)) == set()


@pytest.mark.parametrize("name", cli.commands)
def test_the_line_in_the_help_is_the_first_of_the_command_s_own(name: str) -> None:
    lazy = cli.commands[name]
    assert isinstance(lazy, Lazy)
    command = pkgutil.resolve_name(lazy.place)
    assert command.name == name
    assert command.get_short_help_str(200) == lazy.get_short_help_str(200)
