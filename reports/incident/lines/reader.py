"""One line of a `server.log` in; its status and the coordinator's lines in it out."""

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import NamedTuple

from kafka_protocol.coordinator_lines import ALL_GRAMMARS, JAVA, SCALA
from kafka_protocol.coordinator_lines.parser import PREFIX, AnyRelease, KnownLine
from kafka_protocol.stock_log import Record, begins_record, epoch_ms, records
from reports.incident.lines.form import Form
from reports.judgement.log.log_bytes import DAMAGED, TOO_LONG

USED, IRRELEVANT, REJECTED = "used", "irrelevant", "rejected"
NO_TIME = "a coordinator's line without a time"
UNKNOWN_TIME = "a coordinator's line without a time in a known form"
LONGEST = 1_000_000
"""How many characters a line may have. No line of a coordinator comes near; patterns are not tried
on what a damaged file may hold."""

_TOO_LONG, _DAMAGED = TOO_LONG.decode(), DAMAGED.decode()
_HINTS = ("coordinator.", "[GroupCoordinator", "[GroupMetadataManager")
_BROKER = re.compile(
    r"\[(?:KafkaServer|BrokerServer|KafkaRaftServer|BrokerLifecycleManager) (?:id|nodeId)=(\d+)\]"
)
_CONFIGURED = re.compile(r"\t(?:broker|node)\.id = (\d+)")
_CLUSTER = re.compile(
    r"\[BrokerLifecycleManager id=\d+\] Incarnation \S+ of broker \d+ in cluster (\S+) is now"
    r"|(?<=\] INFO )Cluster ID = (\S+) \(kafka\.server\.KafkaServer\)"
)
_OTHER_PROTOCOL = re.compile(r"\[GroupId:? ([^\]]+)\]")
"""How lines about groups of the consumer (KIP-848) and streams (KIP-1071) protocols begin."""


class Line(NamedTuple):
    """A coordinator's line; `text` is the whole of it.

    `source` is the process by the text before its time, such as `kafka-1  |`: lines of one process
    have one broker, also those that do not name it.
    """

    at_ms: float
    broker: str
    partition: int | None
    template: str
    group: str | None
    fields: dict[str, str]
    text: str
    source: str = ""


class Read(NamedTuple):
    """What a line is, the coordinator's lines in it, and why it is rejected if it is."""

    status: str
    lines: list[Line]
    why: str = ""


@dataclass
class SplitSummary:
    """What is known of the lines of one split.

    `statuses` counts the lines, `stock` those that begin as the stock form does. `brokers` counts
    lines by which a broker names itself, `said` those that say it about the process alone.
    `back_ms` is how far the clock jumped back, at most. `damage` says what could not be read.
    """

    statuses: dict[str, int] = field(default_factory=Counter)
    timed: int = 0
    first_ms: float | None = None
    last_ms: float | None = None
    back_ms: float = 0.0
    brokers: dict[str, int] = field(default_factory=Counter)
    said: dict[str, int] = field(default_factory=Counter)
    of_source: dict[str, dict[str, int]] = field(default_factory=dict)
    clusters: set[str] = field(default_factory=set)
    cluster_marks: list[tuple[int, str, str]] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)
    timeless: int = 0
    preparing_rejected: int = 0
    client: int = 0
    nul: int = 0
    damage: str = ""


class Reader:
    """Reads the lines of one split, in their order, and keeps what is known of it."""

    def __init__(self, form: Form, zone: tzinfo) -> None:
        """Take the form of the file, and the time zone of the brokers."""
        self._form = form
        self._seen = SplitSummary()
        self._zone = zone
        scala = [grammar for grammar in ALL_GRAMMARS if grammar is not JAVA]
        self._by_logger = {JAVA.loggers: AnyRelease([JAVA]), SCALA.loggers: AnyRelease(scala)}
        self._last_date = ""

    def summary(self) -> SplitSummary:
        """Return what is known of all that was read."""
        self._seen.last_ms = self._at_ms(self._last_date)
        return self._seen

    def read(self, text: str) -> Read:
        """Read the next line, given without its line end."""
        seen = self._seen
        if text.startswith(_DAMAGED):
            seen.damage = text.removeprefix(_DAMAGED)
            return Read(IRRELEVANT, [])
        if begins_record(text):
            seen.timed += 1
            self._note_time(text[1:24])
        hinted = any(hint in text for hint in _HINTS) or text.startswith(_TOO_LONG)
        read = self._read(text) if hinted else Read(IRRELEVANT, [])
        seen.statuses[read.status] += 1
        for broker in filter(None, (line.broker for line in read.lines)):
            seen.brokers[broker] += 1
        if match := _BROKER.search(text) or _CONFIGURED.match(text):
            seen.said[match[1]] += 1
        if "luster" in text and (match := _CLUSTER.search(text)):
            seen.clusters.add(match[1] or match[2])
            place = sum(seen.statuses.values()) - 1
            seen.cluster_marks.append((place, "", match[1] or match[2]))
        seen.preparing_rejected += bool(read.why) and "Preparing to rebalance" in text
        return read

    def _note_time(self, date: str) -> None:
        if self._seen.first_ms is None:
            self._seen.first_ms = self._at_ms(date)
        if date < self._last_date:
            ended_ms, at_ms = self._at_ms(self._last_date), self._at_ms(date)
            if ended_ms is not None and at_ms is not None:
                self._seen.back_ms = max(self._seen.back_ms, ended_ms - at_ms)
        self._last_date = date

    def _at_ms(self, date: str) -> float | None:
        at_ms = epoch_ms(date, self._zone)
        return None if at_ms is None else float(at_ms)

    def _read(self, text: str) -> Read:
        if len(text) > LONGEST or text.startswith(_TOO_LONG):
            return Read(REJECTED, [], "too many characters in one line")
        before, found = records(text)
        why = "a coordinator's line without its begin" if PREFIX.search(before) else ""
        lines = []
        for record in found:
            line, wrong = self._line(record)
            lines += [line] if line is not None else []
            why = why or wrong
        return Read(REJECTED if why else USED if lines else IRRELEVANT, lines, why)

    def _line(self, record: Record) -> tuple[Line | None, str]:
        """Return the coordinator's line that a record is, or what is wrong with it, or neither."""
        known = self._known(record)
        if known is None:
            cut = PREFIX.match(record.body) is not None
            return None, "a coordinator's line that is cut off or altered" if cut else ""
        if known.template is None:
            if (other := _OTHER_PROTOCOL.match(known.message)) is not None:
                self._seen.others[other[1]] = "another"
                return None, ""
            return None, "no grammar has this line of a coordinator"
        if (at_ms := self._at_ms(record.date)) is None:
            return None, "a coordinator's line at no possible time"
        partition = known.partition or known.fields.get("partition") or ""
        return Line(
            at_ms,
            known.broker,
            int(partition) if partition.isdecimal() and len(partition) < 10 else None,
            known.template,
            known.fields.get("group"),
            dict(known.fields),
            f"[{record.date}] {record.level} {record.body} ({record.logger})",
        ), ""

    def _known(self, record: Record) -> KnownLine | None:
        for begin, grammars in self._by_logger.items():
            if record.logger.startswith(begin):
                return grammars.parsed(record.logger, record.body)
        return None
