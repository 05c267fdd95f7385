"""Places the rows of a split: what its lines show, and where it stands in its log, in; tables out.

The times of lines are computed here, once it is known how far the clocks of their process are
apart (`merging`).
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from math import isnan, nan
from operator import itemgetter
from typing import Any, NamedTuple

from reports.judgement.log.parsing import times_of, times_on_wire
from reports.judgement.log.split_rows import (
    GOES_ON,
    LINE_ROW,
    REQUEST_ROW,
    Blob,
    Lost,
    Row,
    Rows,
    unpacked,
)
from reports.judgement.run.disturbance import Skew
from reports.timing import CLOCK_AHEAD_MS, CLOCK_BEHIND_MS

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
"""  # the lines that are not used: `irrelevant` or `rejected`
GAPS = "broker STRING, process LONG, at_ms DOUBLE, line LONG, what STRING"
TABLES = {
    "requests": REQUESTS, "transitions": TRANSITIONS, "coverage": COVERAGE, "lost": GAPS,
}  # fmt: skip
COLUMNS = {
    name: tuple(column.split()[0] for column in columns.split(","))
    for name, columns in TABLES.items()
}
_READABLE, _TEMPLATE = REQUEST_ROW.index("readable"), LINE_ROW.index("template")


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
    reach_us = range(
        median_us - int(CLOCK_BEHIND_MS * 1_000), median_us + int(CLOCK_AHEAD_MS * 1_000) + 1
    )
    agree = sum(apart_us[us] for us in ordered if us in reach_us)
    return (median_us + 0.5) / 1_000 + 0.5 if 2 * agree >= up_to[-1] else nan


class Place(NamedTuple):
    """Where a split stands in its broker's log, by the lines of the other splits; places its rows.

    `line` and `lines` are the numbers of lines before it, in the log and of the process numbered
    `process`, which goes on. `last_ms` is the last printed time, and `ahead` how many lines show
    it, if the split goes on with it. `offsets` are, by number of process, what to add to its nano
    clock, in ms, to get UTC, and `doubled` its serial numbers, from first to last, that stand
    twice. `repeated` are lines of the split whose requests stand before. If it is `doubtful`,
    clocks of a line may disagree, or numbers stand twice. `skews` are those of the broker. `beside`
    stands before the names of tables where the tap is a second witness.
    """

    broker: str
    file: str
    numbered: bool
    on_wire: bool = False
    skews: Sequence[Skew] = ()
    line: int = 0
    process: int = 0
    lines: int = 0
    ahead: int = 0
    last_ms: int | None = None
    offsets: Mapping[int, float] = {}
    doubled: Mapping[int, Sequence[tuple[int, int]]] = {}
    repeated: frozenset[int] = frozenset()
    doubtful: bool = False
    beside: str = ""

    def at_ms(self, process: int, ms: int | None, tick: int | None) -> float | None:
        """Return when a line was written that shows this time; `process` counts from the split's.

        A line is not written before the time that it prints, but its nano clock may be read late.
        Without a nano clock, lines of one millisecond keep the order of the log. A line without a
        time gets that of the line before.
        """
        if ms is None:
            return None if self.last_ms is None else float(self.last_ms)
        if tick is None:
            return float(ms)
        if not self.numbered:
            return ms + 0.5 + (tick if tick > 0 else tick - GOES_ON + self.ahead) / 1_000
        offset = self.offsets.get(self.process + process)
        if offset is None or isnan(offset):
            return float(ms)
        exact = tick / 1e6 + offset
        shown = self._shown_on_right_clock(exact, ms) if self.skews else ms
        return (
            min(exact, shown + 1.0)
            if -CLOCK_AHEAD_MS <= exact - shown <= CLOCK_BEHIND_MS
            else exact
        )

    def _shown_on_right_clock(self, exact: float, logged: float) -> float:
        """Return the time that a line shows, as the right clock would have had it.

        Where a fault may have set the clock off, it is the nearer one to the nano clock.
        """
        off = (logged - skew.by_ms for skew in self.skews if skew.lasts_at(exact))
        return min((logged, *off), key=lambda shown: abs(exact - shown))

    def tables(self, rows: Rows) -> dict[str, list[Row]]:
        """Return rows of `TABLES`."""
        repeated = self._repeated(rows.requests) if self.repeated else ()
        return {
            "requests": self._requests(rows.group, rows.requests),
            "transitions": self.placed(rows.lines),
            "coverage": [*self.placed(rows.unused), *repeated],
            "lost": [*self._lost(rows)] if self.doubtful else [],
        }

    def _requests(self, group: str | None, rows: Iterable[Row]) -> list[Row]:
        found = []
        broker, file, before, repeated = self.broker, self.file, self.line, self.repeated
        at_ms, on_wire = self.at_ms, self.on_wire
        for (line, process, _, ms, tick, api, version, client, connection, serial, request,
             response, code, times_ms, readable) in rows:  # fmt: skip
            logged_ms = at_ms(process, ms, tick)
            if on_wire:
                times = times_on_wire(times_ms, logged_ms)
                logged_ms = times[-1]  # what the broker did last was to answer
            else:
                times = times_of(times_ms, logged_ms)
            number = before + line
            found.append(
                (f"{broker}:{number}", broker, file, number, group, api, version, client,
                 connection, serial, *times, logged_ms, code, request, response,
                 readable and line not in repeated)
            )  # fmt: skip
        return found

    def placed(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows of `transitions`, or of `coverage`."""
        return [
            (*self._head(line, process, sn), self.at_ms(process, ms, tick), *said)
            for line, process, sn, ms, tick, *said in rows
        ]

    def _repeated(self, requests: Iterable[Row]) -> Iterable[Row]:
        for line, process, sn, ms, tick, api, _, _, connection, serial, *_ in requests:
            if line in self.repeated:
                text = f"{api} {serial} of connection {connection} stands twice"
                at_ms = self.at_ms(process, ms, tick)
                yield *self._head(line, process, sn), at_ms, "rejected", text

    def _lost(self, rows: Rows) -> Iterable[Lost]:
        """Yield rows of `lost`: lines whose clocks disagree, whose serial number stands twice."""
        used = [row for row in rows.requests if row[_READABLE]]
        used += (row for row in rows.lines if row[_TEMPLATE] is not None)
        for line, process, sn, ms, tick, *_ in chain(used, rows.unused):
            if sn is None or (at_ms := self.at_ms(process, ms, tick)) is None:
                continue
            where = self.broker, self.process + process, at_ms, self.line + line
            if self._is_off(process, ms, tick):
                yield *where, NOT_ITS_OWN
            doubled = self.doubled.get(self.process + process, ())
            if any(first <= sn <= last for first, last in doubled):
                yield *where, f"serial number {sn} stands twice"

    def _is_off(self, process: int, ms: int | None, tick: int | None) -> bool:
        """Tell whether the two clocks of a line disagree."""
        offset = self.offsets.get(self.process + process)
        if ms is None or tick is None or offset is None:
            return False
        if isnan(offset):
            return True
        exact = tick / 1e6 + offset
        shown = self._shown_on_right_clock(exact, ms) if self.skews else ms
        return not -CLOCK_AHEAD_MS <= exact - shown <= CLOCK_BEHIND_MS

    def _head(self, line: int, process: int, sn: int | None) -> tuple[Any, ...]:
        if not self.numbered and not process and sn is not None:
            sn += self.lines
        return self.broker, self.file, self.line + line, self.process + process, sn


def tables_of(blobs: Iterable[Blob], place: Place) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a split, by table, in the order of its lines."""
    found: dict[str, list[Row]] = {name: [] for name in TABLES}
    for rows in chain.from_iterable(unpacked(blob.data) for blob in blobs):
        for name, of_table in place.tables(rows).items():
            found[name] += of_table
    by_line = itemgetter("line")
    return {
        name: sorted((dict(zip(COLUMNS[name], row, strict=True)) for row in rows), key=by_line)
        for name, rows in found.items()
    }
