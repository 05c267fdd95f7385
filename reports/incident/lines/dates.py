"""Times in a text: any form in which logs write them in; milliseconds, zone and resolution out.

The date is before the clock, year first, day first or month first, by numbers or English names,
and may lack its year, as syslog's does; fractions and zones may be missing. Numbers of 10, 13, 16
and 19 digits are seconds, milliseconds, microseconds and nanoseconds since 1970, in UTC.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from string import ascii_letters, digits
from typing import NamedTuple

_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "(?i:" + "|".join(_NAMES) + ")"
TIME = re.compile(
    rf"""(?<![\d.])(?:(?:
        (?P<year>\d{{4}})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)
      | (?P<day_2>\d\d?)[-/.\ ](?P<month_2>\d\d|{_MONTH})[-/.\ ](?P<year_2>\d{{4}})
      | \b(?P<month_3>{_MONTH})\ +(?P<day_3>\d\d?)(?:,?\ (?P<year_3>\d{{4}}))?
    )(?:[T_:]|,?\ +(?:@\ )?)
    (?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{{1,9}}))?
    (?P<zone>Z\b|\ ?(?:UTC|GMT)\b|\ ?[+-]\d\d:?\d\d\b)?
  | (?<![\w/-])(?P<epoch>1\d{{9}}(?:\d{{3}}|\d{{6}}|\d{{9}})?)(?:\.(?P<part>\d{{1,9}}))?(?![\w:.-])
  | "epochSecond"\s*:\s*(?P<second>1\d{{9}})\s*,\s*"nanoOfSecond"\s*:\s*(?P<nano>\d{{1,9}})\b
    )""",
    re.ASCII | re.VERBOSE,
)  # the last is the instant of log4j 2's own JSON
_PLAIN = ("year", "month", "day", "clock", "fraction", "zone")
_SHAPE = str.maketrans(ascii_letters, "a" * 52, digits)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(NamedTuple):
    """A time and what it says.

    `wall_ms` is what a clock in UTC shows so, in epoch ms; None for an impossible date. `zone` is
    None where the text does not name it, and so is `year`.
    """

    wall_ms: float | None
    zone: tzinfo | None
    year: int | None
    resolution_ms: float
    text: str

    def at_ms(self, zone: tzinfo) -> float | None:
        """Return the epoch ms; `zone` is that of times without one.

        Where a clock was turned back, local time names two instants: the first is taken.
        """
        if self.wall_ms is None:
            return None
        try:
            offset = _offset_ms(int(self.wall_ms // 1000), self.zone or zone)
        except (ValueError, OverflowError):
            return None
        return self.wall_ms - offset


def moment(match: re.Match[str], year: int) -> Moment:
    """Return the time that `TIME` found; `year` is that of dates without one."""
    named, month, day, clock, fraction, zone = match.group(*_PLAIN)
    if clock is None:
        epoch, part, nano = match.group("epoch", "part", "nano")
        epoch = epoch or match["second"]
        fraction = epoch[10:] or part or (nano.zfill(9) if nano else "")
        at_ms = int(epoch[:10]) * 1000.0 + _fraction_ms(fraction)
        return Moment(at_ms, UTC, 0, _resolution_ms(fraction), match[0])
    if named is None:
        month, day = match["month_2"] or match["month_3"], match["day_2"] or match["day_3"]
        named = match["year_2"] or match["year_3"]
    second = _wall_s(int(named or year), month.lower(), int(day), clock)
    wall_ms = None if second is None else second * 1000.0 + _fraction_ms(fraction or "")
    resolution_ms = _resolution_ms(fraction or "")
    known_zone = _zone(zone.strip()) if zone else None
    return Moment(wall_ms, known_zone, int(named) if named else None, resolution_ms, match[0])


def shape_of(text: str) -> str:
    """Return what times of one form share: a time without digits, or how many a number has."""
    return text.translate(_SHAPE) or str(len(text))


def assumed_year(match: re.Match[str], today: datetime) -> int:
    """Return the year of a date without one: the latest in which it is not to come."""
    at_ms = moment(match, today.year).wall_ms
    tomorrow_ms = (today + timedelta(days=1)).timestamp() * 1000
    return today.year - (at_ms is None or at_ms > tomorrow_ms)


def _fraction_ms(digits: str) -> float:
    return float(int(digits[:3].ljust(3, "0"))) if digits else 0.0


def _resolution_ms(fraction: str) -> float:
    return (1000.0, 100.0, 10.0, 1.0)[min(3, len(fraction))]


@lru_cache(10_000)
def _wall_s(year: int, month: str, day: int, clock: str) -> int | None:
    number = int(month) if month.isdecimal() else _NAMES.index(month) + 1
    hour, minute, second = map(int, clock.split(":"))
    try:
        at = datetime(year, number, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return (at - _EPOCH) // timedelta(seconds=1)


@lru_cache(10_000)
def _offset_ms(wall_s: int, zone: tzinfo) -> float:
    wall = (_EPOCH + timedelta(seconds=wall_s)).replace(tzinfo=zone)
    offset = wall.utcoffset()
    return offset / timedelta(milliseconds=1) if offset else 0.0


@lru_cache(100)
def _zone(text: str) -> tzinfo | None:
    if text in ("Z", "UTC", "GMT"):
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    if minutes >= 24 * 60:
        return None
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
