"""A conversion pattern of log4j 1 or 2, such as `%d{dd.MM.yyyy HH:mm} %-5p %m (%c)%n`.

A message is found by its own words. What a pattern tells beside it is how times are written, and
what ends a line. The language is that of log4j 2's PatternLayout, which has log4j 1's.
"""

import re
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from reports.incident.lines.dates import step_ms
from reports.judgement.errors import EvidenceError

_BRACES = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
_CONVERSION = re.compile(rf"%(?:%|[\d.-]*([A-Za-z]+)(?:{_BRACES})?(?:{_BRACES})?)(?!\{{)")
_DATE, _MESSAGE = ("d", "date"), ("m", "msg", "message")
_INNER = ("style", "highlight", "enc", "encode", "notEmpty", "varsNotEmpty", "maxLen", "maxLength")
"""What writes the pattern in its first braces, changed at most in colour or length."""
_NOTHING = ("n", "ex", "exception", "throwable", "rEx", "rException", "xEx", "xException")
_READ_ANYWAY = (
    "", "DEFAULT", "DEFAULT_PERIOD", "ISO8601", "ISO8601_PERIOD", "DATE", "DATE_PERIOD", "UNIX",
    "UNIX_MILLIS",
)  # fmt: skip
"""Log4j's own names of forms of times, by what they are, and those that `dates` has."""
_LETTERS = {
    "y": ("%Y", r"\d{4}"), "u": ("%Y", r"\d{4}"), "yy": ("%y", r"\d\d"), "M": ("%m", r"\d\d?"),
    "MM": ("%m", r"\d\d"), "MMM": ("%b", "[A-Za-z]{3}"), "MMMM": ("%B", "[A-Za-z]+"),
    "d": ("%d", r"\d\d?"), "dd": ("%d", r"\d\d"), "H": ("%H", r"\d\d?"), "HH": ("%H", r"\d\d"),
    "h": ("%I", r"\d\d?"), "hh": ("%I", r"\d\d"), "m": ("%M", r"\d\d"), "s": ("%S", r"\d\d"),
    "S": ("%f", r"\d{1,6}"), "a": ("%p", "[AaPp][Mm]"), "E": ("%a", "[A-Za-z]{3}"),
    "EEEE": ("%A", "[A-Za-z]+"), "X": ("%z", r"(?:Z|[+-]\d\d:?\d\d)"),
    "Z": ("%z", r"[+-]\d\d:?\d\d"), "z": ("%Z", "(?:UTC|GMT)"),
}  # fmt: skip
"""What the letters of Java's date formats write: the directive of `strptime`, and a pattern."""
_NEEDED = (("year", "Yy"), ("month", "mbB"), ("day", "d"), ("hour", "HI"), ("minute", "M"))
_PART = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z']+)")


def form_fields(pattern: str) -> dict[str, Any]:
    """Return the fields of the `Form` of a pattern.

    Raises EvidenceError for what is no pattern, or one without a whole time or a message.
    """
    wrong = lambda what: EvidenceError(
        f"--pattern {pattern!r} {what}; give the layout's pattern as log4j has it, such as"
        " '[%d] %p %m (%c)%n'"
    )
    flat = _CONVERSION.sub(_inner, pattern)
    if "%" in (rest := _CONVERSION.sub("", flat)):
        raise wrong(f"has no conversion at {rest[rest.index('%') :][:10]!r}")
    times, messages = (
        [one for one in _CONVERSION.finditer(flat) if one[1] in names]
        for names in (_DATE, _MESSAGE)
    )
    for what, found in (("time: %d", times), ("message: %m", messages)):
        if len(found) != 1:
            raise wrong(f"has {'more than one' if found else 'no'} {what}")
    [of_time], [message] = times, messages
    of_times = _of_times(of_time[2] or "", wrong)
    try:
        zone = ZoneInfo(of_time[3]) if of_time[3] else None
    except (OSError, ValueError, KeyError) as error:
        raise wrong(f"has no time zone {of_time[3]!r}") from error
    return {
        "name": f"the pattern {pattern}", "zone": zone, "tail": _behind(flat[message.end() :]),
        **of_times,
    }  # fmt: skip


def _inner(match: re.Match[str]) -> str:
    return _CONVERSION.sub(_inner, match[2] or "") if match[1] in _INNER else match[0]


def _behind(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern of what ends a line, from behind its message on."""
    parts, end = [], 0
    for match in _CONVERSION.finditer(pattern):
        parts.append(re.escape(pattern[end : match.start()]))
        parts.append("" if match[1] in _NOTHING else r"[^\[\]()]*" if match[1] else "%")
        end = match.end()
    tail = "".join([*parts, re.escape(pattern[end:])]).removesuffix("\\ ")
    return re.compile(f"{tail}$") if tail else None


def _of_times(form: str, wrong: Callable[[str], EvidenceError]) -> dict[str, Any]:
    """Return what finds and reads times of a form: nothing for one that `dates` has."""
    if form in _READ_ANYWAY:
        return {}
    regex, strptime, fraction = "", "", ""
    for quoted, letters, letter, other in _PART.findall(form):
        if not letters:
            literal = quoted.replace("''", "'") or other
            regex, strptime = regex + re.escape(literal), strptime + literal.replace("%", "%%")
            continue
        if (known := _LETTERS.get(letters) or _LETTERS.get(letter)) is None:
            raise wrong(f"has {letters!r} in its time, which is not known here")
        regex, strptime = regex + known[1], strptime + known[0]
        fraction = letters if letter == "S" else fraction
    for what, directives in _NEEDED:
        if not re.search(f"%[{directives}]", strptime):
            raise wrong(f"has no {what} in its time: %d")
    parts = re.findall("%[A-Za-z]", strptime)
    if len(parts) > len({*parts}):
        raise wrong("has a part of its time twice")
    time = re.compile(rf"(?<!\d){regex}", re.ASCII)
    return {"time": time, "place": time, "strptime": strptime, "resolution_ms": step_ms(fraction)}
