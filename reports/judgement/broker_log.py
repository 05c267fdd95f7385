"""Reads one broker's log: its numbered lines in, in the order of the file; rows of tables out.

lines read = used + irrelevant + rejected: a line that no template matches is counted as rejected.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from kafka_protocol.request_log import COMPLETED
from kafka_protocol.request_log import LOGGER as REQUEST_LOGGER
from reports.judgement.parsing import NO_LINE, Parser, Parts, parse_request

END_MISSING = "the log's end is missing"
"""The gap of a broker process whose lines do not end with the coordinator's last line."""
CLOCK_MS = 50.0
"""How far a printed time may be ahead of the nano clock; more is not this broker's."""
PAUSE_MS = 1_000.0
"""How far a printed time may be behind the nano clock: log4j 2 reads the time first, then the nano
clock, and the thread may be suspended between (`MutableLogEvent.initTime`, log4j-core 2.25.3)."""
TEXT_SHOWN = 300
"""How many characters of a line the table `coverage` keeps."""

REQUESTS = """
    id STRING, broker STRING, file STRING, line LONG, group STRING, api STRING, api_version INT,
    client_id STRING, connection STRING, correlation_id INT, arrived_ms DOUBLE, earliest_ms DOUBLE,
    at_ms DOUBLE, latest_ms DOUBLE, answered_ms DOUBLE, logged_ms DOUBLE, error_code INT,
    request STRING, response STRING, readable BOOLEAN
"""
TRANSITIONS = """
    broker STRING, file STRING, line LONG, process LONG, serial_number LONG, at_ms DOUBLE,
    level STRING,
    template STRING, partition INT, group STRING, member STRING, instance STRING, generation INT,
    members INT, static_members INT, reason STRING, epoch INT, message STRING
"""
COVERAGE = """
    broker STRING, file STRING, line LONG, process LONG, serial_number LONG, at_ms DOUBLE,
    status STRING, text STRING
"""
GAPS = "broker STRING, process LONG, at_ms DOUBLE, line LONG, what STRING"
STATUSES = ("used", "irrelevant", "rejected")
"""What a line counts as."""
TABLES = {
    "requests": REQUESTS, "transitions": TRANSITIONS, "coverage": COVERAGE, "lost": GAPS,
}  # fmt: skip

Add = Callable[[str, tuple[Any, ...]], None]
"""Takes the name of a table and a row of it."""
Offsets = Mapping[tuple[str, int], float]
"""By broker and number of its process: what to add to its nano clock, in ms, to get UTC."""


@dataclass(slots=True)
class Clocks:
    """Finds the offsets of the brokers' nano clocks from their lines.

    The nano clock is precise but has no fixed zero. Its offset to UTC is the median over the lines
    of one broker process, which no single line can move. Printed milliseconds are truncated, by
    half a millisecond on average. Offsets are counted in whole microseconds since the epoch, so
    that the counts of the parts of a log add up to those of the whole.
    """

    parser: Parser
    _process: Counter[str] = field(default_factory=Counter)
    _apart_us: dict[tuple[str, int], Counter[int]] = field(
        default_factory=lambda: defaultdict(Counter)
    )

    def look(self, broker: str, text: str) -> None:
        """Take a broker's next line. Lines without a nano clock are ignored."""
        if not self.parser.numbered:
            return
        parts = self.parser.split(text)
        self._process[broker] += parts.body.endswith(self.parser.grammar.first_line_end)
        if parts.nanos is not None and parts.logged_ms is not None:
            apart_us = (parts.logged_ms * 1_000_000 - parts.nanos) // 1_000
            self._apart_us[broker, self._process[broker]][apart_us] += 1

    def offsets(self) -> Offsets:
        """Return the offsets."""
        return {process: offset_ms(apart_us) for process, apart_us in self._apart_us.items()}


def offset_ms(apart_us: Mapping[int, int]) -> float:
    """Return the offset of a clock: the lower median of a histogram, in ms.

    `apart_us` counts the lines by printed time minus nano clock, in whole microseconds. It is not
    empty.
    """
    ordered = sorted(apart_us)
    up_to = list(accumulate(map(apart_us.__getitem__, ordered)))
    median_us = ordered[bisect_left(up_to, (up_to[-1] + 1) // 2)]
    return (median_us + 0.5) / 1_000 + 0.5


@dataclass(slots=True)
class BrokerProcess:
    """What the lines of one broker process tell; a restarted broker continues the same log."""

    number: int
    lines: int = 0
    seen: set[tuple[str | None, int | None]] = field(default_factory=set)
    """Requests by connection and correlation id; the same pair twice is a duplicated line."""
    within_ms: Counter[int] = field(default_factory=Counter)
    placed: list[tuple[int, int, float]] = field(default_factory=list)
    """Serial number, line and time of each line that has a serial number."""
    ended: bool = False
    last_ms: float | None = None
    partition: int | None = None
    """The highest partition of `__consumer_offsets` that a line names."""
    statuses: Counter[str] = field(default_factory=Counter)


class Log:
    """One broker's log, read line after line."""

    def __init__(self, broker: str, parser: Parser, offsets: Offsets, add: Add) -> None:
        """Start before the first line; rows of tables go to `add`."""
        self.broker, self.parser, self.offsets, self.add = broker, parser, offsets, add
        self.grammar = parser.grammar
        self.process = BrokerProcess(0)
        self._processes: list[BrokerProcess] = []
        self._last_ms: float | None = None

    def read(self, file: str, line: int, text: str) -> None:
        """Read the next line."""
        parts = self.parser.split(text)
        if parts.body.endswith(self.grammar.first_line_end):
            self._end_process()
            self.process = BrokerProcess(self.process.number + 1)
        process = self.process
        process.lines += 1
        sn = parts.sn
        if not self.parser.numbered and parts.logged_ms is not None:
            sn = process.lines
        at_ms, in_time = self._at_ms(parts)
        if sn is not None and at_ms is not None:
            process.placed.append((sn, line, at_ms))
            if not in_time:
                self._note_gap(at_ms, line, "the time it shows is not its broker's")
        place = (self.broker, file, line)
        if parts.logger == REQUEST_LOGGER and parts.body.startswith(COMPLETED):
            status = self._request(place, at_ms, parts.body)
        elif self.parser.is_of_coordinator(parts.logger):
            status = self._coordinator_line(place, sn, at_ms, parts)
        else:
            known = parts.logger in self.grammar.irrelevant_loggers
            status = "irrelevant" if known else "rejected"
        row = (*place, process.number, sn, at_ms, status, text[:TEXT_SHOWN])
        self.add("coverage", row)
        process.statuses[status] += 1
        if at_ms is not None:
            process.last_ms = at_ms if process.last_ms is None else max(process.last_ms, at_ms)

    def _at_ms(self, parts: Parts) -> tuple[float | None, bool]:
        """Return the UTC time of a line in ms, and whether its two clocks agree.

        A line is not written before the time that it prints, but its nano clock may be read late.
        Without a nano clock, lines of one millisecond keep the order of the log. A line without a
        time gets that of the line before.
        """
        logged = parts.logged_ms
        if logged is not None:
            self._last_ms = float(logged)
        if self.parser.numbered:
            offset = self.offsets.get((self.broker, self.process.number))
            if parts.nanos is None or offset is None:
                return self._last_ms, True
            exact = parts.nanos / 1e6 + offset
            if logged is None or not -CLOCK_MS <= exact - logged <= PAUSE_MS:
                return exact, logged is None
            return min(exact, logged + 1.0), True
        if logged is None:
            return self._last_ms, True
        self.process.within_ms[logged] += 1
        return logged + 0.5 + self.process.within_ms[logged] / 1_000, True

    def _request(self, place: tuple[str, str, int], logged_ms: float | None, body: str) -> str:
        logged = parse_request(body)
        number = (logged.connection, logged.correlation_id)
        readable = logged.readable and logged_ms is not None and number not in self.process.seen
        self.process.seen.add(number)
        broker, _, line = place
        self.add(
            "requests",
            (
                f"{broker}:{line}",
                *place,
                logged.group,
                logged.api,
                logged.api_version,
                logged.client_id,
                logged.connection,
                logged.correlation_id,
                *logged.times(logged_ms),
                logged_ms,
                logged.error_code,
                logged.request,
                logged.response,
                readable,
            ),
        )
        return "used" if readable else "rejected"

    def _coordinator_line(
        self, place: tuple[str, str, int], sn: int | None, at_ms: float | None, parts: Parts
    ) -> str:
        parsed = self.parser.coordinator_line(self.broker, parts.logger, parts.body)
        if at_ms is None:
            parsed = NO_LINE
        if parsed.partition is not None:
            self.process.partition = max(parsed.partition, self.process.partition or 0)
        self.process.ended |= parsed.template == self.grammar.last_template
        self.add(
            "transitions",
            (
                *place,
                self.process.number,
                sn,
                at_ms,
                parts.level,
                parsed.template,
                parsed.partition,
                parsed.fields.get("group"),
                parsed.fields.get("member"),
                parsed.fields.get("instance"),
                parsed.number("generation"),
                parsed.number("members"),
                parsed.number("static_members"),
                parsed.fields.get("reason"),
                parsed.number("epoch"),
                parsed.message,
            ),
        )
        return "rejected" if parsed.template is None else "used"

    def _note_gap(self, at_ms: float, line: int, what: str) -> None:
        self.add("lost", (self.broker, self.process.number, at_ms, line, what))

    def end(self) -> list[BrokerProcess]:
        """End the log; return the broker processes that wrote it."""
        self._end_process()
        return self._processes

    def _end_process(self) -> None:
        """Find the gaps of the process that ends here: in its serial numbers, start and end.

        The serial number counts every line written.
        """
        if self.process.lines:
            self._processes.append(self.process)
        placed = sorted(self.process.placed)
        for (before, *_), (sn, line, at_ms) in pairwise(placed):
            if sn == before:
                self._note_gap(at_ms, line, f"serial number {sn} stands twice")
            elif sn > before + 1:
                missing = sn - before - 1
                self._note_gap(at_ms, line, f"{missing} lines missing before serial number {sn}")
        if not placed:
            return
        _, lines, times = zip(*placed, strict=True)
        if placed[0][0] != 1 or self.process.number == 0:
            self._note_gap(min(times), min(lines), "the log's start is missing")
        if not self.process.ended:
            self._note_gap(max(times), max(lines), END_MISSING)
