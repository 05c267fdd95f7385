"""A fault that has no acting half, or a declaration that lacks something, is a type error."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import chaos.faults
from scenarios.faults import KINDS, SerialFault

ROOT = Path(__file__).parents[3]
LIST = Path(chaos.faults.__file__).read_text()
CASES = re.findall(r"        case (\w+)\(\):\n            return .*\n", LIST)

LACKING = """
from typing import Literal
from scenarios.faults import SingleFault
from scenarios.faults.declaration import FaultPart

class FanFailure(FaultPart):
    fault: Literal["fan.failure"]

def names(fault: SingleFault | FanFailure) -> object:
    return fault.about, fault.planned(), fault.checks
"""


@pytest.fixture(scope="module")
def type_errors(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says of the list without one fault each, and of a fault that declares nothing."""
    folder = tmp_path_factory.mktemp("lists")
    for name in CASES:
        forgotten, count = re.subn(rf"        case {name}\(\):\n            return .*\n", "", LIST)
        assert count == 1
        (folder / f"without_{name}.py").write_text(forgotten)
    (folder / "lacking.py").write_text(LACKING)
    (folder / "whole.py").write_text(LIST)
    config = [
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
    ]
    command = [sys.executable, "-m", "mypy", *config, *map(str, sorted(folder.glob("*.py")))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def test_mypy_reports_each_fault_that_the_list_forgets(type_errors: list[str]) -> None:
    series = get_args(SerialFault)
    assert len(CASES) == len(KINDS) - len(series), "a series becomes restarts in the plan"
    for name in CASES:
        [line] = [line for line in type_errors if f"without_{name}.py:" in line]
        assert f'Argument 1 to "assert_never" has incompatible type "{name}"' in line
    assert not any("whole.py" in line for line in type_errors)


def test_mypy_reports_what_a_declaration_lacks(type_errors: list[str]) -> None:
    lacking = [line for line in type_errors if "lacking.py:" in line]
    for attribute in ("about", "planned", "checks"):
        assert any(
            '"FanFailure"' in line and f'has no attribute "{attribute}"' in line for line in lacking
        )
