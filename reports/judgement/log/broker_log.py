"""Reads one broker's log or a split of it: its lines in, in their order; rows of tables out.

lines read = used + irrelevant + rejected: a line that no template matches is counted as rejected.
What the lines before a split tell of those in it is its `Start` (see `split_summary`); what a split
tells of the processes that wrote it is joined to the whole by `processes`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from math import isnan, nan
from typing import Any, NamedTuple

from kafka_protocol import tap_lines
from kafka_protocol.request_log import COMPLETED
from kafka_protocol.request_log import LOGGER as REQUEST_LOGGER
from reports.judgement.coordinators.wire_turns import COPY
from reports.judgement.log.parsing import (
    NO_LINE,
    LoggedRequest,
    Parser,
    Parts,
    parse_request,
    parse_unanswered,
)
from reports.judgement.log.processes import Placed, ProcessPart, runs
from reports.judgement.run.deliveries import NOTHING_HELD, Deliveries
from reports.judgement.run.skews import UNPLACED, of_broker

CLOCK_MS = 50.0
"""How far a printed time may be ahead of the nano clock; more is not this broker's."""
PAUSE_MS = 1_000.0
"""How far a printed time may be behind the nano clock: log4j 2 reads the time first, then the nano
clock, and the thread may be suspended between (`MutableLogEvent.initTime`, log4j-core 2.25.3)."""
NOT_ITS_OWN = "the time it shows is not its broker's"
COPIED = f"{tap_lines.COPY}}}}}"
"""What the line of a request ends with that the tap sent a second time: it has the number of the
first one."""
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
TABLES = {
    "requests": REQUESTS, "transitions": TRANSITIONS, "coverage": COVERAGE, "lost": GAPS,
}  # fmt: skip

Number = tuple[str | None, int | None]
"""A request's connection and correlation id; the same twice in one process is a repeated line, but
for a request that a rule of the tap sent twice."""


class Start(NamedTuple):
    """Where a split begins, by the lines before it; a whole log begins at the first.

    `line` and `lines` are the numbers of lines before it, in the log and of the process numbered
    `process`, which goes on. `last_ms` is the last printed time. `within_ms` counts the lines of
    this process by printed time, of times that come again. `seen` counts how often requests of this
    process stand before it that come again. `offsets` are, by number of process, what to add to its
    nano clock, in ms, to get UTC.
    """

    line: int = 0
    process: int = 0
    lines: int = 0
    last_ms: float | None = None
    offsets: Mapping[int, float] = {}
    within_ms: Mapping[int, int] = {}
    seen: Mapping[Number, int] = {}


def offset_ms(apart_us: Mapping[int, int]) -> float:
    """Return the offset of a process's nano clock to UTC in ms: the lower median of a histogram.

    The nano clock is precise but has no fixed zero. `apart_us` counts the lines of the process by
    printed time minus nano clock, in whole microseconds. It is not empty. No single line can move
    its median. Printed milliseconds are truncated, by half a millisecond on average.
    NaN if most lines contradict it: then one of the two clocks does not go.
    """
    ordered = sorted(apart_us)
    up_to = list(accumulate(map(apart_us.__getitem__, ordered)))
    median_us = ordered[bisect_left(up_to, (up_to[-1] + 1) // 2)]
    reach_us = range(median_us - int(PAUSE_MS * 1_000), median_us + int(CLOCK_MS * 1_000) + 1)
    agree = sum(apart_us[us] for us in ordered if us in reach_us)
    return (median_us + 0.5) / 1_000 + 0.5 if 2 * agree >= up_to[-1] else nan


class Log:
    """A broker's log or a split of it, read line after line.

    `rows` are the rows of `TABLES` by table; the caller takes them and clears the lists.
    """

    def __init__(
        self,
        broker: str,
        file: str,
        parser: Parser,
        start: Start,
        deliveries: Deliveries = NOTHING_HELD,
    ) -> None:
        """Start before the first line; `file` is the name that rows have."""
        self._deliveries = deliveries
        self.broker, self.file, self.parser = broker, file, parser
        self.grammar, self.offsets = parser.grammar, start.offsets
        self._skews = of_broker(parser.skews, broker)
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self.line = start.line
        self._last_ms = start.last_ms
        self._before = ""
        self._parts: list[ProcessPart] = []
        self._begin(start.process, start.lines, start.within_ms, start.seen)

    def _begin(
        self,
        number: int,
        lines: int = 0,
        within_ms: Mapping[int, int] = {},
        seen: Mapping[Number, int] = {},
    ) -> None:
        """Begin or go on with a process."""
        self.process = ProcessPart(number, on_wire=self.parser.on_wire)
        self._lines, self._within_ms, self._seen = lines, Counter(within_ms), Counter(seen)
        self._placed: list[Placed] = []
        self._is_unplaced = False
        self._counts: Counter[str] = Counter()

    def read(self, text: str) -> None:
        """Read the next line."""
        parts = self.parser.split(text)
        if parts.body.endswith(self.grammar.first_line_end):
            self._end_process()
            self._begin(self.process.number + 1)
        self.line += 1
        self._lines += 1
        process, sn = self.process, parts.sn
        if not self.parser.numbered and parts.logged_ms is not None:
            sn = self._lines
        at_ms, doubt = self._at_ms(parts)
        if sn is not None and at_ms is not None:
            self._placed.append((sn, self.line, at_ms))
            if doubt is not None:
                self.rows["lost"].append((self.broker, process.number, at_ms, self.line, doubt))
        if text == self._before:  # no broker writes a line twice at one time
            status = "rejected"
        elif parts.logger == REQUEST_LOGGER and parts.body.startswith(COMPLETED):
            status = self._request(at_ms, parse_request(parts.body), parts.body)
        elif self.parser.on_wire and parts.body.startswith(tap_lines.UNANSWERED):
            unanswered = parse_unanswered(parts.body)
            status = "irrelevant" if unanswered is None else self._request(at_ms, unanswered)
        elif self.parser.on_wire and parts[-2:] == (tap_lines.ENDED, tap_lines.LOGGER):
            process.ended, status = True, "irrelevant"
        elif self.parser.is_of_coordinator(parts.logger):
            status = self._coordinator_line(sn, at_ms, parts)
        else:
            known = parts.logger in self.grammar.irrelevant_loggers and not self.parser.on_wire
            status = "irrelevant" if known else "rejected"
        self._before = text
        shown = text[:TEXT_SHOWN] if status == "rejected" else None
        self.rows["coverage"].append(
            (self.broker, self.file, self.line, process.number, sn, at_ms, status, shown)
        )
        self._counts[status] += 1
        if at_ms is not None and (process.last_ms is None or at_ms > process.last_ms):
            process.last_ms = at_ms

    def _at_ms(self, parts: Parts) -> tuple[float | None, str | None]:
        """Return the UTC time of a line in ms, and what is doubtful of it: its two clocks disagree.

        A line is not written before the time that it prints, but its nano clock may be read late.
        Without a nano clock, lines of one millisecond keep the order of the log. A line without a
        time gets that of the line before.
        """
        logged = parts.logged_ms
        if logged is not None:
            self._last_ms = float(logged)
        if self.parser.numbered:
            offset = self.offsets.get(self.process.number)
            if parts.nanos is None or offset is None:
                return self._last_ms, self._unplaced(logged)
            if isnan(offset):
                return self._last_ms, NOT_ITS_OWN
            exact = parts.nanos / 1e6 + offset
            if logged is None:
                return exact, None
            shown = self._shown_on_right_clock(exact, logged)
            if not -CLOCK_MS <= exact - shown <= PAUSE_MS:
                return exact, NOT_ITS_OWN
            return min(exact, shown + 1.0), None
        if logged is None:
            return self._last_ms, None
        self._within_ms[logged] += 1
        return logged + 0.5 + self._within_ms[logged] / 1_000, self._unplaced(logged)

    def _unplaced(self, logged: float | None) -> str | None:
        """Return a doubt about a process: its first line that the wall clock alone places."""
        if logged is None or self._is_unplaced:
            return None
        self._is_unplaced = any(skew.may_show(logged) for skew in self._skews)
        return UNPLACED if self._is_unplaced else None

    def _shown_on_right_clock(self, exact: float, logged: float) -> float:
        """Return the time that a line shows, as the right clock would have had it.

        Where a fault may have set the clock off, it is the nearer one to the nano clock.
        """
        off = (logged - skew.by_ms for skew in self._skews if skew.lasts_at(exact))
        return min((logged, *off), key=lambda shown: abs(exact - shown))

    def _request(self, logged_ms: float | None, logged: LoggedRequest, body: str = "") -> str:
        if self.parser.is_foreign(logged.group):
            return "irrelevant"
        on_wire = self.parser.on_wire
        if on_wire and body.endswith(COPIED):
            logged = logged._replace(connection=f"{logged.connection}{COPY}")
        times = (logged.times_on_wire if on_wire else logged.times)(logged_ms)
        if on_wire:  # what the broker did last was to answer
            logged_ms = times.answered_ms
        number = (logged.connection, logged.correlation_id)
        readable = logged.readable and logged_ms is not None
        if self._seen[number]:
            readable = readable and self._seen[number] <= self._copies(logged, times.answered_ms)
        self._seen[number] += 1
        self.rows["requests"].append(
            (
                f"{self.broker}:{self.line}",
                self.broker,
                self.file,
                self.line,
                logged.group,
                logged.api,
                logged.api_version,
                logged.client_id,
                logged.connection,
                logged.correlation_id,
                *times,
                logged_ms,
                logged.error_code,
                logged.request,
                logged.response,
                readable,
            )
        )
        return "used" if readable else "rejected"

    def _copies(self, logged: LoggedRequest, answered_ms: float | None) -> int:
        """Return how often the tap sent a request once more."""
        if logged.client_id is None or logged.api is None or logged.connection is None:
            return 0
        if logged.correlation_id is None or answered_ms is None or self.parser.on_wire:
            return 0
        key = logged.client_id, logged.api, logged.correlation_id
        return self._deliveries.copies(key, logged.connection, answered_ms)

    def _coordinator_line(self, sn: int | None, at_ms: float | None, parts: Parts) -> str:
        parsed = self.parser.coordinator_line(self.broker, parts.logger, parts.body)
        if at_ms is None:
            parsed = NO_LINE
        process = self.process
        if parsed.partition is not None:
            process.partition = max(parsed.partition, process.partition or 0)
        process.ended |= parsed.template == self.grammar.last_template
        if self.parser.is_foreign(parsed.fields.get("group")):
            return "irrelevant"
        self.rows["transitions"].append(
            (
                self.broker,
                self.file,
                self.line,
                process.number,
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
            )
        )
        return "rejected" if parsed.template is None else "used"

    def end(self) -> list[ProcessPart]:
        """End; return what was read of each process."""
        self._end_process()
        return self._parts

    def _end_process(self) -> None:
        part, placed = self.process, sorted(self._placed)
        part.counts = dict(self._counts)
        if placed:
            _, lines, times_ms = zip(*placed, strict=True)
            part.lines = min(lines), max(lines)
            part.times_ms = min(times_ms), max(times_ms)
            part.runs = list(runs(placed))
        self._parts.append(part)
