"""Times in any form, and what they say."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from reports.incident.lines.dates import TIME, moment

AT_MS = 1_767_607_200_000.0  # 2026-01-05 10:00:00 in UTC
TODAY = datetime(2026, 6, 1, tzinfo=UTC)
FORMS = {
    "[2026-01-05 10:00:00,123] INFO": (123.0, 1.0), "2026-01-05T10:00:00.123456789Z ": (123.0, 1.0),
    "2026-01-05T11:00:00.12+0100": (120.0, 10.0), "2026-01-05 12:45:00 +02:45": (0.0, 1000.0),
    "2026/01/05 10:00:00": (0.0, 1000.0), "05/Jan/2026:10:00:00 +0000": (0.0, 1000.0),
    "05.01.2026 10:00:00,5": (500.0, 100.0), "05 Jan 2026 10:00:00,123": (123.0, 1.0),
    "Jan 5, 2026 @ 10:00:00.123": (123.0, 1.0), "Jan  5 10:00:00 host": (0.0, 1000.0),
    "2026-01-05 10:00:00 UTC": (0.0, 1000.0), "1767607200123,": (123.0, 1.0),
    '"ts":1767607200.123,': (123.0, 1.0), '"1767607200123000000"': (123.0, 1.0),
    '{"epochSecond":1767607200,"nanoOfSecond":123000000}': (123.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_a_time_of_each_form(text: str) -> None:
    match = TIME.search(text)
    assert match is not None
    found = moment(match, TODAY)
    after_ms, resolution_ms = FORMS[text]
    assert (found.at_ms(UTC), found.resolution_ms) == (AT_MS + after_ms, resolution_ms)


def test_zone_of_the_text_goes_before_the_given_one() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    for text, at_ms in (("2026-01-05 11:00:00", AT_MS), ("2026-01-05 10:00:00Z", AT_MS)):
        match = TIME.search(text)
        assert match is not None
        assert moment(match, TODAY).at_ms(berlin) == at_ms


@pytest.mark.parametrize("text", ["10:00:00,123", "4.3.0", "id 1767607200123abc", "2026-01-05"])
def test_what_is_no_whole_time(text: str) -> None:
    assert TIME.search(text) is None


def test_an_impossible_time_has_no_instant() -> None:
    for text in ("2026-13-05 10:00:00", "2026-02-30 10:00:00", "2026-01-05 24:00:00"):
        match = TIME.search(text)
        assert match is not None
        assert moment(match, TODAY).at_ms(UTC) is None


def test_a_date_without_a_year_is_the_last_one() -> None:
    today = datetime(2026, 1, 10, tzinfo=UTC)
    for text, year in (("Jan  9 10:00:00", 2026), ("Dec 31 10:00:00", 2025)):
        match = TIME.search(text)
        assert match is not None
        at = moment(match, today).at
        assert at is not None
        assert at.year == year
