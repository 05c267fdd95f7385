import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scenarios.durations import LONGEST_MS, format_ms, parse_ms, parse_positive_ms, parse_signed_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("3s", 3_000), ("2m", 120_000), ("1h", 3_600_000), ("0s", 0), ("007s", 7_000)],
)
def test_units(text: str, ms: int) -> None:
    assert parse_ms(text) == ms


@given(st.integers(0, 999_999_999))
def test_a_formatted_duration_is_read_back(ms: int) -> None:
    assert parse_ms(format_ms(ms)) == ms


@given(st.integers(1, 596), st.sampled_from(["ms", "s", "m", "h"]))
def test_written_as_short_as_it_gets(number: int, unit: str) -> None:
    text = f"{number}{unit}"
    assert len(format_ms(parse_ms(text))) <= len(text)


@given(st.text().filter(lambda text: re.fullmatch("[0-9]+(ms|s|m|h)?", text) is None))
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write a whole number and a unit: "):
        parse_ms(text)


@given(st.integers(0, 999_999_999), st.booleans())
def test_a_number_without_a_unit_is_refused_with_advice(number: int, as_text: bool) -> None:
    with pytest.raises(ValueError, match=f"^{number} has no unit; write {number}s for seconds"):
        parse_ms(str(number) if as_text else number)


@pytest.mark.parametrize(
    "value",
    [
        "1.5s",
        "-3s",
        "3 s",
        "3s\n",
        "3d",
        "s",
        "",
        "\u0663s",
        1.5,
        True,
        None,
        [],
        -1,
    ],
)
def test_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a duration; write a whole number and a unit: "):
        parse_ms(value)


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


@pytest.mark.parametrize("text", ["0ms", "0s", "000m"])
def test_nothing_is_too_short_where_something_must_happen(text: str) -> None:
    with pytest.raises(ValueError, match=f"{text} is too short; write 500ms"):
        parse_positive_ms(text)
    assert parse_ms(text) == 0


@pytest.mark.parametrize(
    ("text", "ms"), [("3s", 3_000), ("+3s", 3_000), ("-3s", -3_000), ("-500ms", -500), ("-0s", 0)]
)
def test_a_duration_with_a_sign(text: str, ms: int) -> None:
    assert parse_signed_ms(text) == ms
    assert parse_signed_ms(format_ms(ms)) == ms


@pytest.mark.parametrize("text", ["--3s", "+-3s", "- 3s", "-", "-3", "3s-"])
def test_a_sign_alone_makes_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="unit"):
        parse_signed_ms(text)


@pytest.mark.parametrize("read", [parse_ms, parse_positive_ms])
def test_no_other_duration_has_a_sign(read: Callable[[object], int]) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        read("-3s")
