"""Times in a text: any form in which logs write them in; milliseconds, zone and resolution out.

The date is before the clock: year first or day first, by numbers, or with the month's English name.
It may lack its year, as syslog's does; fractions and zones may be missing. Numbers of 10, 13, 16
and 19 digits are seconds, milliseconds, microseconds and nanoseconds since 1970, in UTC.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "(?i:" + "|".join(_NAMES) + ")"
TIME = re.compile(
    rf"""(?<![\d.])(?:(?:
        (?P<year>\d{{4}})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)
      | (?P<day_2>\d\d?)[-/.\ ](?P<month_2>\d\d|{_MONTH})[-/.\ ](?P<year_2>\d{{4}})
      | \b(?P<month_3>{_MONTH})\ +(?P<day_3>\d\d?)(?:,?\ (?P<year_3>\d{{4}}))?
    )(?:[T_:]|,?\ +(?:@\ )?)
    (?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{{1,9}}))?+(?!\ ?[AaPp]\.?[Mm]\b)
    (?P<zone>Z\b|\ ?(?:UTC|GMT)\b|\ ?[+-]\d\d:?\d\d\b)?
  | (?<![\w/-])(?P<epoch>1\d{{9}}(?:\d{{3}}|\d{{6}}|\d{{9}})?)(?:\.(?P<part>\d{{1,9}}))?(?![\w:.-])
  | "epochSecond"\s*:\s*(?P<second>1\d{{9}})\s*,\s*"nanoOfSecond"\s*:\s*(?P<nano>\d{{1,9}})\b
    )""",
    re.ASCII | re.VERBOSE,
)  # the last is the instant of log4j 2's own JSON
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


class Moment(NamedTuple):
    """A time, without a zone where none is named; None for an impossible date.

    `resolution_ms` is the step of such times; the year may be assumed.
    """

    at: datetime | None
    resolution_ms: float
    names_year: bool = True

    def at_ms(self, zone: tzinfo) -> float | None:
        """Return the epoch ms; `zone` is that of times without one.

        Where a clock was turned back, local time names two instants: the first is taken.
        """
        if self.at is None:
            return None
        at = self.at if self.at.tzinfo else self.at.replace(tzinfo=zone)
        try:
            return float((at - _EPOCH) // _MILLISECOND)
        except OverflowError:
            return None


def moment(match: re.Match[str], today: datetime) -> Moment:
    """Return the time that `TIME` found; without a year it is the latest that is not to come."""
    year_named, month, day, clock, fraction, zone = match.group(
        "year", "month", "day", "clock", "fraction", "zone"
    )
    if clock is None:
        epoch, second, part, nano = match.group("epoch", "second", "part", "nano")
        epoch = epoch or second
        fraction = epoch[10:] or part or (nano.zfill(9) if nano else "")
        at = _EPOCH + timedelta(seconds=int(epoch[:10]), milliseconds=int(f"{fraction[:3]:0<3}"))
        return Moment(at, step_ms(fraction))
    if year_named is None:
        day = match["day_2"] or match["day_3"]
        month = (match["month_2"] or match["month_3"]).lower()
        year_named = match["year_2"] or match["year_3"]
    number = month if month.isdecimal() else f"{_NAMES.index(month) + 1:02}"
    offset = re.sub("UTC|GMT", "Z", (zone or "").strip())
    rest = f"-{number}-{day:0>2}T{clock}.{fraction or '':0<3.3}{offset}"
    step = step_ms(fraction or "")
    # a 29 February comes every 4 years, or 8
    for year in [year_named] if year_named else range(today.year, today.year - 9, -1):
        with suppress(ValueError):
            at = datetime.fromisoformat(f"{year}{rest}")
            if year_named or at.replace(tzinfo=UTC) <= today + timedelta(days=1):
                return Moment(at, step, year_named is not None)
    return Moment(None, step)


def step_ms(fraction: str) -> float:
    """Return the resolution of times with such a fraction of a second."""
    return (1000.0, 100.0, 10.0, 1.0)[min(3, len(fraction))]
