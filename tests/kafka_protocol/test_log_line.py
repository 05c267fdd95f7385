"""The form of the lines of group.log: times of both forms, printed and parsed."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_protocol.log_line import DATED, NUMBERED, dated_ms, is_numbered, written_ms

STARTED = "main INFO [GroupCoordinator 1]: Startup complete. (kafka.Coordinator)"
PARTS = ("INFO", "[GroupCoordinator 1]: Startup complete.", "kafka.Coordinator")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.integers(1_000_000_000_000, 9_999_999_999_999)


def dated(ms: int) -> str:
    """Print a line as log4j 1 does."""
    at = (EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%S")
    return f"{at},{ms % 1000:03} {STARTED}"


@given(TIMES)
def test_a_dated_line_is_parsed_as_it_was_printed(ms: int) -> None:
    line = dated(ms)
    match = re.match(DATED, line)
    assert match is not None
    date, *event = match.groups()
    assert tuple(event) == PARTS
    assert dated_ms(date) == written_ms(line) == ms


@given(TIMES)
def test_a_numbered_line_is_parsed_as_it_was_printed(ms: int) -> None:
    line = f"17 {ms} 20270 {STARTED}"
    match = re.match(NUMBERED, line)
    assert match is not None
    assert match.groups() == ("17", str(ms), "20270", *PARTS)
    assert written_ms(line) == ms


def test_dates_are_utc() -> None:
    assert dated(1_795_263_079_202).startswith("2026-11-21 12:11:19,202 main INFO [")


@pytest.mark.parametrize("line", ["", "Completed", "1 17952 2 main INFO x (y)", "2026-13-41 1:2:3"])
def test_an_incomplete_line_has_no_time(line: str) -> None:
    with pytest.raises(ValueError, match=r"no line of a group\.log"):
        written_ms(line)
    assert dated_ms(line) is None


@pytest.mark.parametrize(
    ("version", "expected"), [("2.4.1", False), ("3.9.1", False), ("4.0.0", True)]
)
def test_lines_have_numbers_from_4_0_on(version: str, expected: bool) -> None:
    assert is_numbered(version) is expected
