"""Where lines stand: a broker and the number of a line in its log in; a file and a line in it out.

A broker's log may have several files (`group.log.1`, `group.log`), and its lines are numbered
through all of them. Tables and judgement use that number; people are shown the place in the file.
Files are read in splits.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import unquote

from reports.judgement.errors import EvidenceError

LOG = "group.log"
"""A broker's log, in its folder `brokers/<id>`, and what the tap saw of it, in `tap/<id>`."""
_PLACE = re.compile(r"(?:brokers|tap)/([^/]+)/group\.log(?:\.([0-9]+))?(?:\.gz|\.xz)?$")


def log_of(broker: str, folder: str = "brokers") -> str:
    """Return the name of a broker's log in the run folder."""
    return f"{folder}/{broker}/{LOG}"


class LogFile(NamedTuple):
    """A file of a broker's log: its place in the order of files, and its name in the run folder."""

    broker: str
    age: int
    name: str


class Split(NamedTuple):
    """A split of a log: the URI of its file, and where it begins in it."""

    file: str
    start: int


def log_file(uri: str) -> LogFile:
    """Return which file of which broker's log a URI is. Raises EvidenceError where it is none."""
    path = unquote(uri)
    if (match := _PLACE.search(path)) is None:
        raise EvidenceError(f"{path}: no brokers/<id>/group.log; rename or remove it")
    return LogFile(match[1], int(match[2] or 0), match[0])


def in_order(split: Split) -> tuple[str, int, int]:
    """Return what splits are ordered by: broker, and place in the broker's log."""
    file = log_file(split.file)
    return file.broker, -file.age, split.start


@dataclass(frozen=True, slots=True)
class LogPlaces:
    """The files of brokers' logs.

    `files` are, by broker, the number of lines before each file, and its name; the oldest is first.
    A broker that is not listed has one file, in `folder`.
    """

    files: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict)
    folder: str = "brokers"

    def place(self, broker: str, line: int) -> tuple[str, int]:
        """Return the file of a line, and its number there; line 0 stands for the whole log."""
        files = self.files.get(broker, ())
        at = bisect_left(files, line, key=itemgetter(0)) - 1
        if at < 0:
            return log_of(broker, self.folder), line
        before, name = files[at]
        return name, line - before

    def written(self, broker: str, line: int) -> str:
        """Write the place of a line as `file:line`."""
        file, number = self.place(broker, line)
        return f"{file}:{number}"


class Level(StrEnum):
    """What the verdict of a run rests on; incidents, without a run, have another level.

    `environment.json` names it (`evidence`); without it the level is `requests`. `REQUESTS`: the
    brokers' logs, with requests and coordinator lines. `WIRE`: what the tap saw of requests and
    answers.
    """

    REQUESTS = "requests"
    WIRE = "wire"

    @property
    def folder(self) -> str:
        """The folder of a run in which each broker has a folder with its log."""
        return "tap" if self is Level.WIRE else "brokers"


CANNOT_SEE = (
    "when a rebalance began and why: the replay tells it",
    "a rebalance that leads to no answer, as when the last member leaves: it is not compared",
    "a session that expires after the last request of its group",
    "when a broker loaded a group, or gave it up: only that it did, between two answers",
    "what a broker stored that no answer shows, when another takes over",
    "members whose requests do not pass the tap",
)  # what level `wire` does not show, in words
