"""Writes brokers' logs of any size: lines of one group after the other in, logs in order out.

Lines wait in files by broker, process and time, so that memory is bounded by one of them.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

PIECE_BYTES = 48e6
"""About how large a piece is that is sorted at once."""
MOST_WAITING = 4_000_000
DIGITS = 16
HELD_BACK = 0.02
"""The share of lines that stand behind a later one: two threads write at the same time."""
MARK = b"\1"

Piece = tuple[str, int, int]
"""Broker, number of its process, number of the time slice."""


@dataclass
class LogFiles:
    """Collects lines in `scratch`, and merges them into `group.log` of each broker.

    Times are ms since the first start; `epoch_ms` and `clock_ns` are the two clocks then.
    """

    scratch: Path
    slice_ms: float
    epoch_ms: int
    clock_ns: int
    dice: random.Random
    waiting: dict[Piece, list[str]] = field(default_factory=lambda: defaultdict(list))
    characters: int = 0
    written: set[Piece] = field(default_factory=set)

    def add(self, broker: str, process: int, at_ms: float, text: str, mark: str = "") -> None:
        """Take a line; `mark` names it in what `merge` returns."""
        marked = f"\1{mark}\1{text}" if mark else text
        piece = broker, process, int(at_ms / self.slice_ms)
        self.waiting[piece].append(f"{round(at_ms * 1e6):0{DIGITS}}{marked}\n")
        self.characters += len(text)
        if self.characters > MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Append what waits to its pieces."""
        for piece, lines in self.waiting.items():
            with self._path(piece).open("ab") as file:
                file.write("".join(lines).encode())
        self.written |= self.waiting.keys()
        self.waiting.clear()
        self.characters = 0

    def _path(self, piece: Piece) -> Path:
        broker, process, number = piece
        return self.scratch / f"{broker}-{process}-{number}"

    def merge(self, brokers: Path) -> tuple[int, int, dict[str, tuple[str, int]]]:
        """Write the logs; return bytes, lines, and the broker and line number of each mark."""
        self.flush()
        marks: dict[str, tuple[str, int]] = {}
        size = count = 0
        with ExitStack() as logs:
            opened: dict[str, BinaryIO] = {}
            lines_of: dict[str, int] = defaultdict(int)
            serial, process_of = 0, ("", 0)
            for piece in sorted(self.written):
                broker, process, _ = piece
                if broker not in opened:
                    (brokers / broker).mkdir(parents=True)
                    opened[broker] = logs.enter_context((brokers / broker / "group.log").open("wb"))
                if process_of != (broker, process):
                    process_of, serial = (broker, process), 0
                out = []
                for line in self._ordered(piece, serial):
                    out.append(line)
                    if MARK in line:
                        head, mark, text = line.split(MARK)
                        out[-1] = head + text
                        marks[mark.decode()] = broker, lines_of[broker] + len(out)
                serial += len(out)
                lines_of[broker] += len(out)
                size += opened[broker].write(b"".join(out))
            count = sum(lines_of.values())
        return size, count, marks

    def _ordered(self, piece: Piece, serial: int) -> list[bytes]:
        """Return the lines of a piece as they are written, and remove it."""
        path = self._path(piece)
        lines = path.read_bytes().splitlines(keepends=True)
        path.unlink()
        lines.sort()
        numbered = list(self._numbered(lines, serial))
        place, last = 0, len(lines) - 2
        while (place := place + 1 + int(self.dice.expovariate(HELD_BACK))) < last:
            later = int(lines[place + 1][:DIGITS]) - int(lines[place][:DIGITS])
            if later < 400_000 and b"network-thread" in lines[place]:
                numbered[place : place + 2] = numbered[place + 1], numbered[place]
        return numbered

    def _numbered(self, lines: list[bytes], serial: int) -> Iterator[bytes]:
        epoch_ns, clock_ns = self.epoch_ms * 1_000_000, self.clock_ns
        for number, line in enumerate(lines, serial + 1):
            nanos = int(line[:DIGITS])
            yield b"%d %d %d %b" % (
                number, (epoch_ns + nanos) // 1_000_000, clock_ns + nanos, line[DIGITS:],
            )  # fmt: skip
