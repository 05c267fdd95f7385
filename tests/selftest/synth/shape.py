"""The shape of brokers' logs: what each kind of line is made of, and of which characters."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_protocol.coordinator_lines import JAVA, LineParser
from kafka_protocol.log_line import NUMBERED
from kafka_protocol.request_log import COMPLETED, PARTS_MS

PARSER = LineParser(JAVA)
CLASSES = {"lower": "[a-z]", "upper": "[A-Z]", "digit": "[0-9]", "other": "[^A-Za-z0-9]"}


class Read(NamedTuple):
    """A line, split at its fields."""

    serial: int
    ms: int
    nanos: int
    thread: str
    level: str
    body: str
    logger: str


def read(line: str) -> Read:
    """Split a line; it must be one."""
    match = re.match(NUMBERED, line)
    assert match is not None, line
    serial, ms, nanos, level, body, logger = match.groups()
    thread = line.split(" ", 4)[3]
    return Read(int(serial), int(ms), int(nanos), thread, level, body, logger)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the scalars of a JSON value with their paths, in order; entries of lists look alike."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}[]", bool(value)
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path, value


@dataclass
class Field:
    """What was seen in a field: types, classes of characters, lengths as printed."""

    types: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    longest: int = 0

    def add(self, value: Any) -> None:
        """See a value."""
        self.types.add(type(value).__name__)
        text = value if isinstance(value, str) else json.dumps(value)
        self.longest = max(self.longest, len(text))
        self.classes |= {name for name, regex in CLASSES.items() if re.search(regex, text)}


@dataclass
class Shape:
    """The shape of some logs.

    `requests` are the paths of a request's fields in order, by API, version and software (lists as
    if they had one entry); `fields` what was seen in each, by API. `lines` are the coordinator's:
    template, thread without numbers, level, logger. `rounding_us` is how much a request's time was
    more than its parts.
    """

    requests: dict[tuple[str, int, str], set[tuple[str, ...]]] = field(
        default_factory=lambda: defaultdict(set)
    )
    fields: dict[tuple[str, str], Field] = field(default_factory=lambda: defaultdict(Field))
    lines: set[tuple[str | None, str, str, str]] = field(default_factory=set)
    rounding_us: set[int] = field(default_factory=set)

    def add(self, broker: str, lines: Iterable[str]) -> None:
        """See a broker's lines."""
        for line in map(read, lines):
            thread = re.sub(r"\d+", "N", line.thread)
            if line.body.startswith(COMPLETED):
                self.lines.add((None, thread, line.level, line.logger))
                self._add_request(json.loads(line.body.removeprefix(COMPLETED)))
            else:
                parsed = PARSER.parsed(broker, line.logger, line.body)
                self.lines.add((parsed.template, thread, line.level, line.logger))

    def _add_request(self, content: dict[str, Any]) -> None:
        header = content["requestHeader"]
        api, version = header["requestApiKeyName"], header["requestApiVersion"]
        kind = api, version, content["clientInformation"]["softwareName"]
        found = list(leaves(content))
        self.requests[kind].add(tuple(dict.fromkeys(path for path, _ in found)))
        for path, value in found:
            self.fields[api, path].add(value)
        parts = sum(content[name] for name in PARTS_MS)
        self.rounding_us.add(round((content["totalTimeMs"] - parts) * 1_000))
