"""Reading: one broker's numbered lines in, in their order; rows of tables out.

read = used + irrelevant + rejected: a line that nothing here understands is never dropped.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median_low
from typing import Any

from kafka_protocol.request_log import COMPLETED
from kafka_protocol.request_log import LOGGER as REQUEST_LOGGER
from reports.judgement.parsing import NOT_TOLD, Parser, Parts, asked

END_MISSING = "the log's end is missing"
"""What is said of a broker's life that does not end with the coordinator's last line."""
CLOCK_MS = 50.0
"""How far a printed time may be ahead of the nano clock's; more is no time of this broker."""
PAUSE_MS = 1_000.0
"""How far it may be behind: log4j 2 reads the time first and the nano clock then, and a thread may
be stopped in between (`MutableLogEvent.initTime`, log4j-core 2.25.3)."""
TEXT_SHOWN = 300
"""How much of a line's text the account of lines keeps."""

REQUESTS = """
    id STRING, broker STRING, file STRING, line LONG, group STRING, api STRING, api_version INT,
    client_id STRING, connection STRING, serial INT, arrived_ms DOUBLE, earliest_ms DOUBLE,
    at_ms DOUBLE, latest_ms DOUBLE, answered_ms DOUBLE, logged_ms DOUBLE, error_code INT,
    request STRING, response STRING, readable BOOLEAN
"""
TRANSITIONS = """
    broker STRING, file STRING, line LONG, life LONG, sn LONG, at_ms DOUBLE, level STRING,
    template STRING, partition INT, group STRING, member STRING, instance STRING, generation INT,
    members INT, static_members INT, reason STRING, epoch INT, message STRING
"""
COVERAGE = """
    broker STRING, file STRING, line LONG, life LONG, sn LONG, at_ms DOUBLE, fate STRING,
    text STRING
"""
LOST = "broker STRING, life LONG, at_ms DOUBLE, line LONG, what STRING"
FATES = ("used", "irrelevant", "rejected")
"""What becomes of a line."""
TABLES = {
    "requests": REQUESTS, "transitions": TRANSITIONS, "coverage": COVERAGE, "lost": LOST,
}  # fmt: skip

Add = Callable[[str, tuple[Any, ...]], None]
"""Takes the name of a table and a row of it."""
Offsets = Mapping[tuple[str, int], float]
"""By broker and life: what makes its nano clock, in ms, UTC."""


@dataclass(slots=True)
class Clocks:
    """Finds the offsets of the brokers' nano clocks from their lines.

    The nano clock is exact but starts anywhere: its offset to UTC is the median seen in a broker's
    life, which no single line can move; printed milliseconds are cut off, half of one on average.
    """

    parser: Parser
    _life: Counter[str] = field(default_factory=Counter)
    _apart_ms: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))

    def look(self, broker: str, text: str) -> None:
        """Take a broker's next line; without a nano clock there is nothing to find."""
        if not self.parser.numbered:
            return
        parts = self.parser.split(text)
        self._life[broker] += parts.body.endswith(self.parser.grammar.first_words)
        if parts.nanos is not None and parts.logged_ms is not None:
            apart_ms = parts.logged_ms - parts.nanos / 1e6
            self._apart_ms[broker, self._life[broker]].append(apart_ms)

    def offsets(self) -> Offsets:
        """Return the offsets."""
        return {life: median_low(apart) + 0.5 for life, apart in self._apart_ms.items()}


@dataclass(slots=True)
class Life:
    """What is to be known of a life of a broker's log once all its lines are read."""

    number: int
    lines: int = 0
    seen: set[tuple[str | None, int | None]] = field(default_factory=set)
    """Requests by connection and number: a client numbers its own, the same twice is too many."""
    within_ms: Counter[int] = field(default_factory=Counter)
    placed: list[tuple[int, int, float]] = field(default_factory=list)
    """Of each numbered line: serial number, line, time."""
    ended: bool = False
    last_ms: float | None = None
    partition: int | None = None
    """The highest offsets partition that a line names."""
    fates: Counter[str] = field(default_factory=Counter)


class Log:
    """One broker's log, read line after line."""

    def __init__(self, broker: str, parser: Parser, offsets: Offsets, add: Add) -> None:
        """Begin before the first line; rows of tables go to `add`."""
        self.broker, self.parser, self.offsets, self.add = broker, parser, offsets, add
        self.grammar = parser.grammar
        self.life = Life(0)
        self._lives: list[Life] = []
        self._last_ms: float | None = None

    def read(self, file: str, line: int, text: str) -> None:
        """Read the next line."""
        parts = self.parser.split(text)
        if parts.body.endswith(self.grammar.first_words):
            self._end_life()
            self.life = Life(self.life.number + 1)
        life = self.life
        life.lines += 1
        sn = parts.sn
        if not self.parser.numbered and parts.logged_ms is not None:
            sn = life.lines
        at_ms, in_time = self._at_ms(parts)
        if sn is not None and at_ms is not None:
            life.placed.append((sn, line, at_ms))
            if not in_time:
                self._lose(at_ms, line, "the time it shows is not its broker's")
        place = (self.broker, file, line)
        if parts.logger == REQUEST_LOGGER and parts.body.startswith(COMPLETED):
            fate = self._request(place, at_ms, parts.body)
        elif self.parser.tells(parts.logger):
            fate = self._told(place, sn, at_ms, parts)
        else:
            known = parts.logger in self.grammar.irrelevant_loggers
            fate = "irrelevant" if known else "rejected"
        row = (*place, life.number, sn, at_ms, fate, text[:TEXT_SHOWN])
        self.add("coverage", row)
        life.fates[fate] += 1
        if at_ms is not None:
            life.last_ms = at_ms if life.last_ms is None else max(life.last_ms, at_ms)

    def _at_ms(self, parts: Parts) -> tuple[float | None, bool]:
        """Put a line on fine UTC time, and say whether its clocks agree.

        A line is not written before the time that it prints, but its nano clock may be read late.
        Without a nano clock lines stand within a millisecond as in the log. What has no time has
        that of the line before.
        """
        logged = parts.logged_ms
        if logged is not None:
            self._last_ms = float(logged)
        if self.parser.numbered:
            offset = self.offsets.get((self.broker, self.life.number))
            if parts.nanos is None or offset is None:
                return self._last_ms, True
            exact = parts.nanos / 1e6 + offset
            if logged is None or not -CLOCK_MS <= exact - logged <= PAUSE_MS:
                return exact, logged is None
            return min(exact, logged + 1.0), True
        if logged is None:
            return self._last_ms, True
        self.life.within_ms[logged] += 1
        return logged + 0.5 + self.life.within_ms[logged] / 1_000, True

    def _request(self, place: tuple[str, str, int], logged_ms: float | None, body: str) -> str:
        told = asked(body)
        number = (told.connection, told.correlation_id)
        readable = told.readable and logged_ms is not None and number not in self.life.seen
        self.life.seen.add(number)
        broker, _, line = place
        self.add(
            "requests",
            (
                f"{broker}:{line}",
                *place,
                told.group,
                told.api,
                told.api_version,
                told.client_id,
                told.connection,
                told.correlation_id,
                *told.times(logged_ms),
                logged_ms,
                told.error_code,
                told.request,
                told.response,
                readable,
            ),
        )
        return "used" if readable else "rejected"

    def _told(
        self, place: tuple[str, str, int], sn: int | None, at_ms: float | None, parts: Parts
    ) -> str:
        told = self.parser.told(self.broker, parts.logger, parts.body)
        if at_ms is None:
            told = NOT_TOLD
        if told.partition is not None:
            self.life.partition = max(told.partition, self.life.partition or 0)
        self.life.ended |= told.template == self.grammar.last_template
        self.add(
            "transitions",
            (
                *place,
                self.life.number,
                sn,
                at_ms,
                parts.level,
                told.template,
                told.partition,
                told.fields.get("group"),
                told.fields.get("member"),
                told.fields.get("instance"),
                told.number("generation"),
                told.number("members"),
                told.number("static_members"),
                told.fields.get("reason"),
                told.number("epoch"),
                told.message,
            ),
        )
        return "rejected" if told.template is None else "used"

    def _lose(self, at_ms: float, line: int, what: str) -> None:
        self.add("lost", (self.broker, self.life.number, at_ms, line, what))

    def end(self) -> list[Life]:
        """End the log; return the lives that it tells of."""
        self._end_life()
        return self._lives

    def _end_life(self) -> None:
        """Tell where the life that ends here has holes: by its serial numbers, start and end.

        The serial number counts every line written.
        """
        if self.life.lines:
            self._lives.append(self.life)
        placed = sorted(self.life.placed)
        for (before, *_), (sn, line, at_ms) in pairwise(placed):
            if sn == before:
                self._lose(at_ms, line, f"serial number {sn} stands twice")
            elif sn > before + 1:
                missing = sn - before - 1
                self._lose(at_ms, line, f"{missing} lines missing before serial number {sn}")
        if not placed:
            return
        _, lines, times = zip(*placed, strict=True)
        if placed[0][0] != 1 or self.life.number == 0:
            self._lose(min(times), min(lines), "the log's start is missing")
        if not self.life.ended:
            self._lose(max(times), max(lines), END_MISSING)
