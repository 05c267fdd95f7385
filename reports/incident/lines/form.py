"""How the lines of a file are written: its first lines in; the form of all of them out."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from statistics import median

from reports.incident.lines.anchor import ANCHOR, Anchored, anchored, hinted, known_line
from reports.incident.lines.dates import TIME, Moment, assumed_year, moment, shape_of
from reports.incident.lines.log4j_pattern import Log4jPattern
from reports.incident.lines.peeling import cleaned, peeled

FIRST, SAMPLES = 20_000, 50
"""How many lines of a file are looked at, and how many of a coordinator's are enough."""
QUARTER_MS, NEAR_MS, WIDEST_MS = 900_000.0, 60_000.0, 15 * 3_600_000.0
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
    ("JSON (log4j's JsonLayout)", r'"(?:instant|timeMillis|loggerName|logger_name|source_host)"'),
    ("JSON", r'^[^"]*\{\s*"|^\s*"message"\s*:'),
)
"""By the whole line, peeled, or where that is of none by the text as it stands in the file."""
_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)"
_WRAPPINGS = (
    ("in Docker's json-file", r'\{"log"\s*:'),
    ("in JSON, a field on each line", r'^"\w+"\s*: "'),
    ("in journald's JSON", r'"__REALTIME_TIMESTAMP"'),
    ("in a Kibana export", r'"_source"\s*:|^"?@timestamp"?,|@ \d\d:\d\d:\d\d\.\d{3}'),
    ("in CloudWatch's JSON", r'"(?:@message|logStreamName|ingestionTime|eventId)"'),
    ("in a Loki export", r'"line"\s*:|"values"\s*:\s*\[|^\s*\["\d{19}",'),
    ("in CloudWatch's CSV", r'^"?\d{13}"?,"?'),
    ("with CloudWatch's times behind", rf"\),{_DATE}\.\d{{3}}$"),
    ("in AWS's text", r"^EVENTS\t"),
    ("in CRI's form", rf"{_STAMP} std(?:out|err) [FP] "),
    ("behind `kubectl logs --prefix`", r"^\[pod/[^\]]+\] "),
    ("behind a container's name (compose)", r"^[\w.-]+\s*\| "),
    ("behind journald's prefix", r"^(?:[A-Z][a-z]{2} [ \d]\d |\d{4}-)\S+ \S+ [\w.-]+\[\d+\]: "),
    ("behind `aws logs tail`", r"^\d{4}-\S+[+-]\d\d:\d\d \S+ "),
    ("behind `grep -n`", r"^\d+:"),
    ("behind `grep -H`", r"^[\w./-]+\.[\w.-]+[:-](?:\d+[:-])?"),
    ("behind times of `docker logs -t` or `kubectl logs --timestamps`", rf"^{_STAMP} "),
    ("behind a pod's and a container's name", r"^[\w.-]+[ :\u203a]+[\w.-]+ +\S*\d{4}-"),
)  # fmt: skip


@dataclass(frozen=True)
class Form:
    """How a file writes its lines.

    `name` is what the report calls it; `resolution_ms` is the step of its times. `zone` is the
    offset to UTC that the file itself tells, as `+02:00`, or empty. `year` is that of dates without
    one, 0 where all have it. `tail` is a pattern of what ends every line of the file; a line of one
    that names loggers, and does not name its own, is cut off. `shape` is that of the brokers'
    times, and `pattern` reads lines of a given log4j pattern.
    """

    name: str = "Kafka's stock pattern"
    resolution_ms: float = 1.0
    zone: str = ""
    year: int = 0
    tail: re.Pattern[str] | None = None
    names_logger: bool = True
    shape: str = shape_of("2026-01-05 10:00:00,000")
    pattern: Log4jPattern | None = None

    def lines(self, raw: str, wanted: re.Pattern[str] = ANCHOR) -> list[str]:
        """Return the lines in a text of the file, peeled down to what is `wanted`."""
        lines = peeled(raw, wanted)
        return [self.pattern.rewritten(one) for one in lines] if self.pattern else lines

    def sentence(self) -> str:
        """Return what the report says of it, such as `Strimzi's pattern, times to the second`."""
        steps = {1000.0: "the second", 100.0: "a tenth of a second", 10.0: "10 ms"}
        said = [self.name]
        if self.resolution_ms in steps:
            said.append(f"times to {steps[self.resolution_ms]}")
        if self.zone:
            said.append(f"brokers at UTC{self.zone} by a time in UTC on each line")
        if self.year:
            said.append(f"dates without a year, taken for {self.year}")
        return ", ".join(said)


def recognised(first: Iterable[str], pattern: str = "") -> Form:
    """Return the form of a file by its first lines, or that of a log4j `pattern`.

    No more of the lines is read than it takes. Raises EvidenceError for a bad pattern.
    """
    given = Form(f"the pattern {pattern}", pattern=Log4jPattern(pattern)) if pattern else Form()
    texts = (text for text in islice(first, FIRST) if hinted(text.replace("\0", "")))
    found: list[tuple[str, str, Anchored]] = []
    for raw in islice(texts, SAMPLES):
        lines = [(raw, line, anchored(line, None)) for line in given.lines(raw)]
        found += [(text, line, at) for text, line, at in lines if at and at.message]
    if not found:
        return given
    times = [_times(at.before or at.after) for _, _, at in found]
    nearest = [every[-1][1] for every in times if every]
    common = Counter((one.resolution_ms, shape_of(one.text)) for one in nearest).most_common(1)
    step_ms, shape = common[0][0] if common else (given.resolution_ms, given.shape)
    no_year = next((every[-1][0] for every in times if every and every[-1][1].year is None), None)
    return Form(
        given.name if pattern else _name(found),
        step_ms,
        _zone([[one for _, one in every] for every in times]),
        assumed_year(no_year, datetime.now(UTC)) if no_year else 0,
        _tail([at.message for _, _, at in found if not at.after]),
        2 * sum(at.logger != "" for _, _, at in found) > len(found),
        shape,
        given.pattern,
    )


def _times(text: str) -> list[tuple[re.Match[str], Moment]]:
    return [(match, moment(match, datetime.now(UTC).year)) for match in TIME.finditer(text)]


def _name(found: Sequence[tuple[str, str, Anchored]]) -> str:
    """Return how most lines are written: the layout of log4j, and what is around it."""
    names = Counter[str]()
    for raw, line, _ in found:
        layout = next((name for name, regex in _LAYOUTS if re.search(regex, line)), "")
        layout = layout or next((name for name, regex in _LAYOUTS if re.search(regex, raw)), "")
        text = cleaned(raw)
        around = next((name for name, regex in _WRAPPINGS if re.search(regex, text)), "")
        encoding = "in UTF-16" if "\0" in raw else ""
        names[" ".join(filter(None, [layout or "a pattern of its own", around, encoding]))] += 1
    return names.most_common(1)[0][0]


def _zone(times: Sequence[Sequence[Moment]]) -> str:
    """Return the zone of times without one, by times before them that have one."""
    offsets = [
        one.wall_ms - at_ms
        for *others, one in filter(None, times)
        if one.zone is None and one.wall_ms is not None
        for at_ms in [other.at_ms(UTC) for other in others if other.zone is not None][-1:]
        if at_ms is not None
    ]
    if not offsets:
        return ""
    offset = median(offsets)
    quarter = round(offset / QUARTER_MS) * QUARTER_MS
    if abs(offset - quarter) > NEAR_MS or abs(quarter) > WIDEST_MS:
        return ""
    hours, minutes = divmod(round(abs(quarter) / 60_000), 60)
    return f"{'-' if quarter < 0 else '+'}{hours:02}:{minutes:02}"


def _tail(messages: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern of what ends all messages, but for digits, and is of no template.

    Of what they have in common, it is the shortest that leaves most messages known. One message
    alone does not show what it has in common with others.
    """
    some = [*dict.fromkeys(messages)][:20]
    if len(some) < 2:
        return None
    shapes = [re.sub(r"\d+", "0", message) for message in some]
    common = 0
    while len({shape[-common - 1 :] for shape in shapes}) == 1 and common < len(shapes[0]):
        common += 1
    best: tuple[int, re.Pattern[str] | None] = (_known(some, None), None)
    for length in range(1, common + 1):
        if shapes[0][-length].isalnum():
            continue  # no end of a line begins within a word
        tail = re.compile(re.escape(shapes[0][-length:]).replace("0", r"\d+") + "$")
        if best[0] == len(some):
            break
        best = max(best, (_known(some, tail), tail), key=lambda one: one[0])
    return best[1]


def _known(messages: Sequence[str], tail: re.Pattern[str] | None) -> int:
    cut = (tail.sub("", message) if tail else message for message in messages)
    return sum(known_line(message).template is not None for message in cut)
