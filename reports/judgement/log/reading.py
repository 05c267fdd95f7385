"""Reads a split of a broker's log: its lines in; rows by bucket of group, and one summary, out.

Each line is parsed once. What its time, its number and its process are is known only when all
splits are read (`merging`), so that rows hold what the line shows: its place in the split, its
serial number and both clocks. Rows are packed (MessagePack), those of a bucket of groups together.

lines read = used + irrelevant + rejected: a line that no template matches is counted as rejected.
"""

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from kafka_protocol import tap_lines
from kafka_protocol.request_log import COMPLETED
from kafka_protocol.request_log import LOGGER as REQUEST_LOGGER
from reports.judgement.coordinators.coordinator_epochs import EPOCH_TEMPLATES
from reports.judgement.log.parsing import (
    INT,
    LoggedRequest,
    Parser,
    Parts,
    number,
    parse_request,
    parse_unanswered,
)
from reports.judgement.log.split_rows import (
    BLOCK,
    GOES_ON,
    REQUEST_ROW,
    WHOLE,
    Blob,
    How,
    Packing,
    Placed,
    ProcessSummary,
    Rows,
    SplitSummary,
    Time,
    runs,
)
from reports.judgement.missing.gaps import ENDS_OF_GROUPS, ENDS_OF_OFFSETS
from reports.judgement.run.deliveries import COPY
from reports.judgement.run.disturbance import of_broker
from reports.judgement.timelines.member_lines import FENCED
from reports.timing import SHOWN_OFF_MS

COPIED = f"{tap_lines.COPY}}}}}"
"""What the line of a request ends with that the tap sent a second time: it has the number of the
first one."""
_COPIED = f"{COPIED} ({REQUEST_LOGGER})".encode()
TEXT_SHOWN = 300  # how many characters of a line the table `coverage` keeps
OF_ALL_GROUPS = frozenset((*EPOCH_TEMPLATES, FENCED, *ENDS_OF_GROUPS, *ENDS_OF_OFFSETS))
"""The templates of lines that a summary holds, since every group is judged by them."""


_API, _CLIENT, _CONNECTION = map(REQUEST_ROW.index, ("api", "client_id", "connection"))


def read(
    lines: Iterable[bytes], broker: str, parser: Parser, how: How = WHOLE
) -> Iterator[Blob | SplitSummary]:
    """Read the lines of a split of a broker's log: yield its rows, and in the end its summary."""
    reader, left = _Reader(broker, parser, how), BLOCK
    for line in lines:
        reader.add(line)
        left -= len(line)
        if left < 0:
            yield from reader.blobs()
            left = BLOCK
    yield from reader.blobs()
    yield reader.end()


class _Reader:
    """Reads a split line after line; rows wait until `blobs` gives them out.

    `time` is what the last line shows of its time, `sn` its serial number.
    """

    def __init__(self, broker: str, parser: Parser, how: How) -> None:
        self.broker, self.parser, self.how = broker, parser, how
        self.skews = of_broker(parser.skews, broker)
        self.early_ms = SHOWN_OFF_MS + max((abs(skew.by_ms) for skew in self.skews), default=0.0)
        self.ruled = bool(how.deliveries.by_request) and not parser.on_wire
        self.span_ends = [until_ms + self.early_ms for _, until_ms in how.spans]
        self.rows: dict[str | None, Rows] = {}
        self.summary = SplitSummary([])
        self.clients: set[tuple[str, str]] = set()
        self.packing = Packing(how.buckets, self.early_ms)
        self.line = 0
        self.before = b""
        self.sn: int | None = None
        self.time: Time = (None, None)
        self.begin()

    def begin(self) -> None:
        """Begin a process."""
        self.number = len(self.summary.processes)
        self.process = ProcessSummary()
        self.summary.processes.append(self.process)
        self.counts: Counter[str] = Counter()
        self.apart_us: Counter[int] = Counter()
        self.placed: list[Placed] = []
        self.requests: dict[str, list[int]] = defaultdict(list)

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
            self.begin()
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
        elif parser.on_wire and parts.body.startswith(tap_lines.HIT):
            status = "irrelevant"
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
            self.sn, self.time = sn, (self.summary.last_ms, None)
            return
        self.summary.last_ms = ms
        is_off = bool(self.skews) and any(one.may_show(ms) for one in self.skews)
        if is_off and process.off is None:
            process.off = self.line, ms
        if not self.parser.numbered:
            sn, tick = process.count, self.tick_within(ms)
        elif nanos is not None and not is_off:
            self.apart_us[(ms * 1_000_000 - nanos) // 1_000] += 1
        self.sn, self.time = sn, (ms, tick)
        if sn is not None and tick is not None:
            self.placed.append((sn, self.line, self.time))

    def tick_within(self, ms: int) -> int:
        """Return the place of a line among those around it that show the same ms."""
        process, (last_ms, tick) = self.process, self.process.last
        if tick is None:
            process.first_ms, tick = ms, 0 if self.number else GOES_ON
        elif ms != last_ms:
            tick = 0
        process.last = ms, tick + 1
        return tick + 1

    def count(self, status: str, line: bytes) -> None:
        """Count a line; keep one that is not used."""
        self.counts[status] += 1
        if status != "used":
            text = line[: 4 * TEXT_SHOWN].decode("utf-8", "replace")[:TEXT_SHOWN]
            head = (self.line, self.number, self.sn, *self.time)
            self.of(None).unused.append((*head, status, text if status == "rejected" else None))

    def of(self, group: str | None) -> Rows:
        """Return the rows of a group, so far."""
        rows = self.rows.get(group)
        if rows is None:
            rows = self.rows[group] = Rows.of(group)
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
            (self.line, self.number, self.sn, *self.time, api, version, client, connection, serial,
             request, response, code, times_ms, readable)
        )  # fmt: skip
        answering_ms = 0.0 if times_ms is None else times_ms[4] + times_ms[5]
        if readable and connection is not None and serial is not None and ms is not None:
            self.requests[connection] += serial, self.line
            if self.ruled:
                key: Any = client, api, serial
                copies = self.how.deliveries.copies(key, connection, ms - answering_ms)
                self.process.copies += [(connection, serial, copies)] if copies else []
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
            self.line, self.number, self.sn, *self.time, parts.level, template, partition, group,
            fields.get("member"), fields.get("instance"), numbered("generation"),
            numbered("members"), numbered("static_members"), fields.get("reason"),
            numbered("epoch"), message,
        )  # fmt: skip
        self.of(group).lines.append(row)
        if template in OF_ALL_GROUPS:
            self.summary.of_all_groups.append(row)
        self.sign()
        return "rejected" if template is None else "used"

    def sign(self, since_ms: float = 0.0) -> None:
        """Note the time of a line within the spans asked for, at which a broker worked."""
        ms, tick = self.time
        if self.span_ends and ms is not None:
            at_ms, spans = ms - since_ms, self.how.spans
            place = bisect_right(self.span_ends, at_ms)
            if place < len(spans) and spans[place][0] - self.early_ms <= at_ms:
                self.summary.signs.append((self.number, ms, tick, since_ms))

    def blobs(self) -> Iterator[Blob]:
        """Give out the rows of the lines read so far."""
        for rows in self.rows.values() if self.how.apis else ():
            self.clients.update(
                (row[_CONNECTION], row[_CLIENT])
                for row in rows.requests
                if row[-1] and row[_API] in self.how.apis
            )
        # lines without a group go to one bucket or the other
        yield from self.packing.blobs(self.rows.values(), nobody=f"{self.broker} {self.line}")
        self.rows = {}

    def end(self) -> SplitSummary:
        """End; return the summary."""
        self.close()
        self.summary.rows = dict(self.packing.counted)
        self.summary.large = sorted(self.packing.large)
        self.summary.clients = [*self.clients]
        return self.summary

    def close(self) -> None:
        """End a process."""
        process, placed = self.process, sorted(self.placed)
        process.counts = dict(self.counts)
        process.apart_us = dict(self.apart_us)
        process.requests = {of: array("i", lines).tobytes() for of, lines in self.requests.items()}
        if placed:
            process.lines = self.placed[0][1], self.placed[-1][1]
            process.runs = runs(placed)
            times, tick = [time for *_, time in placed], itemgetter(1)
            process.times = [min(times), max(times), min(times, key=tick), max(times, key=tick)]
