"""Whether the history of one worker has come whole: every line has a number, from 1 on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

SHOWN = 5


@dataclass(slots=True)
class Received:
    """The lines that came of one worker's history, and how many it says it wrote."""

    _next: int = 1
    _holes: list[tuple[int, int]] = field(default_factory=list)
    written: int | None = None
    """What the worker says at its end; None before."""

    def take(self, first: int, lines: Sequence[str]) -> Sequence[str]:
        """Take lines numbered from `first` on; return those that did not come before."""
        if first > self._next:
            self._holes.append((self._next, first - 1))
        new = lines[max(0, self._next - first) :]
        self._next = max(self._next, first + len(lines))
        self.written = None
        return new

    @property
    def problem(self) -> str | None:
        """Say what is missing; None if nothing is."""
        came = self._next - 1
        holes = list(self._holes)
        if self.written is not None and self.written > came:
            holes.append((self._next, self.written))
        said = [] if self.written is not None else ["it did not say how many lines it wrote"]
        if holes:
            named = [f"{a}" if a == b else f"{a}-{b}" for a, b in holes[:SHOWN]]
            said.append(
                f"lines {', '.join(named)}{', …' if len(holes) > SHOWN else ''} are missing"
            )
        if self.written is not None and self.written < came:
            said.append(f"{came} lines came and it wrote {self.written}")
        return "; ".join(said) or None
