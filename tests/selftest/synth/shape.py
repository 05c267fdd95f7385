"""Small synthesized runs, and the shape of brokers' logs: what each kind of line is made of."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_protocol.coordinator_lines import JAVA, LineParser
from kafka_protocol.log_line import NUMBERED
from kafka_protocol.request_log import COMPLETED, PARTS_MS
from reference_coordinator.classic.releases import profile_for
from selftest.synth.spec import Spec

PARSER = LineParser(JAVA)


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


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the scalars of a JSON value, in order; entries of lists look alike."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}[]"
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path


@dataclass
class Shape:
    """The shape of some logs.

    `requests` are the paths of a request's fields in order, by API, version and software (lists as
    if they had one entry). `lines` are the coordinator's: template, thread without numbers, level,
    logger. `rounding_us` is how much a request's time was more than its parts.
    """

    requests: dict[tuple[str, int, str], set[tuple[str, ...]]] = field(
        default_factory=lambda: defaultdict(set)
    )
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
        self.requests[kind].add(tuple(dict.fromkeys(leaves(content))))
        parts = sum(content[name] for name in PARTS_MS)
        self.rounding_us.add(round((content["totalTimeMs"] - parts) * 1_000))


def spec(mix: str, groups: int, seconds: float, seed: int = 5) -> Spec:
    """Return what a small synthesized run is to be."""
    profile = profile_for("4.3.0", "java")
    assert profile is not None
    return Spec(groups, seconds, mix, seed, "4.3.0", profile)
