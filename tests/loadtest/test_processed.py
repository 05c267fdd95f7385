"""What a member notes of the records that it processed."""

import pytest

import loadtest.processed as module
from loadtest.processed import Processed, producer_since
from loadtest.timing import QUIET_MS

ORDERS, OTHER = ("orders", 0), ("orders", 1)
P, Q = producer_since("producer-0", 1_790_000_000_000.4), producer_since("producer-0", 1.79e12 + 7)


@pytest.fixture
def lines():
    return []


@pytest.fixture
def processed(lines):
    return Processed(lambda event, **fields: lines.append({"event": event, **fields}))


def read(processed, records, partition=ORDERS):
    """Give records as offset and value, each at the time of its offset."""
    for offset, value in records:
        processed.record(partition, offset, value and value.encode(), 1_000.0 + offset)


def misnumbered(lines):
    keys = ("producer", "offset", "expected", "found")
    return [tuple(one[key] for key in keys) for one in lines if one["event"] == "misnumbered"]


@pytest.mark.parametrize(
    ("offsets", "ranges"),
    [
        ([5, 6, 7], [[5, 7]]),
        ([0, 1, 3, 4], [[0, 1], [3, 4]]),
        ([3, 4, 2, 3, 4], [[3, 4], [2, 4]]),
        ([3, 3], [[3, 3], [3, 3]]),
    ],
    ids=["all", "a gap", "back", "twice"],
)
def test_a_range_ends_where_the_next_offset_is_not_greater_by_one(
    processed, lines, offsets, ranges
):
    read(processed, [(one, None) for one in offsets])
    processed.write()
    at_ms = 1_000.0 + offsets[-1]
    assert lines == [{"event": "processed", "at_ms": at_ms, "ranges": {"orders-0": ranges}}]


def test_partitions_are_read_side_by_side_and_a_line_has_what_is_new(processed, lines):
    processed.write()
    for first, last in ((0, 9), (10, 12)):
        processed.offsets(ORDERS, first, last, 1.0)
        processed.offsets(OTHER, first + 100, last + 100, 1.0)
    processed.write()
    read(processed, [(13, None)])
    processed.write()
    processed.write()
    assert [line["ranges"] for line in lines] == [
        {"orders-0": [[0, 12]], "orders-1": [[100, 112]]},
        {"orders-0": [[13, 13]]},
    ]


def test_it_is_written_once_a_second_unless_it_has_to_be(processed, lines, monkeypatch):
    for now_ms in (5_000.0, 5_001.0, 5_000.0 + QUIET_MS - 1, 5_000.0 + QUIET_MS):
        monkeypatch.setattr(module, "now_ms", lambda now_ms=now_ms: now_ms)
        read(processed, [(int(now_ms), None)])
        processed.write_due()
    assert [line["at_ms"] for line in lines] == [6_000.0, 6_000.0 + QUIET_MS]


def test_a_number_that_does_not_follow_is_named(processed, lines):
    numbers = (1, 2, 4, 5, 5, 4, 5)  # one is missing, one stands twice, one comes late
    read(processed, ((offset, f"{P} {number}") for offset, number in enumerate(numbers)))
    processed.write()
    processed.write()
    assert misnumbered(lines) == [(P, 2, 3, 4), (P, 4, 6, 5), (P, 5, 6, 4)]
    assert lines[1]["partition"] == "orders-0"
    assert [line["event"] for line in lines] == ["processed", *3 * ["misnumbered"]]


def test_each_producer_and_each_partition_has_numbers_of_its_own(processed, lines):
    read(processed, [(0, f"{P} 8"), (1, f"{Q} 1"), (2, f"{P} 9"), (3, f"{Q} 2")])
    read(processed, [(0, f"{P} 1"), (1, f"{P} 2")], OTHER)
    processed.write()
    assert misnumbered(lines) == []


@pytest.mark.parametrize("offset", [9, 3, 0], ids=["ahead", "again", "back"])
def test_numbers_follow_only_while_offsets_do(processed, lines, offset):
    read(processed, [(3, f"{P} 4"), (offset, f"{P} 77"), (offset + 1, f"{P} 79")])
    processed.write()
    assert misnumbered(lines) == [(P, offset + 1, 78, 79)]


@pytest.mark.parametrize("value", [None, "", "17", "temperature 17", f"{P} 17 C", f"{P} -17"])
def test_values_of_others_have_no_numbers(processed, lines, value):
    read(processed, [(0, value), (1, value), (2, f"{P} 3")])
    processed.write()
    assert misnumbered(lines) == []
