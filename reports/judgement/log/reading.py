"""Reads a split of a broker's log: its lines in; rows by bucket of group, and one summary, out.

Each line is parsed once. What its time, its number and its process are is known only when all
splits are read (`merging`), so that rows hold what the line shows: its place in the split, its
serial number and both clocks. Rows are packed (MessagePack), those of a bucket of groups together.

lines read = used + irrelevant + rejected: a line that no template matches is counted as rejected.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from operator import itemgetter
from typing import NamedTuple

from kafka_protocol import tap_lines
from kafka_protocol.request_log import COMPLETED
from kafka_protocol.request_log import LOGGER as REQUEST_LOGGER
from reports.judgement.coordinators.coordinator_epochs import LINES
from reports.judgement.log.parsing import (
    NO_LINE,
    LoggedRequest,
    Parser,
    Parts,
    parse_request,
    parse_unanswered,
)
from reports.judgement.log.processes import Placed, runs
from reports.judgement.log.split_rows import (
    LINE_ROW,
    REQUEST_ROW,
    WHOLE,
    Blob,
    How,
    Packing,
    ProcessSummary,
    Row,
    Rows,
    SplitSummary,
    Time,
)
from reports.judgement.missing.gaps import ENDS_OF_GROUPS, ENDS_OF_OFFSETS
from reports.judgement.run.deliveries import COPY
from reports.judgement.run.skews import of_broker
from reports.judgement.timelines.said import FENCED

COPIED = f"{tap_lines.COPY}}}}}"
"""What the line of a request ends with that the tap sent a second time: it has the number of the
first one."""
_COPIED = f"{COPIED} ({REQUEST_LOGGER})".encode()
TEXT_SHOWN = 300
"""How many characters of a line the table `coverage` keeps."""
OFF_MS = 1_200.0
"""How far the time that a line shows may be from its own, about (`broker_log`)."""
OF_ALL_GROUPS = frozenset((*LINES, FENCED, *ENDS_OF_GROUPS, *ENDS_OF_OFFSETS))
"""The templates of lines that a summary holds, since every group is judged by them."""
BLOCK = 32 << 20
"""After so many bytes of lines the rows are given out."""
_API, _CLIENT, _CONNECTION = map(REQUEST_ROW.index, ("api", "client_id", "connection"))
Number = tuple[str | None, int | None]
"""A request's connection and correlation id; the same twice in one process is a repeated line, but
for a request that a rule of the tap sent twice."""


def read(
    lines: Iterable[bytes], broker: str, parser: Parser, how: How = WHOLE
) -> Iterator[Blob | SplitSummary]:
    """Read the lines of a split of a broker's log: yield its rows, and in the end its summary."""
    reader, left = Reader(broker, parser, how), BLOCK
    for line in lines:
        reader.add(line)
        left -= len(line)
        if left < 0:
            yield from reader.blobs()
            left = BLOCK
    yield from reader.blobs()
    yield reader.end()


class _Rows(NamedTuple):
    """`Rows` that are collected."""

    requests: list[Row]
    lines: list[Row]
    unused: list[Row]


class Reader:
    """Reads a split line after line; rows wait until `blobs` gives them out.

    `time` is what the last line shows of its time, `sn` its serial number, `request` the request
    that it is about, if it is, and `readable` whether that one is.
    """

    def __init__(self, broker: str, parser: Parser, how: How) -> None:
        """Start before the first line."""
        self.broker, self.parser, self.how = broker, parser, how
        self._skews = of_broker(parser.skews, broker)
        self._early_ms = OFF_MS + max((abs(skew.by_ms) for skew in self._skews), default=0.0)
        self._span_ends = [until_ms + self._early_ms for _, until_ms in how.spans]
        self._rows: dict[str | None, _Rows] = {}
        self._summary = SplitSummary([], signs=[], of_all_groups=[])
        self._clients: set[tuple[str | None, str | None]] = set()
        self._packing = Packing(how.buckets)
        self.line = 0
        self._before = b""
        self.sn: int | None = None
        self.time: Time = (None, None)
        self.request: LoggedRequest | None = None
        self.readable = False
        self._begin()

    def _begin(self) -> None:
        self.process = ProcessSummary()
        self._summary.processes.append(self.process)
        self._counts: Counter[str] = Counter()
        self._apart_us: Counter[int] = Counter()
        self._within_ms: Counter[int] = Counter()
        self._placed: list[Placed] = []
        self._times: list[Time] = []
        self._seen: dict[Number, int] = {}

    @property
    def process_number(self) -> int:
        """The number of the process among those of the split."""
        return len(self._summary.processes) - 1

    def add(self, line: bytes) -> None:
        """Read the next line."""
        self.line += 1
        self.request = None
        found = self.parser.typed_request(line)
        if found is None:
            line = line.rstrip(b"\r\n")
            self._add(line, line.decode("utf-8", "replace"))
        else:
            self.process.count += 1
            self._place(found.sn, found.logged_ms, found.nanos)
            if line == self._before:  # no broker writes a line twice at one time
                self._count("rejected", line)
            else:
                copied = self.parser.on_wire and line.endswith(_COPIED)
                self._count(self._request(found.logged, copied=copied), line)
        self._before = line

    def _add(self, line: bytes, text: str) -> None:
        """Read a line of any form."""
        parser = self.parser
        parts = parser.split(text)
        if parts.body.endswith(parser.grammar.first_line_end):
            self._close()
            self._begin()
        process = self.process
        process.count += 1
        self._place(parts.sn, parts.logged_ms, parts.nanos)
        if line == self._before:
            status = "rejected"
        elif parts.logger == REQUEST_LOGGER and parts.body.startswith(COMPLETED):
            copied = parser.on_wire and parts.body.endswith(COPIED)
            status = self._request(parse_request(parts.body), copied=copied)
        elif parser.on_wire and parts.body.startswith(tap_lines.UNANSWERED):
            unanswered = parse_unanswered(parts.body)
            status = "irrelevant" if unanswered is None else self._request(unanswered)
        elif parser.on_wire and parts[-2:] == (tap_lines.ENDED, tap_lines.LOGGER):
            process.ended, status = True, "irrelevant"
        elif parser.is_of_coordinator(parts.logger):
            status = self._coordinator_line(parts)
        else:
            known = parts.logger in parser.grammar.irrelevant_loggers and not parser.on_wire
            status = "irrelevant" if known else "rejected"
        self._count(status, line)

    def _place(self, sn: int | None, logged_ms: int | None, nanos: int | None) -> None:
        """Note what a line shows of its time."""
        if logged_ms is None:
            self.sn, self.time = sn, (self._summary.last_ms, None)
            return
        self._summary.last_ms = logged_ms
        if self.parser.numbered:
            tick = nanos
            if nanos is not None and not any(one.may_show(logged_ms) for one in self._skews):
                self._apart_us[(logged_ms * 1_000_000 - nanos) // 1_000] += 1
        else:
            sn = self.process.count
            self._within_ms[logged_ms] += 1
            tick = self._within_ms[logged_ms]
        self.sn, self.time = sn, (logged_ms, tick)
        if sn is None:
            self._times.append(self.time)
        else:
            self._placed.append((sn, self.line, self.time))

    def _count(self, status: str, line: bytes) -> None:
        self._counts[status] += 1
        if status != "used":
            text = line[: 4 * TEXT_SHOWN].decode("utf-8", "replace")[:TEXT_SHOWN]
            head = (self.line, self.process_number, self.sn, *self.time)
            self._of(None).unused.append((*head, status, text if status == "rejected" else None))

    def _of(self, group: str | None) -> "_Rows":
        rows = self._rows.get(group)
        if rows is None:
            rows = self._rows[group] = _Rows([], [], [])
        return rows

    def _request(self, logged: LoggedRequest, *, copied: bool = False) -> str:
        group, ms = logged.group, self.time[0]
        if self.parser.is_foreign(group):
            return "irrelevant"
        if copied:
            logged = logged._replace(connection=f"{logged.connection}{COPY}")
        number = (logged.connection, logged.correlation_id)
        readable = logged.readable and ms is not None
        if seen := self._seen.get(number, 0):
            readable = readable and seen <= self.copies(logged)
        self._seen[number] = seen + 1
        self.request, self.readable = logged, readable
        row = (
            self.line, self.process_number, *self.time, logged.api, logged.api_version,
            logged.client_id, *number, logged.request, logged.response, logged.error_code,
            logged.times_ms, readable,
        )  # fmt: skip
        self._of(group).requests.append(row)
        times_ms = logged.times_ms
        if not self.parser.on_wire:
            self._sign()
        elif times_ms is not None:  # what the broker did last was to answer
            self._sign(times_ms[4] + times_ms[5])
        return "used" if readable else "rejected"

    def copies(self, logged: LoggedRequest) -> int:
        """Return how often the tap sent the request of this line once more."""
        ms, times_ms, client = self.time[0], logged.times_ms, logged.client_id
        if self.parser.on_wire or ms is None or times_ms is None or client is None:
            return 0
        if logged.api is None or logged.connection is None or logged.correlation_id is None:
            return 0
        key = client, logged.api, logged.correlation_id
        answered_ms = ms - times_ms[4] - times_ms[5]
        return self.how.deliveries.copies(key, logged.connection, answered_ms)

    def _coordinator_line(self, parts: Parts) -> str:
        parsed = self.parser.coordinator_line(self.broker, parts.logger, parts.body)
        if self.time[0] is None:
            parsed = NO_LINE
        process, fields = self.process, parsed.fields
        if parsed.partition is not None:
            process.partition = max(parsed.partition, process.partition or 0)
        process.ended |= parsed.template == self.parser.grammar.last_template
        group = fields.get("group")
        if self.parser.is_foreign(group):
            return "irrelevant"
        number = parsed.number
        row = (
            self.line, self.process_number, self.sn, *self.time, parts.level, parsed.template,
            parsed.partition, group, fields.get("member"), fields.get("instance"),
            number("generation"), number("members"), number("static_members"),
            fields.get("reason"), number("epoch"), parsed.message,
        )  # fmt: skip
        self._of(group).lines.append(row)
        if parsed.template in OF_ALL_GROUPS:
            self._summary.of_all_groups.append(row)
        self._sign()
        return "rejected" if parsed.template is None else "used"

    def _sign(self, since_ms: float = 0.0) -> None:
        """Note the time of a line within the spans asked for, at which a broker worked."""
        ms, tick = self.time
        if self._span_ends and ms is not None:
            at_ms, spans = ms - since_ms, self.how.spans
            place = bisect_right(self._span_ends, at_ms)
            if place < len(spans) and spans[place][0] - self._early_ms <= at_ms:
                self._summary.signs.append((self.process_number, ms, tick, since_ms))

    def blobs(self) -> Iterator[Blob]:
        """Give out the rows of the lines read so far."""
        for rows in self._rows.values() if self.how.apis else ():
            self._clients.update(
                (row[_CONNECTION], row[_CLIENT])
                for row in rows.requests
                if row[-1] and row[_API] in self.how.apis
            )
        # lines without a group go to one bucket or the other
        block = (
            (f"{self.broker} {self.line}" if group is None else group, Rows(group, *rows))
            for group, rows in self._rows.items()
        )
        yield from self._packing.blobs(block, self._since_ms)
        self._rows = {}

    def _since_ms(self, rows: Rows) -> float:
        ms, times_ms = REQUEST_ROW.index("ms"), REQUEST_ROW.index("times_ms")
        began = [
            row[ms] - row[times_ms][0] if row[ms] is not None and row[times_ms] else -inf
            for row in rows.requests
        ]
        ms = LINE_ROW.index("ms")
        began += (-inf if row[ms] is None else row[ms] for row in rows.lines)
        return min(began) - self._early_ms

    def drop(self) -> None:
        """Forget the rows of the lines read so far."""
        self._rows = {}

    def end(self) -> SplitSummary:
        """End; return the summary."""
        self._close()
        self._summary.rows = dict(self._packing.counted)
        self._summary.large = sorted(self._packing.large)
        self._summary.clients = [*self._clients]
        return self._summary

    def _close(self) -> None:
        process, placed = self.process, sorted(self._placed, key=itemgetter(0, 1))
        process.counts = dict(self._counts)
        if placed:
            lines = [line for _, line, _ in placed]
            process.lines = min(lines), max(lines)
            process.runs = list(runs(placed))
        process.times = _extremes([*self._times, *(time for *_, time in placed)])
        process.connections = _spans_of(self._seen)
        process.apart_us = dict(self._apart_us)
        if counts := self._within_ms:
            process.lowest_ms, highest_ms = min(counts), max(counts)
            if process.lowest_ms < highest_ms - self.how.tail_ms:
                process.told_from_ms = highest_ms - self.how.tail_ms
            process.within_ms = {ms: n for ms, n in counts.items() if ms >= process.told_from_ms}


def _extremes(times: Sequence[Time]) -> list[Time]:
    if not times:
        return []
    tick = lambda time: -1 if time[1] is None else time[1]
    by_ms = lambda time: (time[0], tick(time))
    return [*{min(times, key=by_ms), max(times, key=by_ms), min(times, key=tick),
              max(times, key=tick)}]  # fmt: skip


def _spans_of(numbers: Mapping[Number, int]) -> dict[str, tuple[int, int]]:
    spans: dict[str, tuple[int, int]] = {}
    for connection, number in numbers:
        if connection is not None and number is not None:
            low, high = spans.get(connection, (number, number))
            spans[connection] = min(low, number), max(high, number)
    return spans
