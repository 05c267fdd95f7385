"""Lines that stand in logs more than once."""

import pytest

from reports.incident.folding import folded
from reports.incident.lines.reader import Line

LINE = Line(1_010.0, "1", 49, "stabilized", "g", {"generation": "5"}, "Stabilized group g")
COARSE = LINE._replace(at_ms=1_000.0)
NAMELESS = LINE._replace(template="static_no_rebalance", fields={})
NAMELESS_COARSE = NAMELESS._replace(at_ms=1_000.0)
LOADED = LINE._replace(template="member_loaded")
LATER = LINE._replace(at_ms=1_500.0)
CASES = {
    "twice in one file": ([("a", LINE), ("a", LINE)], [LINE], {"a": 1}),
    "in two files": ([("a", LINE), ("b", LINE)], [LINE], {"b": 1}),
    "of two brokers": (
        [("a", LINE), ("a", LINE._replace(broker="2"))], [LINE, LINE._replace(broker="2")], {},
    ),
    "at two times": ([("a", LINE), ("a", LATER)], [LINE, LATER], {}),
    "to the second, and the more exact time": ([("a", COARSE), ("b", LINE)], [LINE], {"b": 1}),
    "the more exact time, and to the second": ([("b", LINE), ("a", COARSE)], [LINE], {"a": 1}),
    "twice in each of two": (
        [("a", COARSE), ("a", COARSE), ("b", LINE), ("b", LINE)], [LINE], {"a": 1, "b": 2},
    ),
    "no name and twice in a millisecond": ([("a", NAMELESS)] * 2, [NAMELESS], {"a": 1}),
    "a loading broker's, once a record": ([("a", LOADED)] * 2, [LOADED], {}),
    "no name and twice in a second, which may be": (
        [("a", NAMELESS_COARSE)] * 2, [NAMELESS_COARSE] * 2, {},
    ),
    "no name, and once more in another file": (
        [("a", NAMELESS_COARSE)] * 2 + [("b", NAMELESS_COARSE)], [NAMELESS_COARSE] * 2, {"b": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_copies_count_once(name: str) -> None:
    rows, lines, copies = CASES[name]
    assert folded(rows) == (lines, copies)


def test_lines_are_in_the_order_of_their_times() -> None:
    between = LINE._replace(at_ms=1_005.0, text="another")
    rows = [("a", COARSE), ("b", between), ("b", LINE)]
    assert folded(rows)[0] == [between, LINE]
