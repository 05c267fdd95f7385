"""Alters recorded evidence in one place, as an editor would."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reports.judgement.group import check_rows
from reports.judgement.recording import Recording, Row
from reports.judgement.run_context import RunContext
from selftest.mutants.log_synthesis import SynthesizedLine

Json = dict[str, Any]

TIMES = ("arrived_ms", "earliest_ms", "at_ms", "latest_ms", "answered_ms", "logged_ms")
"""The columns of a request's times; a coordinator line has `at_ms` alone."""


@dataclass
class Copy:
    """The recorded lines of one group under another name, to be altered."""

    group: str
    name: str
    lines: list[SynthesizedLine]

    @classmethod
    def of(cls, recording: Recording, group: str, name: str) -> "Copy":
        """Copy every line that names the group, word by word."""
        named = re.compile(rf'(group |Group |GroupId=|"groupId":"){group}(?=[ "\].])')
        connection = re.compile(r'("connection":"[^"]+)"')
        copied = []
        for line in recording.lines:
            if named.search(line.text):
                text = connection.sub(rf'\1-{name}"', named.sub(rf"\1{name}", line.text))
                copied.append(SynthesizedLine(line.broker, line.process, line.at_ms, text))
        return cls(group, name, copied)

    def find(self, *parts: str, nth: int = 0, after: int = -1) -> int:
        """Find the nth line that holds all parts; returns its index."""
        found = [i for i, line in enumerate(self.lines) if all(part in line.text for part in parts)]
        return [i for i in found if i > after][nth]

    def change(self, index: int, old: str, new: str) -> SynthesizedLine:
        """Replace text of one line; returns the line."""
        line = self.lines[index]
        assert line.text.count(old) == 1, line.text
        self.lines[index] = replace(line, text=line.text.replace(old, new))
        return self.lines[index]

    def insert_after(self, index: int, text: str) -> SynthesizedLine:
        """Insert a line at the time of the one at an index; returns it."""
        self.lines.insert(index + 1, replace(self.lines[index], text=text))
        return self.lines[index + 1]

    def drop(self, index: int) -> SynthesizedLine:
        """Take a line out; returns the one that stands in its place."""
        del self.lines[index]
        return self.lines[index]


@dataclass
class Log:
    """One broker's group.log as lines, altered as it stands: its numbers show what was done."""

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

    @property
    def name(self) -> str:
        """The file's name as a verdict has it."""
        return f"brokers/{self.path.parent.name}/group.log"

    def find(self, *parts: str, nth: int = 0) -> int:
        """Find the nth line that holds all parts; returns its index."""
        return [i for i, line in enumerate(self.lines) if all(p in line for p in parts)][nth]

    def save(self) -> None:
        """Write the log back."""
        self.path.write_text("\n".join(self.lines) + "\n")


def moved(row: Row, by_ms: float) -> Row:
    """Move a request or a line to another time."""
    names = ("at_ms",) if row["template"] else TIMES
    return {**row, **{name: row[name] + by_ms for name in names}}


def stretched(rows: Iterable[Row], at_ms: float, by_ms: float) -> list[Row]:
    """Let nothing happen for a while: what was to happen from a time on happens later.

    Requests that wait then are answered later.
    """
    return [
        moved(row, by_ms)
        if row["at_ms" if row["template"] else "arrived_ms"] >= at_ms
        else {**row, **{name: row[name] + by_ms for name in TIMES if (row.get(name) or 0) >= at_ms}}
        for row in rows
    ]


COMPARED = ("comparison", "member_lines", "violations")
"""The tables that the replay is compared in."""


def compared(judge: RunContext, group: str, rows: Sequence[Row]) -> Iterator[tuple[str, Json]]:
    """Yield the rows of `COMPARED`, each with the name of its table."""
    return ((name, row) for name, row in check_rows(judge, group, rows) if name in COMPARED)


def differences(judge: RunContext, group: str, rows: Sequence[Row]) -> list[str]:
    """List what is wrong with a group of which the logs tell these rows."""
    return [
        str(row.get("rule") or row.get("outcome"))
        for name, row in compared(judge, group, rows)
        if name != "comparison" or row["outcome"] != "match"
    ]


def explains(judge: RunContext, group: str, rows: Iterable[Row]) -> bool:
    """Tell whether the rules explain all of a group: responses, rebalances and lines."""
    return all(
        name == "comparison" and row["outcome"] == "match"
        for name, row in compared(judge, group, list(rows))
    )
