"""The lines about one group of a recorded run, as a lie changes them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from kafka_protocol.errors import codes_in
from kafka_protocol.request_log import COMPLETED, printed
from reports.judgement.recording import Line, Recording
from reports.judgement.timelines.member_lines import FENCED
from selftest.mutants.log_synthesis import SynthesizedLine
from selftest.timing import OF_ONE_WRITE_MS, SOON_MS

Json = dict[str, Any]
Lines = list[SynthesizedLine]
QUIET = ("batch-removal", "static")
"""Runs without an outage, and their group."""
FAULTY = ("coordinator-failover", "static")
"""Runs in which a broker is killed: writes of the others may fail while it is down."""
DUPLICATES = ("duplicate-instance-id", "static")
"""Runs in which instances return and old members are fenced."""


@dataclass(frozen=True, eq=False)
class GroupLines:
    """The lines about a group in the order of their times; places are indices in it."""

    recording: Recording
    group: str

    @cached_property
    def recorded(self) -> Sequence[Line]:
        """The lines as they were read."""
        mine = [line for line in self.recording.lines if line.group == self.group]
        return sorted(
            (*mine, *self.fenced), key=lambda line: (line.at_ms, line.broker, line.number)
        )

    @cached_property
    def fenced(self) -> tuple[Line, ...]:
        """The lines about members that are fenced, which name no group."""
        requests = [
            line.row["request"] or ""
            for line in self.recording.lines
            if line.group == self.group and "request" in line.row
        ]
        return tuple(
            line
            for line in self.recording.lines
            if line.template == FENCED
            and any(f'"{line.row["member"]}"' in request for request in requests)
        )

    @property
    def lines(self) -> Lines:
        """The lines, to be changed."""
        return [
            SynthesizedLine(line.broker, line.process, line.at_ms, line.text)
            for line in self.recorded
        ]

    def answered(self, api: str) -> list[int]:
        """List the requests of an API all parts of which are answered without an error."""
        return [
            place
            for place, line in enumerate(self.recorded)
            if line.request is not None
            and line.row["api"] == api
            and line.row["readable"]
            and set(codes_in(line.request["response"])) == {0}
        ]

    def of_template(self, template: str) -> list[int]:
        """List the coordinator lines of a template."""
        return [place for place, line in enumerate(self.recorded) if line.template == template]

    def in_outage(self, places: Sequence[int]) -> list[int]:
        """Keep the places within an outage, a second after it began."""
        spans = [(one.from_ms + SOON_MS, one.until_ms) for one in self.recording.run.outages]
        return [p for p in places if any(a <= self.recorded[p].at_ms <= b for a, b in spans)]

    def on_connection(self, place: int) -> list[int]:
        """List the later requests of a request's connection."""
        connection = self.recorded[place].row["connection"]
        return [
            later
            for later in range(place + 1, len(self.recorded))
            if self.recorded[later].request is not None
            and self.recorded[later].row["connection"] == connection
        ]

    def free_ms(self, place: int) -> float:
        """Return how long after a request its connection stays silent, in ms."""
        later = self.on_connection(place)
        until_ms = self.recorded[later[0]].at_ms if later else float("inf")
        return until_ms - self.recorded[place].at_ms

    def is_overtaken(self, place: int) -> bool:
        """Tell whether other answers show that what one waits for has happened.

        A later commit was stored; others got the assignment of the leader whose answer it is.
        """
        line = self.recorded[place]
        assert line.request is not None
        others = [
            self.recorded[other]
            for other in self.answered(line.row["api"])
            if self.recorded[other].row["connection"] != line.row["connection"]
        ]
        if line.row["api"] == "SYNC_GROUP":
            gave = bool(line.request["request"]["assignments"])
            return gave and any(abs(other.at_ms - line.at_ms) < OF_ONE_WRITE_MS for other in others)
        return any(0.0 < other.row["arrived_ms"] - line.at_ms < SOON_MS for other in others)


Tell = Callable[[GroupLines], Lines | None]
"""Returns the lines with a lie; None where the run has no place for it."""


class Lie(NamedTuple):
    """A lie: the freedom that it claims, and the runs and the group that have it.

    `doubts` are the kinds of doubt of which one is to make the verdict unknown where it does not
    fail; without any it has to fail.
    """

    name: str
    freedom: str
    experiment: str
    group: str
    tell: Tell
    doubts: tuple[str, ...] = ()


def in_the_middle(
    places: Callable[[GroupLines], Sequence[int]], instead: Callable[[GroupLines, int], Lines]
) -> Tell:
    """Put other lines in the place of the middle one of some."""

    def tell(log: GroupLines) -> Lines | None:
        found = places(log)
        if not found:
            return None
        place = found[len(found) // 2]
        return [*log.lines[:place], *instead(log, place), *log.lines[place + 1 :]]

    return tell


def rewritten(line: SynthesizedLine, change: Callable[[Json], None]) -> SynthesizedLine:
    """Change the logged request of a line."""
    before, _, rest = line.text.partition(COMPLETED)
    content, _, logger = rest.rpartition(" (")
    logged = json.loads(content)
    change(logged)
    return replace(line, text=f"{before}{printed(logged)} ({logger}")
