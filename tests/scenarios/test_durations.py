"""Durations as text: what is read, what is refused, and that what is written is read back."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scenarios.durations import LONGEST_MS, format_ms, parse_ms, parse_positive_ms, parse_signed_ms

UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


@given(st.integers(0, 596), st.sampled_from(sorted(UNIT_MS)), st.sampled_from(["", "0", "00"]))
def test_a_duration_is_read_and_written_as_short_as_it_gets(number, unit, zeros) -> None:
    ms = number * UNIT_MS[unit]
    text = f"{zeros}{number}{unit}"
    assert parse_ms(text) == parse_signed_ms(text) == parse_signed_ms(f"+{text}") == ms
    assert parse_signed_ms(f"-{text}") == -ms
    assert len(format_ms(ms)) <= len(text)


@given(st.integers(0, 999_999_999))
def test_a_formatted_duration_is_read_back(ms: int) -> None:
    assert parse_ms(format_ms(ms)) == ms
    assert parse_signed_ms(format_ms(-ms)) == -ms


@given(st.text().filter(lambda text: re.fullmatch("[0-9]+(ms|s|m|h)?", text) is None))
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write a whole number and a unit: "):
        parse_ms(text)


def test_what_is_no_duration_is_refused_with_advice() -> None:
    others = ["1.5s", "-3s", "3 s", "3s\n", "3d", "s", "", "\u0663s", 1.5, True, None, [], -1]
    for value in others:
        for read in (parse_ms, parse_positive_ms):
            with pytest.raises(ValueError, match="is not a duration; write a whole number and"):
                read(value)
    for text in ("--3s", "+-3s", "- 3s", "-", "-3", "3s-"):
        with pytest.raises(ValueError, match="unit"):
            parse_signed_ms(text)
    for number in ("0", "7", 7, 999_999_999):
        with pytest.raises(ValueError, match=f"^{number} has no unit; write {number}s for sec"):
            parse_ms(number)
    for text in ("0ms", "0s", "000m"):
        with pytest.raises(ValueError, match=f"{text} is too short; write 500ms"):
            parse_positive_ms(text)


@given(st.integers(LONGEST_MS + 1), st.sampled_from([("ms", 1), ("s", 1_000), ("h", 3_600_000)]))
@example(int("9" * 4_000), ("h", 3_600_000))
def test_none_is_longer_than_kafka_counts(ms: int, unit: tuple[str, int]) -> None:
    text = f"{-(-ms // unit[1])}{unit[0]}"
    for read in (parse_ms, parse_positive_ms, parse_signed_ms):
        with pytest.raises(ValueError, match="is too long; write 596h or less"):
            read(text)
    with pytest.raises(ValueError, match="is too long; write 596h or less"):
        parse_signed_ms(f"-{text}")
    assert parse_ms("596h") == LONGEST_MS == parse_ms(f"00{LONGEST_MS}ms") < 2**31
