"""Large evidence: a recorded run, multiplied to a size.

Each copy has its own groups, member ids, connections and offsets partitions, on the recorded
brokers at the recorded times: the log that the same brokers would write with that many more groups.
Lines about no group, such as start and shutdown, occur once.
"""

import lzma
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from kafka_protocol.coordinator_lines import GRAMMARS, Grammar

RECORDED = Path(__file__).parents[1] / "tests" / "recorded" / "kafka-4.3.0"
MOST_COPIES = 10_000
"""Copy numbers have four digits."""

COPY = "\0"
"""The placeholder of the copy number in a line."""
LINE = re.compile(r"\d+ (\d+ \d+) (\S+ \w+ (.*) \(\S+\))")
GROUP = re.compile(r'("groupId":"[^"]+)')
CONNECTION = re.compile(r'("connection":"[^"]+)')
PARTITION = re.compile(r"(__consumer_offsets-\d+|__consumer_offsets partition=\d+)")
PART_OF_MEMBER_ID = re.compile(r"(?<=-)[0-9a-f]{4}(?=[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class Line:
    """A recorded line with placeholders, without its number; `times` are of the two clocks."""

    times: str
    text: str
    starts_process: bool

    @property
    def of_copy(self) -> bool:
        """Whether each copy has this line."""
        return COPY in self.text


def multiply(megabytes: float, folder: Path) -> None:
    """Write a run folder whose brokers' logs have together at least `megabytes` (10^6 bytes).

    Raises ValueError if that takes more copies than `MOST_COPIES`.
    """
    logs = {
        packed.parent.name: lzma.decompress(packed.read_bytes()).decode().splitlines()
        for packed in sorted(RECORDED.glob("brokers/*/group.log.xz"))
    }
    marked = {broker: list(_marked(log, GRAMMARS["java"])) for broker, log in logs.items()}
    size = sum(len(line) + 1 for log in logs.values() for line in log)
    copies = ceil(megabytes * 1e6 / size)
    if copies > MOST_COPIES:
        raise ValueError(
            f"{megabytes} MB takes {copies} copies; {MOST_COPIES} is the most; give fewer megabytes"
        )
    shutil.copytree(RECORDED, folder, ignore=shutil.ignore_patterns("brokers"), dirs_exist_ok=True)
    for broker, log in marked.items():
        _write(folder, broker, log, copies)


def _marked(log: list[str], grammar: Grammar) -> Iterator[Line]:
    """Put a placeholder wherever copies differ."""
    for line in log:
        match = LINE.fullmatch(line)
        assert match is not None, line
        times, text, body = match.groups()
        text = text.replace(body, _group_marked(body, grammar))
        for part in (GROUP, CONNECTION, PARTITION):
            text = part.sub(rf"\1{COPY}", text)
        text = PART_OF_MEMBER_ID.sub(COPY, text)
        yield Line(times, text, starts_process=body.endswith(grammar.first_line_end))


def _group_marked(body: str, grammar: Grammar) -> str:
    """Put a placeholder after the group name in a coordinator line."""
    prefix = re.match(grammar.prefix, body)
    for template in grammar.templates if prefix else ():
        found = re.search(template.regex, prefix[3]) if prefix else None
        if prefix and found and "group" in template.fields:
            end = prefix.start(3) + found.end(template.fields.index("group") + 1)
            return body[:end] + COPY + body[end:]
    return body


def _write(folder: Path, broker: str, lines: list[Line], copies: int) -> None:
    """Write one broker's log."""
    log = folder / "brokers" / broker / "group.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    serial = 0
    with log.open("w", encoding="utf-8") as file:
        for line in lines:
            for copy in range(copies if line.of_copy else 1):
                serial = 1 if line.starts_process else serial + 1
                text = line.text.replace(COPY, f"{copy:04}")
                file.write(f"{serial} {line.times} {text}\n")
