"""The lines about one group of a recorded run, as a lie changes them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from kafka_protocol.request_log import COMPLETED
from reports.judgement.recording import Line, Recording
from reports.judgement.timelines.line_fields import FENCED
from selftest.mutants.log_synthesis import SynthesizedLine

Json = dict[str, Any]
Lines = list[SynthesizedLine]
OF_ONE_WRITE_MS = 50.0
"""The answers that wait for one write are sent within this time."""
SOON_MS = 1_000.0
"""How soon a commit follows another that overtakes it."""


@dataclass(frozen=True, eq=False)
class GroupLines:
    """The lines about a group in the order of their times; indices are places in it."""

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

    def answered(self, api: str, error: int = 0) -> list[int]:
        """List the requests of an API that are answered with an error, all parts alike."""
        return [
            place
            for place, line in enumerate(self.recorded)
            if line.request is not None
            and line.row["api"] == api
            and line.row["readable"]
            and errors(line.request["response"]) == {error}
        ]

    def of_template(self, template: str) -> list[int]:
        """List the coordinator lines of a template."""
        return [place for place, line in enumerate(self.recorded) if line.template == template]

    def in_outage(self, places: Sequence[int]) -> list[int]:
        """Keep the places within an outage, a second after it began."""
        spans = [(one.from_ms + 1_000.0, one.until_ms) for one in self.recording.run.outages]
        at_ms = lambda place: self.recorded[place].at_ms
        return [p for p in places if any(a <= at_ms(p) <= b for a, b in spans)]

    def free_ms(self, place: int) -> float:
        """Return how long after a request its connection stays silent, in ms."""
        line = self.recorded[place]
        later = (
            other.at_ms
            for other in self.recorded[place + 1 :]
            if other.request is not None and other.row["connection"] == line.row["connection"]
        )
        return next(later, float("inf")) - line.at_ms

    def is_overtaken(self, place: int) -> bool:
        """Tell whether other answers show that what one waits for has happened.

        A later commit was stored; others got the assignment of the leader whose answer it is.
        """
        line = self.recorded[place]
        assert line.request is not None
        others = [
            other
            for other in self.recorded
            if other.request is not None
            and other.row["api"] == line.row["api"]
            and other.row["connection"] != line.row["connection"]
            and errors(other.request["response"]) == {0}
        ]
        if line.row["api"] == "SYNC_GROUP":
            gave = bool(line.request["request"]["assignments"])
            return gave and any(abs(other.at_ms - line.at_ms) < OF_ONE_WRITE_MS for other in others)
        return any(0.0 < other.row["arrived_ms"] - line.at_ms < SOON_MS for other in others)


class Lie(NamedTuple):
    """A lie: what it says, the freedom that it claims, and the runs that have it.

    `tell` returns the lines with the lie; None where the run has no place for it.
    """

    name: str
    freedom: str
    experiment: str
    group: str
    tell: Callable[[GroupLines], Lines | None]


def errors(response: Mapping[str, Any]) -> set[int]:
    """Return the error codes of a response."""
    if "errorCode" in response and "members" not in response:
        return {response["errorCode"]}
    if "topics" in response:
        return {part["errorCode"] for topic in response["topics"] for part in topic["partitions"]}
    return {response.get("errorCode", 0), *(one.get("errorCode", 0) for one in _members(response))}


def _members(response: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (one for one in response["members"] if isinstance(one, dict))


def refused(response: Json, error: int) -> None:
    """Answer every part of a response with an error."""
    for topic in response.get("topics", ()):
        for part in topic["partitions"]:
            part["errorCode"] = error
    if "errorCode" in response:
        response["errorCode"] = error


def rewritten(line: SynthesizedLine, change: Callable[[Json], None]) -> SynthesizedLine:
    """Change the logged request of a line."""
    before, _, rest = line.text.partition(COMPLETED)
    printed, _, logger = rest.rpartition(" (")
    logged = json.loads(printed)
    change(logged)
    body = json.dumps(logged, separators=(",", ":"))
    return replace(line, text=f"{before}{COMPLETED}{body} ({logger}")


def middle(places: Sequence[int]) -> int | None:
    """Return the middle place; None if there is none."""
    return places[len(places) // 2] if places else None
