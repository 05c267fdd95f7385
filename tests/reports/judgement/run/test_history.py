"""Lines of the client history that no client writes."""

import json
from functools import partial
from math import inf

import pytest

from reports.judgement.run.history import ClientEvent, events_by_group, said_in
from reports.judgement.run.journal import Account

LINE = {"at_ms": 2.5, "member": "a", "group": "g", "event": "assigned", "partitions": ["o-1"]}


def read(*lines: bytes, until_ms: float = inf) -> tuple[dict[str, list[ClientEvent]], Account]:
    account = Account()
    return events_by_group(lines, partial(said_in, within_ms=(0.0, until_ms)), account), account


NAN, INF = float("nan"), float("inf")
WRONG = {
    "at_ms": [NAN, INF, "2.5", True, None], "sent_at_ms": [NAN, "1"], "member": ["", ["a"]],
    "group": [["g"]], "event": [["assigned"], "unheard"], "offsets": ["3", 0.5],
    "partitions": ["o-1", [None, "o-1"], [["o", 1]], {"o": 1}], "member_id": [3],
    "instance_id": [["i"]], "api": [11],
}  # fmt: skip
NO_PARTITIONS = (
    "o-", "o", "", "-1", "o-0x", "o -0", "\0\0\0", "o-1\n", "o-01", "o-+1", "o-٣", "ö-1",
    "o-12345678901",
)  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, value) for field, values in WRONG.items() for value in values),
        *(("partitions", ["o-1", name]) for name in NO_PARTITIONS),
    ],
)
def test_a_line_with_another_value_is_not_understood(field, value):
    found, account = read(*(json.dumps(one).encode() for one in ({**LINE, field: value}, LINE)))
    ((group, (event,)),) = found.items()
    assert (group, event.client, event.at_ms, event.partitions) == ("g", "a", 2.5, {"o-1"})
    assert (account.lines, account.damaged, account.first) == (2, 1, 1)


@pytest.mark.parametrize("absent", ["at_ms", "event", "member", "group", "partitions"])
def test_a_line_without_what_its_event_needs_is_not_understood(absent):
    less = {name: value for name, value in LINE.items() if name != absent}
    found, account = read(json.dumps(less).encode())
    assert (found, account.damaged) == ({}, 1)


WHOLE = json.dumps(LINE).encode()


DAMAGED = {
    "empty": (b"", "Input data was truncated"),
    "NUL": (b"\0" * len(WHOLE), "JSON is malformed: invalid character (byte 0)"),
    "UTF-8": (WHOLE.replace(b'"a"', b'"\xff"'), "invalid UTF-8"),
    "UTF-8 of what is not read": (WHOLE[:-1] + b', "more": "\xff"}', "invalid UTF-8"),
    "deep": (WHOLE[:-1] + b', "more": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
             "maximum recursion depth exceeded while deserializing an object"),
    "1e999": (WHOLE.replace(b"2.5", b"1e999"), "Number out of range - at `$.at_ms`"),
    "2^70": (WHOLE.replace(b"2.5", str(2**70).encode()),
             "Expected `float` <= 253402300799000.0 - at `$.at_ms`"),
    "2100": (WHOLE.replace(b"2.5", b"4102444800000"), "its time is not one of the run"),
    "long": (WHOLE[:-1] + b', "more": "' + b"x" * (17 << 20) + b'"}',
             "JSON is malformed: invalid character (byte 0)"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "why"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_one_doubt_with_the_first_line_and_how_many(line, why):
    found, account = read(WHOLE, line, WHOLE, line, line, until_ms=10_000.0)
    assert [len(events) for events in found.values()] == [2]
    assert account.doubts("history.jsonl") == [
        f"history.jsonl:2 not understood ({why}); 3 such lines"
    ]
    assert Account(lines=7).doubts("history.jsonl") == []


def test_accounts_of_parts_are_one():
    whole = Account()
    for damaged in (3, 0, 2):
        part = Account()
        list(part.entries([b"1", *[b"x"] * damaged], int))
        whole.merge(part)
    assert (whole.lines, whole.damaged, whole.first) == (8, 5, 2)


NOTED = {
    "at_ms": 2.5, "member": "a", "group": "g", "event": "processed",
    "ranges": {"o-1": [[3, 5], [0, 1]], "o-2": [[9, 9]]},
}  # fmt: skip
ODD = {
    "at_ms": 3.5, "member": "a", "group": "g", "event": "misnumbered", "partition": "o-1",
    "offset": 7, "producer": "p@1", "expected": 4, "found": 6,
}  # fmt: skip


def test_records_come_in_the_order_of_processing():
    found, account = read(*(json.dumps(one).encode() for one in (NOTED, ODD)))
    noted, odd = found["g"]
    assert noted.ranges == (("o-1", 3, 5), ("o-1", 0, 1), ("o-2", 9, 9))
    assert odd.ranges == (("o-1", 7, 7),)
    assert account.damaged == 0


@pytest.mark.parametrize(
    "ranges",
    [None, [[0, 1]], {"o": [[0, 1]]}, {"o-1": [[0]]}, {"o-1": [[-1, 0]]}, {"o-1": [[1, 0]]}],
)
def test_ranges_that_no_client_writes(ranges):
    found, account = read(json.dumps({**NOTED, "ranges": ranges}).encode())
    assert (found, account.damaged) == ({}, 1)
