"""Commands that show experiments do not import what runs and judges them."""

import json
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from groupquake.cli import Lazy, cli

HEAVY = (
    *("confluent_kafka", "docker", "gevent", "jgo", "kafka", "locust", "numpy", "pandas"),
    *("psutil", "pyarrow", "pyspark", "requests", "testcontainers"),
)
PROGRAM = """
import json, sys
from groupquake.cli import main
try:
    main(sys.argv[1:])
finally:
    print(json.dumps(list(sys.modules)), file=sys.stderr)
"""


LOG = Path(__file__).parents[1] / "recorded" / "incidents" / "03.log"
OF_LOGS = {"numpy", "psutil", "pyarrow"}
"""What a report of small logs needs."""
LIGHT = (
    *(
        "--help",
        "--version",
        "list",
        "show demo",
        "plan demo",
        "validate demo",
        "validate --schema",
    ),
    *("open pyproject.toml", "new --help"),
)


def imported_by(words: list[str], code: int = 0) -> set[str]:
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_a_light_command_imports_nothing_heavy() -> None:
    assert all(find_spec(name) for name in HEAVY), "a name that nothing has proves nothing"
    for words in LIGHT:
        assert set(HEAVY) & imported_by(words.split()) == set(), words


def test_a_report_of_small_logs_imports_neither_spark_nor_models(tmp_path: Path) -> None:
    """The models of experiments, and pydantic for them, would take 0.7 s of its three."""
    imported = imported_by(["report", str(LOG), "--output", str(tmp_path / "out")], code=2)
    assert {*HEAVY, "pydantic", "scenarios.experiment"} & imported <= OF_LOGS


def test_the_line_in_the_help_is_the_first_of_the_command_s_own() -> None:
    for name, lazy in cli.commands.items():
        assert isinstance(lazy, Lazy)
        command = pkgutil.resolve_name(lazy.place)
        assert command.name == name
        assert command.get_short_help_str(200) == lazy.get_short_help_str(200)


WORKERS = """
import sys
import reports.incident.group_incident, reports.judgement.buckets, reports.judgement.group
import chaos.tap.process, loadtest.wire_scripts
assert "pandas" not in sys.modules
"""


def test_what_runs_in_workers_does_not_import_pandas() -> None:
    """It takes 0.4 s in each of them."""
    subprocess.run([sys.executable, "-c", WORKERS], check=True)
