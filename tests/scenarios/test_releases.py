"""Which releases can be run, which coordinator each runs, and with which others it can be run."""

import re
from itertools import pairwise

import pytest

from scenarios import ScenarioError, named
from scenarios.releases import (
    SUPPORTED_LINES,
    default_coordinator,
    line_of,
    require_coordinator,
)


@pytest.mark.parametrize(
    ("version", "default", "others"),
    [
        ("2.4.0", "scala", []),
        ("2.8.1", "scala", []),
        ("3.2.3", "scala", []),
        ("3.7.2", "scala", []),
        ("3.8.1", "scala", ["java"]),
        ("3.9.0", "scala", ["java"]),
        ("3.9.1", "scala", ["java"]),
        ("4.0.0", "java", []),
        ("4.10.0", "java", []),
    ],
)
def test_the_coordinators_of_a_release(version: str, default: str, others: list[str]) -> None:
    assert default_coordinator(version) == default
    for name in (None, default, *others):
        require_coordinator(version, name)
    for name in {"scala", "java", "python"} - {default, *others}:
        with pytest.raises(ValueError, match=f"{version} cannot be run with the {name} group"):
            require_coordinator(version, name)


@pytest.mark.parametrize("version", ["2.3.1", "3.10.0", "3.90.0", "5.0.0"])
def test_any_other_release_is_refused_with_those_that_are_supported(version: str) -> None:
    refusal = f"Kafka {version} is not supported; use 2.4-2.7, 2.8-3.2, 3.3-3.7, 3.8, 3.9 or 4.x"
    with pytest.raises(ValueError, match=f"^{re.escape(refusal)}$"):
        line_of(version)
    with pytest.raises(ScenarioError, match=re.escape(f"cluster.version: {refusal}")):
        named("demo").override([f"cluster.version={version}"])


@pytest.mark.parametrize("version", ["4", "4.3", "4.3.0.1", "4.3.x", "4.3.0-rc1", "unknown", ""])
def test_a_release_has_three_numbers(version: str) -> None:
    refusal = f"'{version}' is not allowed; write a whole release, such as 4.3.0"
    with pytest.raises(ValueError, match=f"^{re.escape(refusal)}$"):
        line_of(version)


def test_lines_do_not_overlap() -> None:
    assert all(line.first < line.end for line in SUPPORTED_LINES)
    ordered = sorted(SUPPORTED_LINES, key=lambda line: line.first)
    assert all(a.end <= b.first for a, b in pairwise(ordered))


def test_classic_alone_leaves_the_scala_coordinator_where_it_is() -> None:
    """Only `consumer` among the protocols starts the other one."""
    key = "cluster.config.group.coordinator.rebalance.protocols"
    changed = named("demo").override(["cluster.version=3.9.1", f"{key}=classic"])
    assert changed.coordinator == "scala"
    both = named("demo").override(
        ["cluster.version=3.9.1", "cluster.coordinator=java", f"{key}='classic,consumer'"]
    )
    assert both.coordinator == "java"
