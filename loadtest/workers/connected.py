"""A worker as its master knows it: when it was heard of, and what came of its history."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf

from kafka_protocol.printable import shortened
from loadtest.configs import ClientConfig
from loadtest.errors import WorkerGoneError
from loadtest.history import now_ms
from loadtest.timing import CLOCK_MS

SHOWN = 5
"""How many holes of a history are named."""


@dataclass(slots=True)
class ConnectedWorker:
    """A worker that connected."""

    name: str
    heard_ms: float = field(default_factory=now_ms)
    """When it was last heard of."""
    looks: int = 0
    """How often the master looked since then. A master that was late itself looked once."""
    lost_ms: float | None = None
    """When the master lost it, which is final; None before."""
    took: bool = False
    """Whether it ever asked for a client."""
    left: bool = False
    """Whether it ended by itself, with all its members closed."""
    written: int | None = None
    """How many lines of history it says at its end that it wrote; None before."""
    _next: int = 1
    """The number of the line of its history that comes next."""
    _holes: list[tuple[int, int]] = field(default_factory=list)
    _behind_ms: float = inf
    """How long its fastest message took, by the two clocks: negative if its clock is ahead."""

    @property
    def goes_on(self) -> bool:
        """Whether more of its history will come."""
        return self.took and self.lost_ms is None and self.written is None

    def take(self, first: int, lines: Sequence[str], sent_ms: float) -> Sequence[str]:
        """Take lines of its history, numbered from `first` on; return those that did not come yet.

        `sent_ms` is when it sent them, by its clock.
        """
        self._behind_ms = min(self._behind_ms, self.heard_ms - sent_ms)
        if first > self._next:
            self._holes.append((self._next, first - 1))
        new = lines[max(0, self._next - first) :]
        self._next = max(self._next, first + len(lines))
        self.written = None
        return new

    def problems(self, had: Iterable[ClientConfig]) -> Iterator[str]:
        """Say what is missing of it, if it took part; `had` are the clients that it has."""
        if not self.took:
            return
        if self.left:
            at = _utc(self.lost_ms)
            yield f"{self.name} ended at {at}, before the load; it closed its members"
        elif self.lost_ms is not None:
            clients = shortened([client.name for client in had]) or "no client"
            yield (
                f"{self.name} was lost at {_utc(self.lost_ms)}, last heard of at"
                f" {_utc(self.heard_ms)}, with {clients}"
            )
        if missing := "; ".join(self._missing_lines()):
            yield f"the history of {self.name} is not whole: {missing}"
        if CLOCK_MS < abs(self._behind_ms) < inf:
            how = "behind" if self._behind_ms > 0 else "ahead of"
            off = f"{abs(self._behind_ms):.0f} ms"
            yield f"the clock of {self.name} seems {off} {how} the master's"

    def _missing_lines(self) -> Iterator[str]:
        came, holes = self._next - 1, list(self._holes)
        if self.written is None:
            yield "it did not say how many lines it wrote"
        elif self.written > came:
            holes.append((self._next, self.written))
        elif self.written < came:
            yield f"{came} lines came and it wrote {self.written}"
        if holes:
            named = [f"{a}" if a == b else f"{a}-{b}" for a, b in holes[:SHOWN]]
            yield f"lines {', '.join(named)}{', …' if len(holes) > SHOWN else ''} are missing"

    def gone(self) -> WorkerGoneError:
        """Return the error of a command for one of its members, once it is lost."""
        return WorkerGoneError(f"{self.name} is gone since {_utc(self.lost_ms)}, and its members")


def _utc(at_ms: float | None) -> str:
    """Return the time of day, to the millisecond."""
    assert at_ms is not None, "it was lost"
    at = datetime.fromtimestamp(at_ms / 1000, UTC).time()
    return f"{at.isoformat('milliseconds')} UTC"
