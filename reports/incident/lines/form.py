"""How the lines of a file are written: its first lines in; the form of all of them out."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import islice
from os.path import commonprefix

from reports.incident.lines.anchor import ANCHOR, Anchored, anchored, hinted, known_line
from reports.incident.lines.dates import TIME, Moment, moment
from reports.incident.lines.log4j_pattern import form_fields
from reports.incident.lines.peeling import peeled

SAMPLES, PLACES = 50, 5
"""How many lines are enough, and how many places of the time in them are kept."""
QUARTER, NEAR, WIDEST = timedelta(minutes=15), timedelta(minutes=1), timedelta(hours=15)
"""Offsets to UTC are whole quarters of an hour, at most 14 hours. What collects lines puts its own
time before them, a minute later at most, or this tells no zone."""
_LEVEL = "(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
_DATE = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_LOGGER = r"\((?:[\w$]+\.)+[\w$]+\)"
_LAYOUTS = (
    ("Strimzi's pattern (Kafka 4)", rf"(?<!\[){_DATE} {_LEVEL} +\[[^\]]*\] [\w$]+:\d+ - "),
    ("Strimzi's pattern (to 3.9)", rf"(?<!\[){_DATE},\d{{3}} {_LEVEL} .*{_LOGGER} \[[^\]]*\]$"),
    ("the pattern of Confluent's operator", rf"\[{_LEVEL}\] {_DATE},\d{{3}} \[[^\]]*\] [\w.$]+ "),
    ("Kafka's stock pattern", rf"\[{_DATE},\d{{3}}\] {_LEVEL} .*{_LOGGER}"),
    ("Kafka's stock pattern with line numbers", rf"\[{_DATE}[^]]*\] {_LEVEL} .*\([\w.$]+:\d+\)"),
    ("Kafka's stock pattern without brackets", rf"(?<!\[){_DATE},\d{{3}} {_LEVEL} .*{_LOGGER}"),
    ("JSON (Elastic Common Schema)", r'"log\.level"|"ecs\.version"|"ecs":'),
    ("JSON (log4j's)", r'"(?:instant|timeMillis|loggerName|logger_name|source_host)"'),
)
"""By the line, peeled, or where that is of none by the text as it stands in the file."""
_KEY = re.compile(r'"[\w@.]+\\*"\s*:\s*[^\w\s]*$')
_WORD = r"[^\s\"\[\](){}|,;]+"


@dataclass(frozen=True)
class Form:
    """How a file writes its lines.

    `name` is what the report calls it; `resolution_ms` is the step of its times. `zone` is that
    which the file itself tells. Dates lie before `today` where not all have a year (`names_year`).
    `tail` is a pattern of what ends every line of the file; a line of one that names loggers, and
    does not name its own, is cut off. `place` finds the time of any line by what is before it.
    `time` is what times look like, and `strptime` reads them where that is no known form.
    """

    name: str = "Kafka's stock pattern"
    resolution_ms: float = 1.0
    zone: tzinfo | None = None
    today: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    names_year: bool = True
    tail: re.Pattern[str] | None = None
    names_logger: bool = True
    place: re.Pattern[str] = re.compile(r"^\[(\d+-\d+-\d+ \d+:\d+:\d+,\d+)")
    time: re.Pattern[str] = TIME
    strptime: str = ""

    def times(self, text: str) -> list[str]:
        """Return the times in a text, in their order."""
        return [match[0] for match in self.time.finditer(text)]

    def moment(self, time: str) -> Moment:
        """Return what a time of the file says."""
        if not self.strptime:
            match = TIME.match(time)
            return moment(match, self.today) if match else Moment(None, self.resolution_ms)
        try:
            at = datetime.strptime(time, self.strptime)  # noqa: DTZ007
            is_utc = "%Z" in self.strptime  # UTC or GMT, by its pattern
            return Moment(at.replace(tzinfo=UTC) if is_utc else at, self.resolution_ms)
        except ValueError:
            return Moment(None, self.resolution_ms)

    def sentence(self) -> str:
        """Return what the report says of it, such as `Strimzi's pattern, times to the second`."""
        steps = {1000.0: "the second", 100.0: "a tenth of a second", 10.0: "10 ms"}
        said = [self.name]
        if self.resolution_ms in steps:
            said.append(f"times to {steps[self.resolution_ms]}")
        if self.zone:
            said.append(f"brokers at {self.zone}")
        if not self.names_year:
            said.append("dates without a year, taken for the latest that is not to come")
        return ", ".join(said)


def recognised(first: Sequence[str], pattern: str = "") -> Form:
    """Return the form of a file by its first lines, or that of a log4j `pattern`.

    Raises EvidenceError for a bad pattern.
    """
    given = Form(**form_fields(pattern)) if pattern else Form()
    first = [text.replace("\0", "") for text in first]  # UTF-16 that nobody has decoded
    texts = islice(filter(hinted, first), SAMPLES)
    lines = [(raw, line, anchored(line, given.tail)) for raw in texts for line in peeled(raw)]
    found = [(raw, line, at) for raw, line, at in lines if at and at.message]
    if found:
        times = [given.times(at.before) or given.times(at.after)[:1] for _, _, at in found]
    else:  # what other lines show has to do; a number without a colon may be anything
        clocks = ((raw, [one for one in given.times(raw) if ":" in one]) for raw in first)
        timed = [*islice(((raw, every[:2]) for raw, every in clocks if every), SAMPLES)]
        found = [(raw, raw, Anchored(raw, "", "", "")) for raw, _ in timed]
        times = [every for _, every in timed]
    given = replace(given, today=datetime.now(UTC))
    moments = [[*map(given.moment, every)] for every in times]
    nearest = [every[-1] for every in moments if every]
    steps = Counter(one.resolution_ms for one in nearest).most_common(1)
    form = replace(
        given,
        name=given.name if pattern or not found else _name(found),
        resolution_ms=steps[0][0] if steps else given.resolution_ms,
        zone=given.zone or _zone(moments),
        names_year=all(one.names_year for one in nearest),
        tail=given.tail or _tail([at.message for _, _, at in found if not at.after]),
        names_logger=2 * sum(at.logger != "" for _, _, at in found) > len(found),
    )
    return _placed(form, [(raw, of[-1]) for (raw, *_), of in zip(found, times, strict=True) if of])


def _placed(form: Form, times: Sequence[tuple[str, str]]) -> Form:
    """Return the form with the places of times in texts: behind as many words, the same marks."""
    if form.strptime:
        return form
    places = Counter[str]()
    for raw, time in times:
        message = ANCHOR.search(raw)
        at = raw.rfind(time, 0, message.start() if message else len(raw))
        at = raw.find(time) if at < 0 else at
        if at >= 0:
            before = raw[:at]
            key = _KEY.search(before)
            lead = "".join(
                r"\s+" if one.isspace() else _WORD if re.match(_WORD, one) else re.escape(one)
                for one in re.findall(rf"\s+|{_WORD}|.", before, re.DOTALL)
            )
            shape = "".join(
                "[A-Za-z]+" if one.isalpha() else r"\s+" if one.isspace() else re.escape(one)
                if not one.isdecimal() else r"\d+" if len(one) < 10 else rf"\d{{{len(one)}}}"
                for one in re.findall(r"\d+|[A-Za-z]+|\s+|.", time)
            )  # fmt: skip
            places[rf"{re.escape(key[0]) if key else f'^{lead}'}({shape})(?!\d)"] += 1
    regex = "|".join(place for place, _ in places.most_common(PLACES))
    return replace(form, place=re.compile(regex)) if regex else form


def _name(found: Sequence[tuple[str, str, Anchored]]) -> str:
    """Return how most lines are written: the layout of log4j, and what is around it."""
    names = Counter[str]()
    for raw, line, _ in found:
        of = ((name, re.search(regex, text)) for text in (line, raw) for name, regex in _LAYOUTS)
        layout, at = next((one for one in of if one[1]), ("a pattern of its own", None))
        json, csv = re.search(r'"\s*:', raw), raw.startswith('"') or ',"' in raw
        prefix = at and line[: at.start()].strip()
        around = " in JSON" if json else " in CSV" if csv else " behind a prefix" if prefix else ""
        names[layout if layout.startswith("JSON") else layout + around] += 1
    return names.most_common(1)[0][0]


def _zone(times: Sequence[Sequence[Moment]]) -> tzinfo | None:
    """Return the zone of times without one, by times before them that have one."""
    offsets = [
        one.at.replace(tzinfo=UTC) - before[-1]
        for *others, one in filter(None, times)
        if one.at
        and one.at.tzinfo is None
        and (before := [other.at for other in others if other.at and other.at.tzinfo])
    ]
    if not offsets:
        return None
    offset = sorted(offsets)[len(offsets) // 2]
    quarter = round(offset / QUARTER) * QUARTER
    known = abs(offset - quarter) <= NEAR and abs(quarter) <= WIDEST
    return timezone(quarter) if known else None


def _tail(messages: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern of what ends all messages, but for digits, and is of no template.

    Of what they have in common, it is the shortest that leaves most messages known. One message
    alone does not show what it has in common with others.
    """
    some = [*dict.fromkeys(messages)][:20]
    ends = [re.sub(r"\d+", "0", message)[::-1] for message in some]
    common = commonprefix(ends)[::-1] if len(some) > 1 else ""  # noqa: RUF071 (no paths)
    tails = (
        re.compile(re.escape(common[at:]).replace("0", r"\d+") + "$")
        for at in reversed(range(len(common)))
        if not common[at].isalnum()  # no end of a line begins within a word
    )
    known = lambda tail: sum(
        known_line(tail.sub("", one) if tail else one).template is not None for one in some
    )
    return max([None, *tails], key=known)
