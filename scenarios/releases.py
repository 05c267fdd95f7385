"""Which Kafka releases can be run and judged, and with which of their group coordinators.

A Kafka up to 3.6 has a Scala coordinator. 3.7 to 3.9 hold two: the Java one (KIP-848) takes the
place of the Scala one with `group.coordinator.new.enable`, or as soon as
`group.coordinator.rebalance.protocols` names `consumer` (KafkaConfig of 3.9.1); in 4.0 it does by
default; 4.1 has no Scala one (KAFKA-18329).
"""

import re
from dataclasses import dataclass
from typing import Literal

from kafka_protocol.releases import number
from scenarios.problems import shown

VERSION = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"
"""How a release is written."""

DEFAULT_RELEASE = "4.3.0"
"""The release where none is named."""

Coordinator = Literal["scala", "java"]


@dataclass(frozen=True, slots=True)
class Line:
    """Releases that are run in the same way: those from `first` on, before `end`.

    `coordinators` are those that they can be run with, the default first.
    """

    name: str
    first: tuple[int, int]
    end: tuple[int, int]
    coordinators: tuple[Coordinator, ...]


SUPPORTED_LINES = (
    Line("2.4-2.7", (2, 4), (2, 8), ("scala",)),
    Line("2.8-3.2", (2, 8), (3, 3), ("scala",)),
    # 3.7 has the Java coordinator too, but an early one that never unloads a group.
    Line("3.3-3.7", (3, 3), (3, 8), ("scala",)),
    Line("3.8", (3, 8), (3, 9), ("scala", "java")),
    Line("3.9", (3, 9), (3, 10), ("scala", "java")),
    # 4.0 has the Scala coordinator still, but its lines are not collected under log4j2.
    Line("4.x", (4, 0), (5, 0), ("java",)),
)
"""All releases that can be run; `chaos.clusters.releases` has how, in a row of the same name."""


def line_of(version: str) -> Line:
    """Return the line of a release such as `3.9.1`. Raises ValueError if it cannot be run."""
    if not re.fullmatch(VERSION, version):
        raise ValueError(f"{shown(version)} is not allowed; write a whole release, such as 4.3.0")
    minor = number(version)[:2]
    line = next((line for line in SUPPORTED_LINES if line.first <= minor < line.end), None)
    if line is None:
        *others, last = (line.name for line in SUPPORTED_LINES)
        known = f"{', '.join(others)} or {last}"
        raise ValueError(f"Kafka {version} is not supported; use {known}")
    return line


def default_coordinator(version: str) -> Coordinator:
    """Return the default coordinator of a release. Raises as `line_of`."""
    return line_of(version).coordinators[0]


def require_coordinator(version: str, name: str | None) -> None:
    """Raise ValueError if a release cannot be run at all, or not with the coordinator named."""
    line = line_of(version)
    if name not in (None, *line.coordinators):
        raise ValueError(
            f"Kafka {version} cannot be run with the {name} group coordinator;"
            f" write {' or '.join(line.coordinators)}"
        )
