"""Client errors in the history: the first of a kind at once, then at most one line a second."""

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaError

QUIET_MS = 1_000.0
"""How long further errors of a kind are only counted after a line.

Hundreds of clients report errors for as long as they reach no broker. One line a second still
shows when that began and ended.
"""


@dataclass(slots=True)
class _LastLine:
    at_ms: float
    left_out: int = 0


class ClientErrors:
    """Writes one client's errors by `write`, which adds the identity of the client."""

    def __init__(self, write: Callable[..., None]) -> None:
        self._write = write
        self._last_lines: dict[str, _LastLine] = {}

    def add(self, error: KafkaError, at_ms: float, about: str = "") -> None:
        """Write an `error` line, unless the last line of its kind is newer than `QUIET_MS`.

        Kafka's error name and `about`, such as `commit: `, make the kind. `left_out` in a line
        counts the errors of the kind that were not written since the line before.
        """
        kind = about + error.name()
        self.add_text(kind, about + error.str(), at_ms)

    def add_text(self, kind: str, text: str, at_ms: float) -> None:
        """Write an error of a kind as `add` does."""
        last = self._last_lines.get(kind)
        if last is not None and at_ms - last.at_ms < QUIET_MS:
            last.left_out += 1
            return
        more = {"left_out": last.left_out} if last is not None and last.left_out else {}
        self._write("error", at_ms=at_ms, error=text, **more)
        self._last_lines[kind] = _LastLine(at_ms)
