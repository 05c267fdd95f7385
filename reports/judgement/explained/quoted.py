"""The lines of a broker's log around a finding: a few of its group before it, and after it."""

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reports.judgement.log.log_bytes import unpacked
from reports.judgement.rows import Json

AROUND = 3  # so many lines are quoted before a finding, and after it
LONGEST = 900  # so many characters of a line are shown, of its begin and of its end


@dataclass(slots=True)
class _Wanted:
    """The line of a finding, and those of its group around it, as (number, text)."""

    entry: Json
    group: re.Pattern[bytes]
    before: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=AROUND + 1))
    after: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.after) == AROUND

    def add(self, number: int, line: bytes) -> None:
        """Take the next line of the log."""
        marked = self.entry["log"]["line"]
        if number == marked or (not self.is_full and self.group.search(line)):
            (self.before if number <= marked else self.after).append((number, line))

    def quoted(self) -> list[Json]:
        """Return the lines as `verdict.json` has them."""
        log = self.entry["log"]
        return [
            {"line": number, "text": _cut(line), "marked": number == log["line"]}
            for number, line in (*self.before, *self.after)
        ]


def add_lines(folder: Path, entries: Sequence[Json]) -> None:
    """Add the lines around findings to their entries, where the logs are in a folder."""
    by_file: dict[str, list[_Wanted]] = defaultdict(list)
    for entry in entries:
        if entry["log"]["line"] and (folder / entry["log"]["file"]).is_file():
            name = re.escape(entry["group"].encode())
            group = re.compile(rb"(?<![\w.-])" + name + rb"(?![\w.-])")
            by_file[entry["log"]["file"]].append(_Wanted(entry, group))
    for file, wanted in by_file.items():
        with (folder / file).open("rb") as log:
            for number, line in enumerate(unpacked(log, file), 1):
                for one in wanted:
                    one.add(number, line)
                if all(one.is_full for one in wanted):
                    break
        for one in wanted:
            one.entry["lines"] = one.quoted()


def _cut(line: bytes) -> str:
    text = line.decode(errors="replace").rstrip("\n")
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"
