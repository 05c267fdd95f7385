"""One line of a `server.log` in; its status and the coordinator's lines in it out."""

import re
from datetime import tzinfo
from typing import NamedTuple

import msgspec

from kafka_protocol.coordinator_lines import ALL_GRAMMARS, JAVA, SCALA
from kafka_protocol.coordinator_lines.any_release import PREFIX, AnyRelease, KnownLine
from kafka_protocol.stock_log import Record, begins_record, epoch_ms, records
from reports.judgement.log.log_bytes import DAMAGED, TOO_LONG

USED, IRRELEVANT, REJECTED = "used", "irrelevant", "rejected"
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
    """A coordinator's line; `place` counts records of its split, `line` is its text."""

    at_ms: float
    broker: str
    partition: int | None
    template: str
    group: str | None
    fields: dict[str, str]
    text: str


class Read(NamedTuple):
    """What a line is, the coordinator's lines in it, and why it is rejected if it is."""

    status: str
    lines: list[Line]
    why: str = ""


class Summary(msgspec.Struct):
    """What is known of a file, or of one of its splits.

    `stock` counts lines that begin as the stock form does. `brokers` counts the lines by which a
    broker names itself, `said` those that say it about the process alone. `back_ms` is how far its
    clock jumped back, at most. `damage` says what of the file could not be read.
    """

    statuses: dict[str, int] = {}
    stock: int = 0
    first_ms: float | None = None
    last_ms: float | None = None
    back_ms: float = 0.0
    brokers: dict[str, int] = {}
    said: dict[str, int] = {}
    clusters: set[str] = set()
    others: set[str] = set()
    damage: str = ""

    @property
    def lines(self) -> int:
        """The number of lines."""
        return sum(self.statuses.values())

    def merge(self, later: "Summary") -> None:
        """Add what is known of the split that follows."""
        if self.last_ms is not None and later.first_ms is not None:
            self.back_ms = max(self.back_ms, self.last_ms - later.first_ms)
        self.back_ms = max(self.back_ms, later.back_ms)
        self.first_ms = later.first_ms if self.first_ms is None else self.first_ms
        self.last_ms = self.last_ms if later.last_ms is None else later.last_ms
        self.stock += later.stock
        for mine, more in (
            (self.statuses, later.statuses), (self.brokers, later.brokers), (self.said, later.said)
        ):  # fmt: skip
            for name, count in more.items():
                _count(mine, name, count)
        self.clusters |= later.clusters
        self.others |= later.others
        self.damage = self.damage or later.damage


def _count(counts: dict[str, int], name: str, more: int = 1) -> None:
    counts[name] = counts.get(name, 0) + more


class Reader:
    """Reads the lines of one split, in their order, and keeps its `summary`."""

    def __init__(self, zone: tzinfo) -> None:
        """Take the time zone of the brokers."""
        self.summary = Summary()
        self._zone = zone
        scala = [grammar for grammar in ALL_GRAMMARS if grammar is not JAVA]
        self._by_logger = {JAVA.loggers: AnyRelease([JAVA]), SCALA.loggers: AnyRelease(scala)}
        self._last_date = ""

    def read(self, text: str) -> Read:
        """Read the next line, given without its line end."""
        if text.startswith(_DAMAGED):
            self.summary.damage = text.removeprefix(_DAMAGED)
            return Read(IRRELEVANT, [])
        begins = begins_record(text)
        self.summary.stock += begins
        if begins:
            self._note_time(text[1:24])
        hinted = any(hint in text for hint in _HINTS) or text.startswith(_TOO_LONG)
        read = self._read(text) if hinted else Read(IRRELEVANT, [])
        self._note_names(text, read)
        _count(self.summary.statuses, read.status)
        return read

    def end(self) -> Summary:
        """Return the summary of all that was read."""
        if self._last_date:
            self.summary.last_ms = epoch_ms(self._last_date, self._zone)
        return self.summary

    def _note_time(self, date: str) -> None:
        whole = self.summary
        if whole.first_ms is None:
            whole.first_ms = epoch_ms(date, self._zone)
        if date < self._last_date:
            ended, begins = epoch_ms(self._last_date, self._zone), epoch_ms(date, self._zone)
            if ended is not None and begins is not None:
                whole.back_ms = max(whole.back_ms, float(ended - begins))
        self._last_date = date

    def _note_names(self, text: str, read: Read) -> None:
        for line in read.lines:
            if line.broker:
                _count(self.summary.brokers, line.broker)
        if match := _BROKER.search(text) or _CONFIGURED.match(text):
            _count(self.summary.said, match[1])
        if "luster" in text and (match := _CLUSTER.search(text)):
            self.summary.clusters.add(match[1] or match[2])

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
                self.summary.others.add(other[1])
                return None, ""
            return None, "no grammar has this line of a coordinator"
        if (at_ms := epoch_ms(record.date, self._zone)) is None:
            return None, "a coordinator's line at no possible time"
        partition = known.partition or known.fields.get("partition") or ""
        return Line(
            float(at_ms),
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
