"""Lines that a given log4j pattern writes."""

from zoneinfo import ZoneInfo

import pytest

from reports.incident.lines.form import recognised
from reports.incident.lines.reader import Reader
from reports.judgement.errors import EvidenceError

MESSAGE = (
    "[GroupCoordinator 1]: Stabilized group g1 generation 5 (__consumer_offsets-49) with 2 members"
)
LOGGER = "kafka.coordinator.group.GroupCoordinator"
AT_MS = 1_767_607_200_000.0  # 2026-01-05 10:00:00 in UTC
PATTERNS = {
    "[%d] %p %m (%c)%n": f"[2026-01-05 10:00:00,000] INFO {MESSAGE} ({LOGGER})",
    "%d{ISO8601} %-5p [%t] %c{1}:%L - %m%n":
        f"2026-01-05 10:00:00,000 INFO  [main] GroupCoordinator:66 - {MESSAGE}",
    "%d{HH:mm:ss dd.MM.yy} %m": f"10:00:00 05.01.26 {MESSAGE}",
    "%d{MM/dd/yyyy hh:mm:ss a} %level{length=1} %msg%n": f"01/05/2026 10:00:00 AM I {MESSAGE}",
    "%highlight{%-5level} %date{yyyy-MM-dd'at'HH:mm}{UTC} %enc{%m}{CRLF} [%X{a}] %n%xEx":
        f"INFO  2026-01-05at10:00 {MESSAGE} [x]",
    "%d{UNIX_MILLIS} %logger{36} | %message": f"1767607200000 {LOGGER} | {MESSAGE}",
    "%m %%%d{EEE, d MMM yyyy HH:mm:ss Z}": f"{MESSAGE} %Mon, 5 Jan 2026 11:00:00 +0100",
}  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_lines_of_a_pattern_are_read(pattern: str) -> None:
    text = f"b1 | {PATTERNS[pattern]}"
    [line] = Reader(recognised([text], pattern), ZoneInfo("UTC")).read(text).lines
    assert (line.at_ms, line.template, line.group) == (AT_MS, "stabilized", "g1")
    assert line.text == MESSAGE


@pytest.mark.parametrize(("pattern", "what"), [
    ("%m", "no time"), ("%d %p", "no message"), ("%d{HH:mm:ss} %m", "no year"),
    ("%d %m %m", "more than one"), ("%d{yyyy %m", "no conversion"), ("%d{GGGG} %m", "'GGGG'"),
    ("%d{ISO8601}{Mars} %m", "'Mars'"), ("%d %m 5%", "no conversion"),
])  # fmt: skip
def test_a_bad_pattern_is_one_sentence(pattern: str, what: str) -> None:
    with pytest.raises(EvidenceError, match=what) as error:
        recognised([], pattern)
    assert "\n" not in str(error.value)
