"""One text of a log in; its status and the coordinator's lines in it out."""

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import pairwise
from typing import NamedTuple

from kafka_protocol.coordinator_lines.parser import PREFIX, PREPARING, KnownLine
from reports.incident.lines.anchor import Anchored, anchored, hinted, is_irrelevant, known_line
from reports.incident.lines.dates import TIME
from reports.incident.lines.form import Form
from reports.incident.lines.peeling import peeled
from reports.judgement.log.log_bytes import DAMAGED, TOO_LONG

USED, IRRELEVANT, REJECTED = "used", "irrelevant", "rejected"
LONGEST = 1_000_000
"""How many characters a line may have. No line of a coordinator comes near; patterns are not tried
on what a damaged file may hold."""
CUT_OFF = "a coordinator's line that is cut off or altered"
NO_TIME, NO_DATE = "a coordinator's line without a time", "a coordinator's line without a date"
UNKNOWN_TIME = "a coordinator's line without a time in a known form; --pattern tells its form"
OTHER_PROTOCOL = "is no classic group: this line is of"
"""Why lines are rejected, as the summary counts them."""

_TOO_LONG, _DAMAGED = TOO_LONG.decode(), DAMAGED.decode()
_BEGIN = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[,.]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]? +"
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
_NO_SOURCE = re.compile(  # grep's and CloudWatch's numbers, and levels
    r"(?:^|:)\d+:$|-\d+-$|\b\d{10,}\b|\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b"
)
_PUNCTUATION = " \t|,;>'"
_DAY = 11
"""No date of a known form has more characters."""


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
    `of_source` both, by the `source` of lines. `cluster_marks` say
    which line of the split (from 0), of which source, names which, where that changes. `back_ms` is
    how far the clock jumped back, at most; where it did, `earliest_ms` is the least time after it,
    and `latest_ms` the greatest before it. `damage` says what could not be read.

    `others` are groups of other protocols, each with its protocol. `preparing_rejected` counts
    rejected lines that begin a rebalance, `client` lines of clients.
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
    cluster_marks: list[tuple[int, str, str]] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)
    preparing_rejected: int = 0
    client: int = 0
    damage: str = ""


class Reader:
    """Reads the lines of one split, in their order, and keeps what is known of it."""

    def __init__(self, form: Form, zone: tzinfo) -> None:
        """Take the form of the file, and the time zone of its times without one.

        The zone that the form has from the file itself goes before it.
        """
        self._form = form
        self._zone = form.zone or zone
        self._seen = SplitSummary()
        self._noted, self._last = False, ""
        """Whether the time of the line is kept already; the last that is."""

    def summary(self) -> SplitSummary:
        """Return what is known of all that was read."""
        last_ms = self._at_ms(self._last)
        self._seen.last_ms = self._seen.last_ms if last_ms is None else last_ms
        return self._seen

    def read(self, text: str) -> Read:
        """Read the next line, given without its line end."""
        seen = self._seen
        if text.startswith(_DAMAGED):
            seen.damage = text.removeprefix(_DAMAGED)
            return Read(IRRELEVANT, [])
        if len(text) > LONGEST or text.startswith(_TOO_LONG):
            seen.statuses[REJECTED] += 1
            return Read(REJECTED, [], "too many characters in one line")
        text = text.replace("\0", "")  # UTF-16 that nobody has decoded
        time = self._form.place.search(text)
        self._noted = time is not None and self._note(time[time.lastindex or 0])
        read = self._read(text) if hinted(text) else Read(IRRELEVANT, [])
        if ".id = " in text or "[Kafka" in text or "[Broker" in text or "luster" in text:
            self._note_process(text)
        for line in read.lines:
            if line.broker:
                seen.brokers[line.broker] += 1
                self._note_broker(line.source, line.broker)
        seen.client += "clientId=" in text and _CLIENT.search(text) is not None
        seen.statuses[read.status] += 1
        return read

    def _note(self, time: str) -> bool:
        """Keep the time of any line, if it is one.

        On one day, those of a known form are in the order of their texts.
        """
        seen, last = self._seen, self._last
        if time < last or time[:_DAY] != last[:_DAY] or self._form.strptime:
            at_ms, last_ms = self._at_ms(time), self._at_ms(last)
            if at_ms is None:
                return False
            if seen.first_ms is None:
                seen.first_ms = at_ms
            elif last_ms is not None and at_ms < last_ms:
                seen.back_ms = max(seen.back_ms, last_ms - at_ms)
                seen.earliest_ms = min(at_ms, seen.earliest_ms or at_ms)
                seen.latest_ms = max(last_ms, seen.latest_ms or 0.0)
            seen.last_ms = at_ms
        self._last = time
        seen.timed += 1
        return True

    def _at_ms(self, time: str) -> float | None:
        return self._form.moment(time).at_ms(self._zone)

    def _note_process(self, text: str) -> None:
        """Keep what a line says of the process that wrote it: its broker, its cluster."""
        said = (_CONFIGURED if ".id = " in text else _BROKER).search(text)
        cluster = _CLUSTER.search(text) if "luster" in text else None
        if (found := said or cluster) is None:
            return
        line = peeled(text, found.re)[0]
        times = [*self._form.time.finditer(line, 0, line.find(found[0]))]
        source = _source(line[: times[-1].start()]) if times else ""
        if said is not None:
            self._seen.said[said[1]] += 1
            self._note_broker(source, said[1])
        if cluster is not None:
            marks, name = self._seen.cluster_marks, cluster[1] or cluster[2]
            if next((one for _, of, one in reversed(marks) if of == source), "") != name:
                marks.append((sum(self._seen.statuses.values()), source, name))

    def _note_broker(self, source: str, broker: str) -> None:
        of_source = self._seen.of_source.setdefault(source, {})
        of_source[broker] = of_source.get(broker, 0) + 1

    def _read(self, text: str) -> Read:
        lines, why = list[Line](), ""
        for one in peeled(text):
            begins = [0, *[match.start() for match in _BEGIN.finditer(one)][1:]]
            for begin, end in pairwise([*begins, len(one)]):
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
        before = at.before
        times = [*self._form.time.finditer(before)]
        times = [one for one in times if ":" in one[0]] or times  # a number may be anything
        match = times[-1] if times else self._form.time.search(at.after)
        if match is None:
            dated = re.search(r"\d[-/.]\d|\d{8}", before)
            clock = re.search(r":\d\d\b", before)
            return None, UNKNOWN_TIME if dated else NO_DATE if clock else NO_TIME
        if (at_ms := self._at_ms(match[0])) is None:
            return None, "a coordinator's line at no possible time"
        if not self._noted:
            self._note(match[0])
        self._noted = False  # the next line in this text has a time of its own
        partition = known.partition or known.fields.get("partition") or ""
        return Line(
            at_ms,
            known.broker,
            int(partition) if partition.isdecimal() and len(partition) < 10 else None,
            known.template or "",
            known.fields.get("group"),
            dict(known.fields),
            at.message,
            _source(before[: times[-1].start()]) if times else "",
        ), ""

    def _of_no_grammar(self, known: KnownLine) -> str:
        other = _OTHER_PROTOCOL.match(known.message)
        if other is None and known.template is None:
            return "no grammar has this line of a coordinator"
        group, said = other.groups() if other else (known.fields["other"], known.fields["protocol"])
        protocol = (said or "another").lower()
        if self._seen.others.get(group, "another") == "another":
            self._seen.others[group] = protocol
        return f"group {group} {OTHER_PROTOCOL} {'the ' if said else ''}{protocol} protocol"


def _source(before: str) -> str:
    """Return the process that a line names, by what stands before the broker's time."""
    bare = before.strip(_PUNCTUATION).removesuffix("[")
    if not bare:
        return ""
    bare = _NO_SOURCE.sub("", TIME.sub("", bare))
    return re.sub(r"^\[([^\[\]]*)\]$", r"\1", " ".join(bare.strip(_PUNCTUATION).split()))
