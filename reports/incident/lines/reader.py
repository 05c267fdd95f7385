"""One text of a log in; its status and the coordinator's lines in it out."""

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import NamedTuple

from kafka_protocol.coordinator_lines.parser import PREFIX, PREPARING, KnownLine
from reports.incident.lines.anchor import Anchored, anchored, hinted, is_irrelevant, known_line
from reports.incident.lines.dates import TIME, Moment, moment, shape_of
from reports.incident.lines.form import Form
from reports.incident.lines.peeling import is_time_field
from reports.judgement.log.log_bytes import DAMAGED, TOO_LONG

USED, IRRELEVANT, REJECTED = "used", "irrelevant", "rejected"
LONGEST = 1_000_000
"""How many characters a line may have. No line of a coordinator comes near; patterns are not tried
on what a damaged file may hold."""
CUT_OFF = "a coordinator's line that is cut off or altered"
NO_TIME, NO_DATE = "a coordinator's line without a time", "a coordinator's line without a date"
UNKNOWN_TIME = "a coordinator's line without a time in a known form; --pattern tells its form"
OTHER_PROTOCOL = "is no classic group: this line is of the"
"""Why lines are rejected, as the summary counts them."""

_TOO_LONG, _DAMAGED = TOO_LONG.decode(), DAMAGED.decode()
_BEGIN = re.compile(
    r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[,.]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]? +"
    r"(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ", re.ASCII
)  # fmt: skip
"""Where a line begins, also behind the half that a killed broker left."""
_BROKER = re.compile(r"\[(?:Kafka|Broker|KafkaRaft)(?:Server|LifecycleManager) \w+=(\d+)\]")
_CONFIGURED = re.compile(r"(?<![\w.])(?:broker|node)\.id = (\d+)(?!\d)")
_CLUSTER = re.compile(
    r"\[BrokerLifecycleManager id=\d+\] Incarnation \S+ of broker \d+ in cluster (\S+) is now"
    r"|\bCluster ID = ([\w-]+)(?= \(kafka\.server\.KafkaServer|\W*$)"
)
_OTHER_PROTOCOL = re.compile(
    r"\[GroupId:? ([^\]]+)\](?:.*?\b(consumer|share|streams) (?:group|protocol))?", re.IGNORECASE
)
"""How lines about groups of the consumer (KIP-848), share (KIP-932) and streams (KIP-1071)
protocols begin."""
_CLIENT = re.compile(r"\[(?:Consumer|Producer|AdminClient|Worker) (?:clientId|instanceId)=")
_NUMBERED = re.compile(r"(?:^|:)\d+:$|-\d+-$|\b\d{10,}\b")  # grep's and CloudWatch's
_PUNCTUATION = " \t|,;>'"
_CLOCK = re.compile(r":\d\d\b")


class Line(NamedTuple):
    """A coordinator's line; `text` is its message as the broker wrote it, with the prefix.

    `source` is the process by the text before its time, such as `kafka-1`: lines of one process
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

    `statuses` counts the lines, `timed` those with a time where the file has it. `brokers` counts
    lines by which a broker names itself, `said` those that say it about the process alone, and
    `of_source` both, by the `source` of lines. `clusters` are their ids, and `cluster_marks` say
    which line of the split (from 0), of which source, names which, where that changes. `back_ms` is
    how far the clock jumped back, at most; where it did, `earliest_ms` is the least time after it,
    and `latest_ms` the greatest before it. `damage` says what could not be read.

    `others` are groups of other protocols, each with its protocol. `timeless` counts coordinator's
    lines that were rejected for want of a time, `preparing_rejected` rejected ones that begin a
    rebalance, `client` lines of clients, `nul` lines with zeros between characters, as of UTF-16.
    """

    statuses: dict[str, int] = field(default_factory=Counter)
    timed: int = 0
    first_ms: float | None = None
    last_ms: float | None = None
    earliest_ms: float | None = None
    latest_ms: float | None = None
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
        """Take the form of the file, and the time zone of its times without one.

        The zone that the form has from the file itself goes before it.
        """
        self._form = form
        self._by_clock = "::" in form.shape
        self._time_field: re.Match[str] | None = None
        """The time in JSON with a field on each line, of which the message is one."""
        self._seen = SplitSummary()
        self._zone = datetime.fromisoformat(f"2000-01-01T00:00{form.zone}").tzinfo or zone

    def summary(self) -> SplitSummary:
        """Return what is known of all that was read."""
        return self._seen

    def read(self, text: str) -> Read:
        """Read the next line, given without its line end."""
        seen = self._seen
        if text.startswith(_DAMAGED):
            seen.damage = text.removeprefix(_DAMAGED)
            return Read(IRRELEVANT, [])
        if text.startswith(_TOO_LONG) or len(text) > LONGEST:
            read = Read(REJECTED, [], "too many characters in one line")
        else:
            if "\0" in text:
                seen.nul += 1
                text = text.replace("\0", "")
            noted = self._note_time(text)
            read = self._read(text) if hinted(text) else Read(IRRELEVANT, [])
            self._note_process(text)
            for line in read.lines:
                if not noted:
                    self._note_moment(line.at_ms)
                if line.broker:
                    seen.brokers[line.broker] += 1
                    self._note_broker(line.source, line.broker)
            seen.client += "clientId=" in text and _CLIENT.search(text) is not None
        seen.statuses[read.status] += 1
        return read

    def _note_time(self, text: str) -> bool:
        """Keep the time of any line: that of the broker, behind those of what collected it."""
        if self._by_clock and not _CLOCK.search(text):
            return False
        for match in TIME.finditer(text):
            if is_time_field(text[: match.start()]):
                self._time_field = match
            if shape_of(match[0]) == self._form.shape:
                return self._note_moment(self._moment(match).at_ms(self._zone))
        return False

    def _note_moment(self, at_ms: float | None) -> bool:
        seen = self._seen
        if at_ms is None:
            return False
        seen.timed += 1
        if seen.first_ms is None:
            seen.first_ms = at_ms
        elif seen.last_ms is not None and at_ms < seen.last_ms:
            seen.back_ms = max(seen.back_ms, seen.last_ms - at_ms)
            seen.earliest_ms = min(at_ms, seen.earliest_ms or at_ms)
            seen.latest_ms = max(seen.last_ms, seen.latest_ms or 0.0)
        seen.last_ms = at_ms
        return True

    def _note_process(self, text: str) -> None:
        """Keep what a line says of the process that wrote it: its broker, its cluster."""
        said = (_CONFIGURED if ".id = " in text else _BROKER).search(text)
        cluster = _CLUSTER.search(text) if "luster" in text else None
        if (found := said or cluster) is None:
            return
        source = _source(self._form.lines(text, found.re)[0])
        if said is not None:
            self._seen.said[said[1]] += 1
            self._note_broker(source, said[1])
        if cluster is not None:
            self._note_cluster(source, cluster[1] or cluster[2])

    def _note_broker(self, source: str, broker: str) -> None:
        of_source = self._seen.of_source.setdefault(source, {})
        of_source[broker] = of_source.get(broker, 0) + 1

    def _note_cluster(self, source: str, cluster: str) -> None:
        marks = self._seen.cluster_marks
        self._seen.clusters.add(cluster)
        if next((one for _, of, one in reversed(marks) if of == source), "") != cluster:
            marks.append((sum(self._seen.statuses.values()), source, cluster))

    def _moment(self, match: re.Match[str]) -> Moment:
        return moment(match, self._form.year)

    def _read(self, text: str) -> Read:
        lines, why = list[Line](), ""
        for one in self._form.lines(text):
            begins = [0, *[match.start() for match in _BEGIN.finditer(one)][1:]]
            for begin, end in zip(begins, [*begins[1:], len(one)], strict=True):
                line, wrong = self._line(one[begin:end])
                lines += [line] if line is not None else []
                why = why or wrong
                self._seen.preparing_rejected += bool(wrong) and PREPARING in one[begin:end]
        return Read(REJECTED if why else USED if lines else IRRELEVANT, lines, why)

    def _line(self, text: str) -> tuple[Line | None, str]:
        """Return the coordinator's line that a text is, or what is wrong with it, or neither."""
        at = anchored(text, self._form.tail)
        if at is None and PREFIX.search(f"{text} "):
            return None, CUT_OFF
        if at is None or is_irrelevant(at.logger):
            return None, ""
        if not at.message:
            return None, "no grammar has this line of a coordinator"
        known = known_line(at.message)
        prefixed = PREFIX.match(at.message) is not None
        if known.template is None and not at.logger and not prefixed:
            return None, ""  # words that anybody may write
        if prefixed and (not known.broker or (self._form.names_logger and not at.logger)):
            return None, CUT_OFF
        if known.template in (None, "other_protocol"):
            return None, self._of_no_grammar(known)
        return self._timed(at, known)

    def _timed(self, at: Anchored, known: KnownLine) -> tuple[Line | None, str]:
        times = [*TIME.finditer(at.before)]
        match = times[-1] if times else TIME.search(at.after)
        if match is None and not at.before.strip():
            match = self._time_field
        if match is None:
            self._seen.timeless += 1
            dated = re.search(r"\d[-/.]\d|\d{8}", at.before)
            clock = _CLOCK.search(at.before)
            return None, UNKNOWN_TIME if dated else NO_DATE if clock else NO_TIME
        if (at_ms := self._moment(match).at_ms(self._zone)) is None:
            return None, "a coordinator's line at no possible time"
        partition = known.partition or known.fields.get("partition") or ""
        return Line(
            at_ms,
            known.broker,
            int(partition) if partition.isdecimal() and len(partition) < 10 else None,
            known.template or "",
            known.fields.get("group"),
            dict(known.fields),
            at.message,
            _source(at.before),
        ), ""

    def _of_no_grammar(self, known: KnownLine) -> str:
        other = _OTHER_PROTOCOL.match(known.message)
        if other is None and known.template is None:
            return "no grammar has this line of a coordinator"
        group, said = other.groups() if other else (known.fields["other"], known.fields["protocol"])
        protocol = (said or "another").lower()
        if self._seen.others.get(group, "another") == "another":
            self._seen.others[group] = protocol
        return f"group {group} {OTHER_PROTOCOL} {protocol} protocol"


def _source(before: str) -> str:
    """Return what stands before a line's message of its process, before the broker's time."""
    times = [*TIME.finditer(before)]
    text = TIME.sub("", before[: times[-1].start()]) if times else ""
    bare = _NUMBERED.sub("", text.strip(_PUNCTUATION).removesuffix("["))
    return re.sub(r"^\[([^\[\]]*)\]$", r"\1", " ".join(bare.strip(_PUNCTUATION).split()))
