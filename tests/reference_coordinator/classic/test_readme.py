"""The theory of operation names modules and functions that exist."""

import re
from importlib import import_module
from pathlib import Path

import reference_coordinator.classic as package

FOLDER = Path(package.__file__).parent
TEXT = (FOLDER / "README.md").read_text("utf-8")


def test_every_function_of_the_table_exists() -> None:
    named = re.findall(r"`([a-z_]+)\.(?!py`)([A-Za-z_]+)`", TEXT)
    assert len(named) > 20
    for module, name in named:
        assert hasattr(import_module(f"{package.__name__}.{module}"), name), f"{module}.{name}"


def test_every_module_is_named() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "step"}
    missing = {name for name in modules if not re.search(rf"\b{name}\b", TEXT)}
    assert missing <= {"heartbeat", "sync_group"}
