"""How the lines of a file are written: its first lines in; the form of all of them out."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """How a file writes its lines.

    `name` is what the report calls it; `resolution_ms` is the step of its times. `zone` is the
    offset to UTC that the file itself tells, as `+02:00`, or empty.
    """

    name: str = "Kafka's stock pattern"
    resolution_ms: float = 1.0
    zone: str = ""

    def sentence(self) -> str:
        """Return what the report says of it."""
        return self.name


def recognised(first: Iterable[str], pattern: str = "") -> Form:
    """Return the form of a file by its first lines, or that of a log4j `pattern`."""
    return Form()
