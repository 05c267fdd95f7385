"""Reads a broker's log: the lines of its files in; rows by bucket of group, and one summary, out.

Each line is parsed once. The time of a line is known only when its process ends, so that rows hold
what the line shows: its serial number and both clocks. Rows are packed (MessagePack), those of a
bucket of groups together.

lines read = used + irrelevant + rejected: a line that no template matches is counted as rejected.
"""

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan
from operator import itemgetter
from typing import Any

from kafka_protocol import tap_lines
from kafka_protocol.request_log import COMPLETED
from kafka_protocol.request_log import LOGGER as REQUEST_LOGGER
from reports.judgement.coordinators.coordinator_epochs import LINES
from reports.judgement.log.broker_log import Place, offset_ms
from reports.judgement.log.log_rows import (
    BLOCK,
    END_MISSING,
    REQUEST_ROW,
    START_MISSING,
    STATUSES,
    WHOLE,
    Blob,
    How,
    LogSummary,
    Packing,
    Row,
    Rows,
    Run,
    Time,
    doubled,
    joined,
    missing,
)
from reports.judgement.log.parsing import (
    INT,
    LoggedRequest,
    Parser,
    Parts,
    number,
    parse_request,
    parse_unanswered,
)
from reports.judgement.missing.gaps import ENDS_OF_GROUPS, ENDS_OF_OFFSETS
from reports.judgement.run.deliveries import COPY
from reports.judgement.run.disturbance import UNPLACED, of_broker
from reports.judgement.timelines.line_fields import FENCED
from reports.timing import CLOCK_AHEAD_MS, CLOCK_BEHIND_MS, SHOWN_OFF_MS

COPIED = f"{tap_lines.COPY}}}}}"
"""What the line of a request ends with that the tap sent a second time: it has the number of the
first one."""
_COPIED = f"{COPIED} ({REQUEST_LOGGER})".encode()
TEXT_SHOWN = 300  # how many characters of a line the table `coverage` keeps
OF_ALL_GROUPS = frozenset((*LINES, FENCED, *ENDS_OF_GROUPS, *ENDS_OF_OFFSETS))
"""The templates of lines that a summary holds, since every group is judged by them."""


_API, _CLIENT, _CONNECTION = map(REQUEST_ROW.index, ("api", "client_id", "connection"))


def read(
    files: Iterable[tuple[str, Iterable[bytes]]],
    broker: str,
    parser: Parser,
    how: How = WHOLE,
    after: int = 0,
) -> Iterator[Blob | LogSummary]:
    """Read a broker's log: yield its rows, and in the end its summary.

    Its files have names and lines, and come in its order, `after` so many other lines.
    """
    reader, left = _Reader(broker, parser, how, after), BLOCK
    for file, lines in files:
        reader.open(file)
        for line in lines:
            reader.add(line)
            left -= len(line)
            if left < 0:
                yield from reader.blobs()
                left = BLOCK
        yield from reader.blobs()
    yield reader.end()


@dataclass(slots=True)
class _Process:
    """What is read of a broker process; a restarted broker goes on in its log."""

    number: int
    count: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    partition: int | None = None  # the highest of `__consumer_offsets` that a line names
    ended: bool = False  # whether the last line is there, the coordinator's or the tap's
    lines: tuple[int, int] = (0, 0)  # the first and the last with a serial number
    times: list[Time] = field(default_factory=list)
    """The least and the greatest times of lines, by either clock."""
    runs: list[Run] = field(default_factory=list)
    requests: dict[str, "array[int]"] = field(default_factory=lambda: defaultdict(_numbers))
    """The readable requests of each connection: correlation ids and lines."""
    copies: dict[tuple[str, int], int] = field(default_factory=dict)
    """How often the tap sent requests again, by connection and correlation id."""
    apart_us: Counter[int] = field(default_factory=Counter)
    """Lines with both clocks, by printed time minus nano clock in whole microseconds; only of times
    at which no fault had set the clock off."""
    last: Time = (None, 0)  # the last time, on lines without a nano clock
    off: tuple[int, int] | None = None
    """The first line, and its ms, of a time at which a fault may have set the clock off."""
    signs: list[tuple[int, int | None, float]] = field(default_factory=list)
    """The times of lines within the spans asked for, and how long before requests were answered."""


def _numbers() -> "array[int]":
    return array("i")


class _Reader:
    """Reads a log line after line; rows wait until `blobs` gives them out.

    `time` is what the last line shows of its time, `sn` its serial number.
    """

    def __init__(self, broker: str, parser: Parser, how: How, after: int) -> None:
        self.broker, self.parser, self.how = broker, parser, how
        self.skews = of_broker(parser.skews, broker)
        self.early_ms = SHOWN_OFF_MS + max((abs(skew.by_ms) for skew in self.skews), default=0.0)
        self.ruled = bool(how.deliveries.by_request) and not parser.on_wire
        self.span_ends = [until_ms + self.early_ms for _, until_ms in how.spans]
        self.rows: dict[str | None, Rows] = {}
        self.summary = LogSummary(broker)
        self.clients: set[tuple[str, str]] = set()
        self.packing = Packing(how.buckets, self.early_ms)
        self.line, self.file, self.before = after, "", b""
        self.sn: int | None = None
        self.last_ms: int | None = None
        self.time: Time = (None, None)
        self.placed: list[Run] = []
        self.of_all_groups: list[Row] = []
        self.process = _Process(0)

    def open(self, file: str) -> None:
        """Begin with a file."""
        self.file = file
        self.summary.files.append((self.line, file))

    def add(self, line: bytes) -> None:
        """Read the next line."""
        self.line += 1
        found = self.parser.typed_request(line)
        if found is None:
            self.add_any(line := line.rstrip(b"\r\n"))
        else:
            sn, ms, nanos, logged = found
            self.process.count += 1
            self.show(sn, ms, nanos)
            if line == self.before:  # no broker writes a line twice at one time
                self.count("rejected", line)
            else:
                copied = self.parser.on_wire and line.endswith(_COPIED)
                self.count(self.request(logged, copied=copied), line)
        self.before = line

    def add_any(self, line: bytes) -> None:
        """Read a line of any form."""
        parser, parts = self.parser, self.parser.split(line.decode("utf-8", "replace"))
        if parts.body.endswith(parser.grammar.first_line_end):
            self.close()
            self.process = _Process(self.process.number + 1)
        self.process.count += 1
        self.show(parts.sn, parts.logged_ms, parts.nanos)
        if line == self.before:
            status = "rejected"
        elif parts.logger == REQUEST_LOGGER and parts.body.startswith(COMPLETED):
            copied = parser.on_wire and parts.body.endswith(COPIED)
            status = self.request(parse_request(parts.body), copied=copied)
        elif parser.on_wire and parts.body.startswith(tap_lines.UNANSWERED):
            unanswered = parse_unanswered(parts.body)
            status = "irrelevant" if unanswered is None else self.request(unanswered)
        elif parser.on_wire and parts[-2:] == (tap_lines.ENDED, tap_lines.LOGGER):
            self.process.ended, status = True, "irrelevant"
        elif parser.is_of_coordinator(parts.logger):
            status = self.coordinator_line(parts)
        else:
            known = parts.logger in parser.grammar.irrelevant_loggers and not parser.on_wire
            status = "irrelevant" if known else "rejected"
        self.count(status, line)

    def show(self, sn: int | None, ms: int | None, nanos: int | None) -> None:
        """Note what a line shows of its time."""
        process, tick = self.process, nanos
        if ms is None:
            self.sn, self.time = sn, (self.last_ms, None)
            return
        self.last_ms = ms
        is_off = bool(self.skews) and any(one.may_show(ms) for one in self.skews)
        if is_off and process.off is None:
            process.off = self.line, ms
        if not self.parser.numbered:
            sn, tick = process.count, self.tick_within(ms)
        elif nanos is not None and not is_off:
            process.apart_us[(ms * 1_000_000 - nanos) // 1_000] += 1
        self.sn, self.time = sn, (ms, tick)
        if sn is not None and tick is not None:
            self.placed.append(Run(sn, sn, self.line, self.time))

    def tick_within(self, ms: int) -> int:
        """Return the place of a line among those around it that show the same ms."""
        last_ms, tick = self.process.last
        tick = (tick or 0) + 1 if ms == last_ms else 1
        self.process.last = ms, tick
        return tick

    def count(self, status: str, line: bytes) -> None:
        """Count a line; keep one that is not used."""
        self.process.counts[status] += 1
        if status != "used":
            text = line[: 4 * TEXT_SHOWN].decode("utf-8", "replace")[:TEXT_SHOWN]
            head = (self.line, self.process.number, self.sn, *self.time)
            self.of(None).unused.append((*head, status, text if status == "rejected" else None))

    def of(self, group: str | None) -> Rows:
        """Return the rows of a group, so far."""
        rows = self.rows.get(group)
        if rows is None:
            rows = self.rows[group] = Rows.of(group, self.file)
        return rows

    def request(self, logged: LoggedRequest, *, copied: bool = False) -> str:
        """Take the request of a line; return what the line counts as."""
        (group, api, version, client, serial, connection, request, response, code, times_ms,
         readable) = logged  # fmt: skip
        if self.parser.is_foreign(group):
            return "irrelevant"
        if copied:
            connection = f"{connection}{COPY}"
        ms = self.time[0]
        readable = readable and ms is not None
        self.of(group).requests.append(
            (self.line, self.process.number, self.sn, *self.time, api, version, client, connection,
             serial, request, response, code, times_ms, readable)
        )  # fmt: skip
        answering_ms = 0.0 if times_ms is None else times_ms[4] + times_ms[5]
        if readable and connection is not None and serial is not None and ms is not None:
            self.process.requests[connection].extend((serial, self.line))
            if self.ruled:
                key: Any = client, api, serial
                copies = self.how.deliveries.copies(key, connection, ms - answering_ms)
                if copies:
                    self.process.copies[connection, serial] = copies
        # what a broker did last was to write the line or, where the tap wrote it, to answer
        self.sign(answering_ms if self.parser.on_wire else 0.0)
        return "used" if readable else "rejected"

    def coordinator_line(self, parts: Parts) -> str:
        """Take a line of the coordinator; return what it counts as. One without a time is empty."""
        parser, process = self.parser, self.process
        body = "" if self.time[0] is None else parts.body
        message, named, template, fields = parser.lines.parsed(self.broker, parts.logger, body)
        partition = number(named or fields.get("partition"), INT)
        if partition is not None:
            process.partition = max(partition, process.partition or 0)
        process.ended |= template == parser.grammar.last_template
        group = fields.get("group")
        if parser.is_foreign(group):
            return "irrelevant"
        numbered = lambda name: number(fields.get(name), INT)
        row = (
            self.line, process.number, self.sn, *self.time, parts.level, template, partition, group,
            fields.get("member"), fields.get("instance"), numbered("generation"),
            numbered("members"), numbered("static_members"), fields.get("reason"),
            numbered("epoch"), message,
        )  # fmt: skip
        self.of(group).lines.append(row)
        if template in OF_ALL_GROUPS:
            self.of_all_groups.append((*row, self.file))
        self.sign()
        return "rejected" if template is None else "used"

    def sign(self, since_ms: float = 0.0) -> None:
        """Note the time of a line within the spans asked for, at which a broker worked."""
        ms, tick = self.time
        if self.span_ends and ms is not None:
            at_ms, spans = ms - since_ms, self.how.spans
            place = bisect_right(self.span_ends, at_ms)
            if place < len(spans) and spans[place][0] - self.early_ms <= at_ms:
                self.process.signs.append((ms, tick, since_ms))

    def blobs(self) -> Iterator[Blob]:
        """Give out the rows of the lines read so far."""
        self.join()
        for rows in self.rows.values() if self.how.apis else ():
            self.clients.update(
                (row[_CONNECTION], row[_CLIENT])
                for row in rows.requests
                if row[-1] and row[_API] in self.how.apis
            )
        # lines without a group go to one bucket or the other
        yield from self.packing.blobs(self.rows.values(), nobody=f"{self.broker} {self.line}")
        self.rows = {}

    def join(self) -> None:
        """Join what is known of the process's lines read so far to few numbers and times."""
        process, placed, self.placed = self.process, self.placed, []
        if placed:
            process.lines = process.lines[0] or placed[0].line, placed[-1].line
            times, tick = [*process.times, *(one.at for one in placed)], itemgetter(1)
            process.times = [min(times), max(times), min(times, key=tick), max(times, key=tick)]
            process.runs = list(joined([*process.runs, *placed]))

    def end(self) -> LogSummary:
        """End; return the summary."""
        self.close()
        summary = self.summary
        place = Place.of(summary, self.parser)
        for row in self.of_all_groups:
            summary.of_all_groups += place.placed([row[:-1]], file=row[-1])
        summary.lines = self.line
        summary.rows = dict(self.packing.counted)
        summary.large = sorted(self.packing.large)
        summary.clients = [*self.clients]
        return summary

    def close(self) -> None:
        """End a process."""
        self.join()
        process, summary = self.process, self.summary
        number, counts = process.number, process.counts
        if process.apart_us:
            summary.offsets[number] = offset_ms(process.apart_us)
        summary.doubled[number] = doubled(process.runs)
        again = list(self.repeated())
        summary.repeated += again
        summary.is_off |= self.is_off(summary.offsets.get(number))
        if not counts:
            return  # a log that begins with a process's first line has nothing before it
        counts.update(used=-len(again), rejected=len(again))
        place = Place.of(summary, self.parser)
        timed = (place.at_ms(number, *time) for time in process.times)
        times_ms = [at_ms for at_ms in timed if at_ms is not None]
        summary.processes.append(
            {
                "broker": self.broker,
                "process": number,
                "last_ms": max(times_ms, default=None),
                "partition": process.partition,
                **{status: counts[status] for status in STATUSES},
            }
        )
        summary.lost += ((self.broker, number, *gap) for gap in self.gaps(place, times_ms))
        for ms, tick, since_ms in process.signs:
            if (at_ms := place.at_ms(number, ms, tick)) is not None:
                summary.signs.append(at_ms - since_ms)

    def repeated(self) -> Iterator[int]:
        """Yield the lines of a process whose requests stand before."""
        for connection, found in self.process.requests.items():
            numbers = found[::2]
            if len({*numbers}) == len(numbers):
                continue
            seen: Counter[int] = Counter()
            for serial, line in zip(numbers, found[1::2], strict=True):
                if seen[serial] > self.process.copies.get((connection, serial), 0):
                    yield line
                seen[serial] += 1

    def is_off(self, offset: float | None) -> bool:
        """Whether the two clocks of a line disagree."""
        if offset is None or isnan(offset):
            return offset is not None
        latest_us = (offset + CLOCK_AHEAD_MS) * 1_000
        earliest_us = (offset - CLOCK_BEHIND_MS) * 1_000
        return any(not earliest_us < us < latest_us - 1 for us in self.process.apart_us)

    def gaps(self, place: Place, times_ms: Sequence[float]) -> Iterator[tuple[float, int, str]]:
        """Find the gaps of a process: in its serial numbers, its times, its start and its end.

        What the tap saw is one process, without the line that begins that of a broker.
        """
        process = self.process
        for run, count in missing(process.runs):
            at_ms = place.at_ms(process.number, *run.at) or 0.0
            yield at_ms, run.line, f"{count} lines missing before serial number {run.first}"
        if process.off and process.number not in place.offsets:
            line, ms = process.off
            yield float(ms), line, UNPLACED
        if not process.runs:
            return
        if process.runs[0].first != 1 or (process.number == 0 and not self.parser.on_wire):
            yield min(times_ms), process.lines[0], START_MISSING
        if not process.ended:
            yield max(times_ms), process.lines[1], END_MISSING
