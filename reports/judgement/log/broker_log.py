"""Places the rows of a split: what its lines show, and where it stands in its log, in; tables out.

The times of lines are computed here, once it is known how far the clocks of their process are
apart (`merging`).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import isnan, nan
from typing import Any, NamedTuple

from reports.judgement.log.parsing import LoggedRequest, Parser
from reports.judgement.log.split_rows import Row, Rows
from reports.judgement.run.skews import UNPLACED, of_broker

CLOCK_MS = 50.0
"""How far a printed time may be ahead of the nano clock; more is not this broker's."""
PAUSE_MS = 1_000.0
"""How far a printed time may be behind the nano clock: log4j 2 reads the time first, then the nano
clock, and the thread may be suspended between (`MutableLogEvent.initTime`, log4j-core 2.25.3)."""
NOT_ITS_OWN = "the time it shows is not its broker's"

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
"""The lines that are not used: `irrelevant` or `rejected`."""
GAPS = "broker STRING, process LONG, at_ms DOUBLE, line LONG, what STRING"
TABLES = {
    "requests": REQUESTS, "transitions": TRANSITIONS, "coverage": COVERAGE, "lost": GAPS,
}  # fmt: skip
COLUMNS = {
    name: tuple(column.split()[0] for column in columns.split(","))
    for name, columns in TABLES.items()
}


class Repeated(NamedTuple):
    """The line of a request that a split before has, too: its serial number and its text."""

    sn: int | None
    text: str


class Place(NamedTuple):
    """Where a split stands in its broker's log, by the lines of the other splits.

    `line` and `lines` are the numbers of lines before it, in the log and of the process numbered
    `process`, which goes on. `last_ms` is the last printed time. `within_ms` counts the lines of
    this process by printed time, of times that come again. `offsets` are, by number of process,
    what to add to its nano clock, in ms, to get UTC. `repeated` are lines of requests that another
    split has, too.
    """

    broker: str
    file: str
    line: int = 0
    process: int = 0
    lines: int = 0
    last_ms: int | None = None
    offsets: Mapping[int, float] = {}
    within_ms: Mapping[int, int] = {}
    repeated: Mapping[int, Repeated] = {}


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


class Clock:
    """Tells when the lines of a split were written, in UTC, ms."""

    def __init__(self, place: Place, parser: Parser) -> None:
        """Take where the split stands, and its log's parser."""
        self._place, self._numbered = place, parser.numbered
        self._skews = of_broker(parser.skews, place.broker)
        self._unplaced: set[int] = set()

    def at_ms(self, process: int, ms: int | None, tick: int | None) -> float | None:
        """Return when a line was written that shows this time; `process` counts from the split's.

        A line is not written before the time that it prints, but its nano clock may be read late.
        Without a nano clock, lines of one millisecond keep the order of the log. A line without a
        time gets that of the line before.
        """
        if ms is None:
            last_ms = self._place.last_ms
            return None if last_ms is None else float(last_ms)
        if tick is None:
            return float(ms)
        if not self._numbered:
            before = 0 if process else self._place.within_ms.get(ms, 0)
            return ms + 0.5 + (before + tick) / 1_000
        offset = self._place.offsets.get(self._place.process + process)
        if offset is None or isnan(offset):
            return float(ms)
        exact = tick / 1e6 + offset
        shown = self._shown_on_right_clock(exact, ms) if self._skews else ms
        return min(exact, shown + 1.0) if -CLOCK_MS <= exact - shown <= PAUSE_MS else exact

    def doubt(self, process: int, ms: int | None, tick: int | None) -> str | None:
        """Return what is doubtful of the time of the next line: its two clocks disagree.

        Or, once for each process, that the wall clock alone places it, at a time when that is off.
        """
        if ms is None or (tick is None and self._numbered and not self._skews):
            return None
        offset = self._place.offsets.get(self._place.process + process)
        if not self._numbered or tick is None or offset is None:
            if process in self._unplaced or not any(one.may_show(ms) for one in self._skews):
                return None
            self._unplaced.add(process)
            return UNPLACED
        if isnan(offset):
            return NOT_ITS_OWN
        exact = tick / 1e6 + offset
        apart_ms = exact - self._shown_on_right_clock(exact, ms)
        return None if -CLOCK_MS <= apart_ms <= PAUSE_MS else NOT_ITS_OWN

    def _shown_on_right_clock(self, exact: float, logged: float) -> float:
        """Return the time that a line shows, as the right clock would have had it.

        Where a fault may have set the clock off, it is the nearer one to the nano clock.
        """
        off = (logged - skew.by_ms for skew in self._skews if skew.lasts_at(exact))
        return min((logged, *off), key=lambda shown: abs(exact - shown))


class Placing:
    """Makes rows of `TABLES` of the rows of a split.

    `beside` stands before their names where the tap is a second witness.
    """

    def __init__(self, place: Place, parser: Parser, beside: str = "") -> None:
        """Take where the split stands, and its log's parser."""
        self.beside = beside
        self._place, self._on_wire, self._numbered = place, parser.on_wire, parser.numbered
        self.at_ms = Clock(place, parser).at_ms

    def requests(self, group: str | None, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of `requests`."""
        broker, file, before = self._place.broker, self._place.file, self._place.line
        repeated = self._place.repeated
        for (line, process, ms, tick, api, version, client, connection, serial, request, response,
             code, times_ms, readable) in rows:  # fmt: skip
            logged_ms = self.at_ms(process, ms, tick)
            timed = LoggedRequest(times_ms=times_ms)
            times = timed.times_on_wire(logged_ms) if self._on_wire else timed.times(logged_ms)
            if self._on_wire:  # what the broker did last was to answer
                logged_ms = times.answered_ms
            yield (
                f"{broker}:{before + line}", broker, file, before + line, group, api, version,
                client, connection, serial, *times, logged_ms, code, request, response,
                readable and line not in repeated,
            )  # fmt: skip

    def lines(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of `transitions`."""
        for line, process, sn, ms, tick, *said in rows:
            yield (*self._head(line, process, sn), self.at_ms(process, ms, tick), *said)

    def unused(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of `coverage`."""
        for line, process, sn, ms, tick, status, text in rows:
            head = self._head(line, process, sn)
            yield (*head, self.at_ms(process, ms, tick), status, text)

    def repeated(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of `coverage` of requests that another split has, too."""
        for line, process, ms, tick, *_ in rows if self._place.repeated else ():
            if (found := self._place.repeated.get(line)) is not None:
                head = self._head(line, process, found.sn)
                yield (*head, self.at_ms(process, ms, tick), "rejected", found.text)

    def tables(self, rows: Rows) -> Iterator[tuple[str, Sequence[Row]]]:
        """Yield the rows of the tables, by table."""
        yield "requests", [*self.requests(rows.group, rows.requests)]
        yield "transitions", [*self.lines(rows.lines)]
        yield "coverage", [*self.unused(rows.unused), *self.repeated(rows.requests)]

    def _head(self, line: int, process: int, sn: int | None) -> tuple[Any, ...]:
        place = self._place
        if not self._numbered and not process and sn is not None:
            sn += place.lines
        return place.broker, place.file, place.line + line, place.process + process, sn
