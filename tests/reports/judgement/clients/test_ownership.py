"""Constructed histories with known results: the owner of each partition, and the stops.

All stand in one file, each as a group of its own, among lines of other things.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from reports.judgement.clients import ownership
from reports.judgement.run.history import ClientEvent, events_by_group, said_in
from reports.judgement.run.journal import Account
from tests.reports.judgement.contexts import compared

Row = dict[str, Any]
ByGroup = dict[str, list[Any]]

ZERO = 1_790_000_000_000.0

HISTORIES: dict[str, tuple[tuple[Any, ...], ...]] = {
    # an eager group of three that one leaves
    "eager": (
        (0, "a", "created"), (0, "b", "created"), (0, "c", "created"),
        (1, "a", "assigned", [0, 1]), (1, "b", "assigned", [2, 3]), (1, "c", "assigned", [4, 5]),
        (5, "c", "closing"), (5.001, "c", "revoked", [4, 5]), (5.01, "c", "closed", []),
        (5.1, "a", "revoked", [0, 1]), (5.3, "b", "revoked", [2, 3]),
        (5.5, "a", "assigned", [0, 1, 2]), (5.6, "b", "assigned", [3, 4, 5]),
        (9, "b", "closing"),
    ),
    "static": (
        (0, "s", "created"), (1, "s", "assigned", [0]),
        (5, "s", "closing"), (5, "s", "revoked", [0]), (5.1, "s", "closed"),
        (7, "s", "created"), (7.2, "s", "assigned", [0]), (9, "s", "closing"),
    ),
    "cooperative": (
        (0, "a", "created"), (1, "a", "assigned", [0, 1, 2, 3]), (4, "b", "created"),
        (5, "a", "revoked", [2, 3]), (5.2, "a", "assigned", []), (5.4, "b", "assigned", [2, 3]),
        (9, "b", "closing"),
    ),
    "cooperative to nothing": (
        (0, "a", "created"), (1, "a", "assigned", [0]), (2, "a", "assigned", [1]),
        (5, "a", "revoked", [0]), (6, "a", "revoked", [1]), (6.5, "a", "assigned", []),
        (7, "a", "revoked", []), (8, "a", "assigned", [0]),
    ),
    "duplicate": (
        (0, "s", "created"), (1, "s", "assigned", [0]),
        (4, "s.duplicate", "created"), (5, "s.duplicate", "assigned", [0]),
        (7, "s", "fenced", [0]), (7, "s", "closing"), (7.1, "s", "closed", []),
        (9, "s.duplicate", "killed", [0]),
        (10, "s", "created"), (10.3, "s", "assigned", [0]),
    ),
    "evicted": (
        (0, "a", "created"), (1, "a", "assigned", [0]), (1, "b", "assigned", [1]),
        (8, "b", "assigned", [0]), (9, "a", "lost", [0]), (9.5, "a", "assigned", [2]),
    ),
    "zombie": (
        (1, "z", "assigned", [0]), (2, "b", "assigned", [0]), (3, "b", "revoked", [0]),
        (4, "c", "assigned", [0]), (9, "z", "lost", [0]), (9, "c", "closing"),
    ),
    "ends": (
        *((1, member, "assigned", [number]) for number, member in enumerate("abcdef")),
        (5, "a", "killed", [0]),
        (5, "b", "fenced", [1]), (5.1, "b", "closed", []),
        (5, "c", "lost", [2]),
        (5, "d", "closed", [3]),
        (6, "e", "created"),
        (8, "a", "created"),
    ),
    "stopped to the end": (
        (0, "a", "created"), (1, "a", "assigned", [0]), (5, "a", "revoked", [0]),
        (5.25, "a", "killed", []), (7, "a", "created"), (8, "a", "assigned", [0]),
        (8.5, "a", "revoked", [0]), (9, "b", "created"),
    ),
    "fenced": ((1, "a", "assigned", [0]), (5, "a", "lost", [0]), (5.1, "a", "fenced", [])),
    "at the same time": (
        (1, "a", "assigned", [0]),
        (5, "a", "assigned", [0]), (5, "a", "created"), (5, "a", "closed", []),
        (5, "a", "revoked", [0]), (5, "a", "closing"), (8, "a", "closing"),
    ),
}  # fmt: skip

OTHER_LINES = (
    '{"at_ms":1.0,"member":null,"group":null,"kind":null,"event":"hub_lag","max_ms":3}',
    '{"at_ms":1.0,"member":"producer-0","group":null,"event":"created"}',
    '{"at_ms":1790000009000.0,"member":"eager/a","group":"eager","event":"committed","offsets":3}',
    '{"at_ms":"soon","member":"eager/a","group":"eager","event":"closed"}',
    "\x00\x01 no JSON",
    '{"at_ms":1790000001500.0,"member":"eager/a","group":"eager","event":"revoked","partitions":["',
)
"""The last line was cut off by a crash."""


def lines() -> Iterator[str]:
    for group, history in HISTORIES.items():
        for at_s, member, event, *partitions in history:
            about = {"at_ms": ZERO + at_s * 1000, "member": f"{group}/{member}", "group": group}
            owned = (
                {"partitions": [f"orders-{number}" for number in partitions[0]]}
                if partitions
                else {}
            )
            yield json.dumps(about | {"kind": "dynamic", "event": event} | owned)


@pytest.fixture(scope="module")
def events() -> dict[str, list[ClientEvent]]:
    """Return the events about members by group."""
    raw = [line.encode() for line in (*lines(), *OTHER_LINES)]
    return events_by_group(raw, said_in, Account())


@pytest.fixture(scope="module")
def tables(events: dict[str, list[ClientEvent]]) -> dict[str, ByGroup]:
    """Return the rows by table and group."""
    found: dict[str, ByGroup] = {name: defaultdict(list) for name in ownership.TABLES}
    for group, mine in events.items():
        for name, row in rows_of(mine):
            found[name][group].append(row)
    return found


@pytest.fixture(scope="module")
def intervals(tables: dict[str, ByGroup]) -> ByGroup:
    """Return the intervals by group, with times in seconds."""
    found: ByGroup = defaultdict(list)
    for group, rows in tables["ownership"].items():
        for row in rows:
            short = {name: without_suffix(row[name]) for name in ("member", "overlaps")}
            times = {"from": second(row["from_ms"]), "until": second(row["until_ms"])}
            found[group].append(row | short | times)
    return found


@pytest.fixture(scope="module")
def stops(tables: dict[str, ByGroup]) -> ByGroup:
    """Return the stops by group: (member, from, how long in ms, partitions, ended_as)."""
    found: ByGroup = defaultdict(list)
    for group, rows in tables["stops"].items():
        for row in rows:
            stop = (second(row["from_ms"]), row["stopped_ms"], row["partitions"], row["ended_as"])
            found[group].append((without_suffix(row["member"]), *stop))
    return found


def without_suffix(member: str | None) -> str | None:
    return member and member.rpartition("/")[2]


def rows_of(events: Iterable[ClientEvent]) -> list[tuple[str, Row]]:
    """Return the rows of `ownership.TABLES` of a group without requests."""
    _, clients = compared((), events)
    return [*clients.owners.rows()]


def second(at_ms: float) -> float:
    return round((at_ms - ZERO) / 1000, 3)


def of(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_an_owner_has_a_partition_from_assigned_to_revoked_or_to_its_end(
    intervals: ByGroup,
) -> None:
    rows = [r for r in intervals["eager"] if r["partition"] in ("orders-0", "orders-2", "orders-4")]
    assert of(rows, "partition", "member", "from", "until", "ended_as") == [
        ("orders-0", "a", 1.0, 5.1, "revoked"), ("orders-0", "a", 5.5, 9.0, "open"),
        ("orders-2", "b", 1.0, 5.3, "revoked"), ("orders-2", "a", 5.5, 9.0, "open"),
        ("orders-4", "c", 1.0, 5.0, "closed"), ("orders-4", "b", 5.6, 9.0, "closed"),
    ]  # fmt: skip


def test_partitions_move_to_another_name_and_stand_without_owner_in_between(
    intervals: ByGroup,
) -> None:
    assert of(intervals["eager"], "member", "moved", "unowned_ms", "overlap_ms") == [
        ("a", False, 0.0, 0.0), ("a", False, 400.0, 0.0),
        ("a", False, 0.0, 0.0), ("a", False, 400.0, 0.0),
        ("b", False, 0.0, 0.0), ("a", True, 200.0, 0.0),
        ("b", False, 0.0, 0.0), ("b", False, 300.0, 0.0),
        ("c", False, 0.0, 0.0), ("b", True, 600.0, 0.0),
        ("c", False, 0.0, 0.0), ("b", True, 600.0, 0.0),
    ]  # fmt: skip


def test_an_eager_rebalance_stops_those_who_stay_and_not_the_one_who_leaves(stops: ByGroup) -> None:
    assert stops["eager"] == [("a", 5.1, 400.0, 2, "assigned"), ("b", 5.3, 300.0, 2, "assigned")]


def test_a_static_member_that_comes_back_has_moved_nothing_and_stopped_nobody(
    intervals: ByGroup, stops: ByGroup
) -> None:
    rows = of(intervals["static"], "member", "moved", "unowned_ms", "ended_as")
    assert rows == [("s", False, 0.0, "closed"), ("s", False, 2200.0, "closed")]
    assert stops["static"] == []


def test_a_cooperative_member_that_keeps_partitions_does_not_stop(
    intervals: ByGroup, stops: ByGroup
) -> None:
    assert stops["cooperative"] == []
    assert of(intervals["cooperative"], "partition", "member", "moved", "unowned_ms") == [
        ("orders-0", "a", False, 0.0),
        ("orders-1", "a", False, 0.0),
        ("orders-2", "a", False, 0.0), ("orders-2", "b", True, 400.0),
        ("orders-3", "a", False, 0.0), ("orders-3", "b", True, 400.0),
    ]  # fmt: skip


def test_a_cooperative_member_that_keeps_nothing_stops_until_its_assignment(stops: ByGroup) -> None:
    assert stops["cooperative to nothing"] == [("a", 6.0, 500.0, 1, "assigned")]


def test_two_owners_overlap_and_an_identity_moves_nothing_to_itself(
    intervals: ByGroup, stops: ByGroup
) -> None:
    names = ("member", "moved", "overlap_ms", "overlaps", "unowned_ms", "ended_as")
    assert of(intervals["duplicate"], *names) == [
        ("s", False, 0.0, None, 0.0, "fenced"),
        ("s.duplicate", False, 2000.0, "s", 0.0, "killed"),
        ("s", False, 0.0, None, 1300.0, "open"),
    ]
    assert stops["duplicate"] == []


def test_an_evicted_member_overlaps_until_it_learns_and_is_stopped_from_then_on(
    intervals: ByGroup, stops: ByGroup
) -> None:
    rows = of(intervals["evicted"], "partition", "member", "moved", "overlap_ms", "overlaps")
    assert rows[:2] == [
        ("orders-0", "a", False, 0.0, None),
        ("orders-0", "b", True, 1000.0, "a"),
    ]
    assert stops["evicted"] == [("a", 9.0, 500.0, 1, "assigned")]


def test_an_overlap_is_with_the_member_that_still_owns_the_partition(intervals: ByGroup) -> None:
    assert of(intervals["zombie"], "member", "overlap_ms", "overlaps", "moved") == [
        ("z", 0.0, None, False),
        ("b", 1000.0, "z", True),
        ("c", 5000.0, "z", True),
    ]


def test_an_interval_has_the_way_it_ended(intervals: ByGroup) -> None:
    assert of(intervals["ends"], "member", "until", "ended_as") == [
        ("a", 5.0, "killed"),
        ("b", 5.0, "fenced"),
        ("c", 5.0, "lost"),
        ("d", 5.0, "closed"),
        ("e", 6.0, "vanished"),
        ("f", 8.0, "open"),
    ]


def test_a_stop_lasts_no_longer_than_the_client(stops: ByGroup) -> None:
    assert stops["stopped to the end"] == [
        ("a", 5.0, 250.0, 1, "killed"),
        ("a", 8.5, 500.0, 1, "open"),
    ]


def test_a_fenced_response_is_no_stop(stops: ByGroup) -> None:
    assert stops["fenced"] == []


def test_simultaneous_events_are_in_causal_order(intervals: ByGroup, stops: ByGroup) -> None:
    rows = of(intervals["at the same time"], "from", "until", "ended_as")
    assert rows == [(1.0, 5.0, "closed"), (5.0, 8.0, "closed")]
    assert stops["at the same time"] == []


def test_lines_of_other_things_and_those_cut_off_are_passed_over(
    events: dict[str, list[ClientEvent]],
) -> None:
    of_owners = lambda mine: [one for one in mine if one.event != "committed"]
    assert {group: len(of_owners(mine)) for group, mine in events.items()} == {
        group: len(history) for group, history in HISTORIES.items()
    }


def test_partitions_are_handed_over_at_one_instant(tables: dict[str, ByGroup]) -> None:
    """Of three that are assigned together two had the same member before, 0.4 s earlier."""
    found = of(tables["handovers"]["eager"], "at_ms", "moved", "unowned_ms")
    assert [(second(at_ms), moved, unowned_ms) for at_ms, moved, unowned_ms in found] == [
        (1.0, 0, 0.0), (5.5, 1, 400.0 + 400.0 + 200.0), (5.6, 2, 300.0 + 600.0 + 600.0),
    ]  # fmt: skip


def test_events_may_come_in_any_order(events: dict[str, list[ClientEvent]]) -> None:
    for mine in events.values():
        mixed = random.Random(7).sample(mine, len(mine))
        assert list(rows_of(mixed)) == list(rows_of(mine))


def test_what_one_member_is_told_at_one_instant_has_an_order() -> None:
    """Twice the same event at one time: the last of both is the stop, in an order of its own."""
    names = ("t-0", "t-1", "t-2")
    given = ClientEvent(5.0, 7, "a", frozenset(names))
    taken = [ClientEvent(6.0, 2, "a", frozenset(of)) for of in (names[:2], names[2:])]
    found = list(rows_of([given, *taken]))
    assert found == list(rows_of([given, *reversed(taken)]))
    (stop,) = (row for name, row in found if name == "stops")
    assert (stop["from_ms"], stop["partitions"], stop["ended_as"]) == (6.0, 1, "open")


def test_what_a_member_gives_up_and_never_had_counts_for_nothing_later() -> None:
    """It still has a partition after the second `revoked`, so that it is not stopped."""
    revoked, assigned = 2, 7
    history = (
        (1.0, revoked, {"t-7"}), (1.0, assigned, {"t-0", "t-1"}), (2.0, revoked, {"t-0"}),
        (3.0, assigned, ()),
    )  # fmt: skip
    events = [ClientEvent(at_ms, order, "a", frozenset(of)) for at_ms, order, of in history]
    stops = [row["from_ms"] for name, row in rows_of(events) if name == "stops"]
    assert stops == [1.0]


def test_an_event_that_stands_twice_in_the_history_counts_once() -> None:
    assigned = ClientEvent(1.0, 7, "a", frozenset({"t-0"}))
    revoked = ClientEvent(2.0, 2, "a", frozenset({"t-0"}))
    once = rows_of([assigned, revoked])
    assert [row["ended_as"] for name, row in once if name == "ownership"] == ["revoked"]
    assert rows_of([assigned, assigned, revoked, revoked]) == once
