"""Constructed histories with known results: the owner of each partition, and the stops.

All stand in one file, each as a group of its own, among lines of other things.
"""

import json
from collections import defaultdict

import pytest

from reports.ingest import bundle, client_history, ownership
from reports.ingest.client_costs import client_costs, hub_gaps
from reports.judgement.costs import Costs, HubGaps
from reports.judgement.run.history import said_in
from reports.judgement.run.run_folder import HISTORY

pytestmark = pytest.mark.spark

ZERO = 1_790_000_000_000.0

HISTORIES = {
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


def lines():
    for group, history in HISTORIES.items():
        for at_s, member, event, *partitions in history:
            about = {"at_ms": ZERO + at_s * 1000, "member": f"{group}/{member}", "group": group}
            owned = (
                {"partitions": [f"orders-{number}" for number in partitions[0]]}
                if partitions
                else {}
            )
            yield json.dumps(about | {"kind": "dynamic", "event": event} | owned)


def said(spark, history):
    """Return the lines of a history that are understood."""
    return bundle.table(client_history.read(spark, f"file:{history}", said_in), "lines")


@pytest.fixture(scope="module")
def membership(spark, tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / HISTORY
    file.write_text("\n".join([*lines(), *OTHER_LINES]))
    return ownership.membership(said(spark, file))


@pytest.fixture(scope="module")
def intervals(membership):
    """Return the intervals by group, with times in seconds."""
    found = defaultdict(list)
    table = ownership.intervals(membership).orderBy("group", "partition", "from_ms", "member")
    for row in table.collect():
        short = {name: without_suffix(row[name]) for name in ("member", "overlaps")}
        times = {"from": second(row.from_ms), "until": second(row.until_ms)}
        found[row.group].append(row.asDict() | short | times)
    return found


@pytest.fixture(scope="module")
def stops(membership):
    """Return the stops by group: (member, from, how long in ms, partitions, ended_as)."""
    found = defaultdict(list)
    for row in ownership.stops(membership).orderBy("group", "from_ms", "member").collect():
        stop = (second(row.from_ms), row.stopped_ms, row.partitions, row.ended_as)
        found[row.group].append((without_suffix(row.member), *stop))
    return found


def without_suffix(member):
    return member and member.rpartition("/")[2]


def second(at_ms):
    return round((at_ms - ZERO) / 1000, 3)


def of(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def test_an_owner_has_a_partition_from_assigned_to_revoked_or_to_its_end(intervals):
    rows = [r for r in intervals["eager"] if r["partition"] in ("orders-0", "orders-2", "orders-4")]
    assert of(rows, "partition", "member", "from", "until", "ended_as") == [
        ("orders-0", "a", 1.0, 5.1, "revoked"), ("orders-0", "a", 5.5, 9.0, "open"),
        ("orders-2", "b", 1.0, 5.3, "revoked"), ("orders-2", "a", 5.5, 9.0, "open"),
        ("orders-4", "c", 1.0, 5.0, "closed"), ("orders-4", "b", 5.6, 9.0, "closed"),
    ]  # fmt: skip


def test_partitions_move_to_another_name_and_stand_without_owner_in_between(intervals):
    assert of(intervals["eager"], "member", "moved", "unowned_ms", "overlap_ms") == [
        ("a", False, 0.0, 0.0), ("a", False, 400.0, 0.0),
        ("a", False, 0.0, 0.0), ("a", False, 400.0, 0.0),
        ("b", False, 0.0, 0.0), ("a", True, 200.0, 0.0),
        ("b", False, 0.0, 0.0), ("b", False, 300.0, 0.0),
        ("c", False, 0.0, 0.0), ("b", True, 600.0, 0.0),
        ("c", False, 0.0, 0.0), ("b", True, 600.0, 0.0),
    ]  # fmt: skip


def test_an_eager_rebalance_stops_those_who_stay_and_not_the_one_who_leaves(stops):
    assert stops["eager"] == [("a", 5.1, 400.0, 2, "assigned"), ("b", 5.3, 300.0, 2, "assigned")]


def test_a_static_member_that_comes_back_has_moved_nothing_and_stopped_nobody(intervals, stops):
    rows = of(intervals["static"], "member", "moved", "unowned_ms", "ended_as")
    assert rows == [("s", False, 0.0, "closed"), ("s", False, 2200.0, "closed")]
    assert stops["static"] == []


def test_a_cooperative_member_that_keeps_partitions_does_not_stop(intervals, stops):
    assert stops["cooperative"] == []
    assert of(intervals["cooperative"], "partition", "member", "moved", "unowned_ms") == [
        ("orders-0", "a", False, 0.0),
        ("orders-1", "a", False, 0.0),
        ("orders-2", "a", False, 0.0), ("orders-2", "b", True, 400.0),
        ("orders-3", "a", False, 0.0), ("orders-3", "b", True, 400.0),
    ]  # fmt: skip


def test_a_cooperative_member_that_keeps_nothing_stops_until_its_assignment(stops):
    assert stops["cooperative to nothing"] == [("a", 6.0, 500.0, 1, "assigned")]


def test_two_owners_overlap_and_an_identity_moves_nothing_to_itself(intervals, stops):
    names = ("member", "moved", "overlap_ms", "overlaps", "unowned_ms", "ended_as")
    assert of(intervals["duplicate"], *names) == [
        ("s", False, 0.0, None, 0.0, "fenced"),
        ("s.duplicate", False, 2000.0, "s", 0.0, "killed"),
        ("s", False, 0.0, None, 1300.0, "open"),
    ]
    assert stops["duplicate"] == []


def test_an_evicted_member_overlaps_until_it_learns_and_is_stopped_from_then_on(intervals, stops):
    rows = of(intervals["evicted"], "partition", "member", "moved", "overlap_ms", "overlaps")
    assert rows[:2] == [
        ("orders-0", "a", False, 0.0, None),
        ("orders-0", "b", True, 1000.0, "a"),
    ]
    assert stops["evicted"] == [("a", 9.0, 500.0, 1, "assigned")]


def test_an_overlap_is_with_the_member_that_still_owns_the_partition(intervals):
    assert of(intervals["zombie"], "member", "overlap_ms", "overlaps", "moved") == [
        ("z", 0.0, None, False),
        ("b", 1000.0, "z", True),
        ("c", 5000.0, "z", True),
    ]


def test_an_interval_has_the_way_it_ended(intervals):
    assert of(intervals["ends"], "member", "until", "ended_as") == [
        ("a", 5.0, "killed"),
        ("b", 5.0, "fenced"),
        ("c", 5.0, "lost"),
        ("d", 5.0, "closed"),
        ("e", 6.0, "vanished"),
        ("f", 8.0, "open"),
    ]


def test_a_stop_lasts_no_longer_than_the_client(stops):
    assert stops["stopped to the end"] == [
        ("a", 5.0, 250.0, 1, "killed"),
        ("a", 8.5, 500.0, 1, "open"),
    ]


def test_a_fenced_response_is_no_stop(stops):
    assert stops["fenced"] == []


def test_simultaneous_events_are_in_causal_order(intervals, stops):
    rows = of(intervals["at the same time"], "from", "until", "ended_as")
    assert rows == [(1.0, 5.0, "closed"), (5.0, 8.0, "closed")]
    assert stops["at the same time"] == []


def test_lines_of_other_things_and_those_cut_off_are_passed_over(membership):
    assert membership.count() == sum(len(history) for history in HISTORIES.values())


def test_a_run_without_history_has_an_empty_table(spark, tmp_path):
    table = f"file:{tmp_path}/ownership"
    assert client_costs(spark, None, table, ["static"], 8) == Costs()
    stored = spark.read.parquet(table)
    assert stored.isEmpty()
    assert stored.columns == [column.split()[0] for column in ownership.OWNERSHIP.split(",")]


def test_how_late_the_hub_ran(spark, tmp_path):
    """A line without a time of its own, or cut off, counts for nothing."""
    history = tmp_path / "history.jsonl"
    lags = [{"event": "hub_lag", "max_ms": float(ms)} for ms in range(1, 101)]
    others = [{"event": "assigned", "max_ms": 9_000.0}, {"event": "hub_lag"}]
    lines = [json.dumps({"at_ms": 1.0, **line}) for line in (*lags, *others)]
    history.write_text("\n".join([*lines, '{"event": "hub_lag", "max_m']))
    assert hub_gaps(said(spark, history)) == HubGaps(100, 99.0, 100.0)
    history.write_text("\n".join(lines[-2:]))
    assert hub_gaps(said(spark, history)) is None
