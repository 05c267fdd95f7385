"""A conversion pattern of log4j 1 or 2, such as `%d{dd.MM.yyyy HH:mm} %-5p %m (%c)%n`; lines read.

What a pattern writes is divided into the time, the logger and the message; all else, such as
threads, is skipped. The language is that of log4j 2's PatternLayout, which has log4j 1's.
"""

import re
from datetime import datetime
from itertools import accumulate
from zoneinfo import ZoneInfo

from reports.judgement.errors import EvidenceError

_CONVERSION = re.compile(r"%(?:%|(-?\d*(?:\.-?\d+)?)([A-Za-z]+))")
_LOGGER = ("c", "lo", "logger", "C", "class")
_MESSAGE = ("m", "msg", "message")
_INNER = ("style", "highlight", "enc", "encode", "notEmpty", "varsNotEmpty", "maxLen", "maxLength")
"""What writes the pattern in its first braces, changed at most in colour or length."""
_NOTHING = ("n", "ex", "exception", "throwable", "rEx", "rException", "xEx", "xException")
_DATES = {
    "": "yyyy-MM-dd HH:mm:ss,SSS", "DEFAULT": "yyyy-MM-dd HH:mm:ss,SSS",
    "ISO8601": "yyyy-MM-dd'T'HH:mm:ss,SSS", "ISO8601_BASIC": "yyyyMMdd'T'HHmmss,SSS",
    "DATE": "dd MMM yyyy HH:mm:ss,SSS", "COMPACT": "yyyyMMddHHmmssSSS",
    "DEFAULT_PERIOD": "yyyy-MM-dd HH:mm:ss.SSS", "ISO8601_PERIOD": "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "DATE_PERIOD": "dd MMM yyyy HH:mm:ss.SSS", "UNIX": "U", "UNIX_MILLIS": "U",
}  # fmt: skip
_LETTERS = {
    "y": r"(?P<year>\d{2,4})", "u": r"(?P<year>\d{4})", "M": r"(?P<month>\d\d?)",
    "MMM": r"(?P<month>[A-Za-z]{3,9})\.?", "d": r"(?P<day>\d\d?)", "H": r"(?P<hour>\d\d?)",
    "h": r"(?P<hour>\d\d?)",
    "m": r"(?P<minute>\d\d)", "s": r"(?P<second>\d\d)", "S": r"(?P<fraction>\d{N})",
    "n": r"(?P<fraction>\d{N})", "a": r"(?P<half>[AaPp])\.?[Mm]\.?", "E": r"[^\W\d]+",
    "X": r"(?P<zone>Z|[+-]\d\d:?\d\d)", "Z": r"(?P<zone>[+-]\d\d:?\d\d)",
    "z": r"(?:(?P<zone>Z|UTC|GMT)|[A-Z]{3,5})", "U": r"(?P<epoch>\d{10}(?:\d{3})?)",
}  # fmt: skip
"""What the letters of Java's SimpleDateFormat and DateTimeFormatter write; `U` is the epoch."""
_DATE = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z']+)")
_NEEDED = ("year", "month", "day", "hour", "minute")


class Log4jPattern:
    """Divides the lines that a conversion pattern writes."""

    def __init__(self, pattern: str) -> None:
        """Raise EvidenceError for what is no pattern, or one without a whole time or a message."""
        self._pattern = pattern
        self._zone = ""
        try:
            regex = self._regex(pattern).removesuffix(r"\ +")  # ends of lines are stripped
            self._line = re.compile(regex, re.ASCII | re.DOTALL)
        except re.error as error:  # such as two times
            raise self._wrong("has a part twice") from error
        names = self._line.groupindex
        if "message" not in names:
            raise self._wrong("has no message: %m")
        lacks = [name for name in _NEEDED if name not in names]
        if lacks and "epoch" not in names:
            raise self._wrong(f"has no {lacks[0]} in its time: %d")
        self.names_logger = "logger" in names

    def rewritten(self, text: str) -> str:
        """Return a line in Kafka's stock pattern; one that the pattern did not write as it is.

        What stands before and behind stays where it is.
        """
        if (match := self._line.search(text)) is None:
            return text
        of = match.groupdict()
        logger = f" ({of['logger']})" if of.get("logger") else ""
        return f"{text[: match.start()]}[{self._time(of)}] {of['message']}{logger}"

    def _time(self, of: dict[str, str | None]) -> str:
        if epoch := of.get("epoch"):
            return epoch
        part = lambda name: of.get(name) or "0"
        month, hour = part("month"), int(part("hour"))
        if not month.isdecimal():
            number = "janfebmaraprmayjunjulaugsepoctnovdec".find(month[:3].lower()) // 3 + 1
            month = str(number)
        if half := of.get("half"):
            hour = hour % 12 + 12 * (half in "pP")
        year = int(part("year")) + (2000 if len(part("year")) == 2 else 0)
        day, second = part("day").zfill(2), part("second").zfill(2)
        clock = f"{hour:02}:{part('minute')}:{second}"
        fraction = f",{of['fraction']}" if of.get("fraction") else ""
        zone = of.get("zone") or self._offset(f"{year:04}-{month:>02}-{day} {clock}")
        return f"{year:04}-{month:>02}-{day} {clock}{fraction}{zone}"

    def _offset(self, wall: str) -> str:
        """Return the offset of the zone that the pattern itself names: `%d{…}{UTC}`."""
        if not self._zone:
            return ""
        try:
            return f"{datetime.fromisoformat(wall).replace(tzinfo=ZoneInfo(self._zone)):%z}"
        except ValueError:
            return ""

    def _wrong(self, what: str) -> EvidenceError:
        return EvidenceError(
            f"--pattern {self._pattern!r} {what}; give the layout's pattern as log4j has it, such"
            " as '[%d] %p %m (%c)%n'"
        )

    def _regex(self, pattern: str) -> str:
        parts, at = [], 0
        while (match := _CONVERSION.search(pattern, at)) is not None:
            parts.append(re.escape(pattern[at : match.start()]))
            options, at = self._options(pattern, match.end())
            parts.append(self._converted(match[1] or "", match[2] or "", options))
        rest = pattern[at:]
        if "%" in rest:
            raise self._wrong(f"has no conversion at {rest[rest.index('%') :][:10]!r}")
        return re.sub(r"(?:\\ )+", r"\\ +", "".join(parts) + re.escape(rest))

    def _options(self, pattern: str, at: int) -> tuple[list[str], int]:
        """Return what is in the braces that follow, which may be nested, and where they end."""
        found = []
        while pattern[at : at + 1] == "{":
            depths = accumulate({"{": 1, "}": -1}.get(char, 0) for char in pattern[at:])
            length = next((place for place, depth in enumerate(depths) if depth == 0), 0)
            if not length:
                raise self._wrong("has braces that do not close")
            found.append(pattern[at + 1 : at + length])
            at += length + 1
        return found, at

    def _converted(self, width: str, name: str, options: list[str]) -> str:
        if not name:
            return "%"
        if name in ("d", "date"):
            return self._date(*(options or [""])[:2])
        if name in _MESSAGE:
            return "(?P<message>.*)"
        if name in _LOGGER:
            return r" *(?P<logger>[\w.$]+) *"
        if name in _INNER:
            return self._regex((options or [""])[0])
        return "" if name in _NOTHING else r"\s*.*?\s*" if width else ".*?"

    def _date(self, form: str, zone: str = "") -> str:
        self._zone = zone
        try:
            ZoneInfo(zone or "UTC")
        except (OSError, ValueError, KeyError) as error:
            raise self._wrong(f"has no time zone {zone!r}") from error
        parts = []
        for quoted, letters, letter, other in _DATE.findall(_DATES.get(form, form)):
            if not letters:
                literal = re.escape(quoted.replace("''", "'") or other)
                parts.append("[T ]" if literal == "T" else literal)  # log4j 1 has a blank there
                continue
            key = "MMM" if letters.startswith("MMM") else letter
            if (regex := _LETTERS.get(key)) is None:
                raise self._wrong(f"has {letters!r} in its time, which is not known here")
            parts.append(regex.replace("N", str(len(letters))))
        return "".join(parts)
