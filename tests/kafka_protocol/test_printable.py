"""What others chose is shown in one line, and what prints anyway is shown as it is."""

from hypothesis import given
from hypothesis import strategies as st

from kafka_protocol.printable import printable

FORGING = [
    *range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F),
    *range(0x2066, 0x206A), 0xD800, 0xDFFF, 0xFEFF, 0xFFFE,
]  # fmt: skip
"""C0 and C1, DEL, bidi controls, separators of lines, surrogates, the byte-order mark both ways."""


def test_characters_that_forge_are_escapes() -> None:
    for code in FORGING:
        assert printable(f"a{chr(code)}b") == f"a{chr(code)!a}b".replace("'", "")


@given(st.text(st.characters()), st.text(st.characters()))
def test_any_text_is_shown_in_one_line_character_by_character(one: str, other: str) -> None:
    shown = printable(one)
    assert shown.isprintable()
    shown.encode()
    assert printable(shown) == shown
    assert printable(one + other) == shown + printable(other)
    assert (shown == one) == one.isprintable()
