"""Alters recorded logs in one place, as an editor would: serial numbers stay in order."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SERIAL = re.compile(r"^\d+ ")


@dataclass
class Log:
    """One broker's group.log as lines."""

    path: Path
    lines: list[str]

    @classmethod
    def of(cls, folder: Path, group: str) -> "Log":
        """Open the log of the broker that coordinates a group."""
        for path in sorted(folder.glob("brokers/*/group.log")):
            lines = path.read_text().splitlines()
            if any(f"Stabilized group {group} " in line for line in lines):
                return cls(path, lines)
        raise LookupError(group)

    def find(self, *parts: str, nth: int = 0) -> int:
        """Find the nth line that holds all parts; returns its index."""
        found = [i for i, line in enumerate(self.lines) if all(part in line for part in parts)]
        return found[nth]

    def change(self, index: int, old: str, new: str) -> int:
        """Replace text of one line; returns its line number."""
        assert self.lines[index].count(old) == 1, self.lines[index]
        self.lines[index] = self.lines[index].replace(old, new)
        return index + 1

    def insert_after(self, index: int, change: Callable[[str], str]) -> int:
        """Insert a line made from the one at an index, at its time; returns its line number."""
        self.lines.insert(index + 1, change(self.lines[index]))
        return index + 2

    def save(self, *, renumber: bool = True) -> None:
        """Write the log back, by default with serial numbers that show no gap."""
        if renumber:
            # Lines stand almost in serial order: a number follows its line's place in that order.
            order = sorted(range(len(self.lines)), key=self._serial)
            for serial, index in enumerate(order, 1):
                self.lines[index] = SERIAL.sub(f"{serial} ", self.lines[index])
        self.path.write_text("\n".join(self.lines) + "\n")

    def _serial(self, index: int) -> float:
        return int(self.lines[index].split(" ", 1)[0])
