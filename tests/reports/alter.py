"""Alters recorded evidence in one place, as an editor would."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from groupquake.selftest.mutants.log_synthesis import SynthesizedLine
from reports.judgement.recording import Recording


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
