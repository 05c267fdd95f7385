"""How errors come into the history: the first of a kind at once, then one line a second."""

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaError

QUIET_MS = 1_000.0
"""How long a line about one kind of error stands for the like of it.

A client without brokers complains for as long as they are gone, and there may be hundreds of
clients; one line a second still tells when it began and when it was over.
"""


@dataclass(slots=True)
class _Told:
    at_ms: float
    left_out: int = 0


class ClientErrors:
    """Writes one client's errors. `write` is its history's, and knows who the client is."""

    def __init__(self, write: Callable[..., None]) -> None:
        self._write = write
        self._told: dict[str, _Told] = {}

    def add(self, error: KafkaError, at_ms: float, about: str = "") -> None:
        """Write an `error` line, unless one has told of the like less than `QUIET_MS` before.

        Errors are alike if they have Kafka's name for them and `about`, such as `commit: `, in
        common. `left_out` in a line counts those passed over since the last line.
        """
        kind = about + error.name()
        last = self._told.get(kind)
        if last is not None and at_ms - last.at_ms < QUIET_MS:
            last.left_out += 1
            return
        more = {"left_out": last.left_out} if last is not None and last.left_out else {}
        self._write("error", at_ms=at_ms, error=about + error.str(), **more)
        self._told[kind] = _Told(at_ms)
