"""Every template of a coordinator line, and each of its fields, is listed as compared or not."""

import re
from pathlib import Path

import pytest

from kafka_protocol.coordinator_lines import ALL_GRAMMARS
from kafka_protocol.coordinator_lines.template import parts_of

PAGE = (Path(__file__).parents[2] / "docs" / "lines.md").read_text("utf-8")
ROWS = [row for row in PAGE.splitlines() if row.startswith("| ")]
EVERY_LINE_HAS = {"group", "partition"}
TEXTS = sorted(
    {
        (item.name, item.text)
        for grammar in ALL_GRAMMARS
        for item in (*grammar.templates, *grammar.reasons)
    }
)


@pytest.mark.parametrize(("name", "text"), TEXTS)
def test_each_field_of_a_line_is_listed(name: str, text: str) -> None:
    rows = [row for row in ROWS if f"`{name}`" in row.split(" | ")[0]]
    listed = set(re.findall(r"`(\w+)`", " ".join(row.partition(" | ")[2] for row in rows)))
    assert rows
    assert {part.name for part in parts_of(text)[0]} - EVERY_LINE_HAS <= listed
