"""Rebalances from the lines of one group, in the orders that releases write them."""

from collections.abc import Iterator

import pytest

from reports.incident.group_incident import Storm, row_about, storms
from reports.incident.lines.reader import Line
from reports.incident.rebalances import Began, Rebalances
from reports.incident.static_estimate import estimate
from reports.incident.tables import TABLES, table_of
from reports.incident.timing import SESSIONS_MS

SECOND = 1000.0
UUID = "f16351f5-996e-42c3-a846-07c023f0f2b"


def id_of(client: str, number: int = 1) -> str:
    return f"{client}-{UUID}{number}"


A, A_AGAIN, B, C = id_of("a"), id_of("a", 2), id_of("b"), id_of("c")


def line(at_s: float, template: str, broker: str = "1", **fields: str) -> Line:
    return Line(at_s * SECOND, broker, 0, template, "g", fields, f"{template} as it was written")


def preparing(at_s: float, reason: str, member: str, instance: str = "None") -> Line:
    return line(at_s, "preparing", reason=reason, member=member, instance=instance)


def done(at_s: float) -> list[Line]:
    return [line(at_s, "stabilized", members="2"), line(at_s, "assignment")]


def taken(lines: list[Line]) -> Rebalances:
    found = Rebalances()
    for one in numbered(lines):
        found.take(one)
    return found


def numbered(lines: list[Line]) -> Iterator[Line]:
    """Give lines the generations that a coordinator gives them, which begins with the third."""
    at, goes_on = 3, False
    for one in lines:
        if one.template in ("stabilized", "empty") and goes_on:
            at, goes_on = at + 1, False
        goes_on |= one.template == "preparing"
        yield one._replace(fields={"generation": str(at), **one.fields})


def expires(at_s: float, member: str = A) -> list[Line]:
    expired = line(at_s, "session_expired", member=member)
    return [expired, preparing(at_s, "session_expired", member), *done(at_s + 0.5)]


def leaves(at_s: float, member: str = A) -> list[Line]:
    """As Scala logs it from 3.0 on."""
    left = line(at_s, "left", member=member)
    return [preparing(at_s, "leave", member), left, *done(at_s + 0.5)]


def comes(at_s: float, member: str = A_AGAIN) -> list[Line]:
    given = line(at_s, "dynamic_given_id", member=member)
    return [given, preparing(at_s + 0.01, "new_member", member), *done(at_s + 0.5)]


def test_a_rebalance_lasts_from_preparing_to_the_assignment() -> None:
    [one] = taken([preparing(1, "leader_rejoin", A), *done(3.5)]).found
    assert (one.took_ms, one.size, one.ending, one.clients) == (2500.0, 2, "assigned", ["a"])


LEFT, LEFT_TOO = line(1, "left", member=A), line(1, "left", member=B)
REMOVED = "absent_dynamic_removed"
CHANGES = {
    "lines of Java": ([LEFT, LEFT_TOO, preparing(1.001, "leave", f"{A}, {B}")], ["a", "b"]),
    "lines of Scala": ([preparing(1, "leave", A), LEFT], ["a"]),
    "who emptied a group, as Scala logs it after that": (
        [preparing(1, "leave", A), line(1.1, "empty"), line(1.2, "left", member=B)],
        ["a", "b"],
    ),
    "who left long after a group was empty": (
        [preparing(1, "leave", A), line(1.1, "empty"), line(9, "left", member=B)],
        ["a"],
    ),
    "a departure of long ago is none of the next": ([LEFT, preparing(9, "leader_rejoin", B)], []),
    "a set of Scala": (
        [preparing(1, "leader_rejoin", C), line(2, REMOVED, removed=f"HashSet({A}, {B})")],
        ["a", "b"],
    ),
    "a set of Java": (
        [preparing(1, "leader_rejoin", C), line(2, REMOVED, removed=f"{A}, {B}")],
        ["a", "b"],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_who_came_and_went(name: str) -> None:
    lines, clients = CHANGES[name]
    one = taken([*lines, *done(10)]).found[0]
    assert [change.client for change in one.changes] == clients


def test_ids_that_a_request_did_not_give_are_taken_from_the_lines_beside() -> None:
    [one] = taken([LEFT, preparing(1.001, "leave", ", "), *done(2)]).found
    assert one.clients == ["a"]


def test_a_member_goes_once_though_another_coordinator_tells_it_later() -> None:
    moves = line(40, "group_loaded", broker="2")
    found = taken([*expires(1), moves, *expires(60)])
    assert [change.at_ms for change in found.changes] == [1 * SECOND]
    assert [len(one.changes) for one in found.found] == [1, 0]


def test_a_change_belongs_to_one_of_several_rebalances_of_a_second() -> None:
    begun = [
        preparing(1 + at, "session_expired", who) for at, who in ((0.1, A), (0.2, B), (0.3, C))
    ]
    found = taken([line(1.0, "session_expired", member=A), *begun]).found
    assert [[change.client for change in one.changes] for one in found] == [["a"], ["b"], ["c"]]


def test_how_rebalances_end() -> None:
    lines = [
        preparing(1, "leave", A), line(1.5, "stabilized"),
        preparing(2, "leave", B), line(3, "empty"),
        preparing(4, "new_member", C), line(5, "group_unloaded"),
        preparing(6, "new_member", id_of("d")),
    ]  # fmt: skip
    found = taken(lines).found
    assert [(one.ending, one.took_ms) for one in found] == [
        ("the next one began", None), ("the group became empty", 1_000.0),
        ("the coordinator gave the group up", 1_000.0), ("no end in the logs", None),
    ]  # fmt: skip


SAME = [id_of("same", number) for number in (1, 2, 3, 4)]
KNOWN_STATIC = line(1, "static_added", member=A, instance="a")
NAMED_STATIC = [preparing(1, "new_member", A, instance="Some(a)"), *done(2)]
NEWCOMER = line(10.2, "dynamic_given_id", member=id_of("new"))
OF_SAME = [*leaves(20, SAME[2]), *comes(24, SAME[3])]
ESTIMATES = {
    "a bounce within the session": ([*leaves(10), *comes(14)], 5, 2),
    "a longer one": ([*leaves(10), *comes(14)], 3, 0),
    "another client comes": ([*leaves(10), *comes(14, B)], 60, 0),
    "a static member is spared it already": ([KNOWN_STATIC, *leaves(10), *comes(14)], 60, 0),
    "its rebalance names its instance": ([*NAMED_STATIC, *leaves(10), *comes(14)], 60, 0),
    "somebody else needs the first": (
        [*leaves(10)[:2], NEWCOMER, *leaves(10)[2:], *comes(14)], 60, 1,
    ),
    "an expired one was away since its last heartbeat": ([*expires(20), *comes(24)], 15, 2),
    "for longer than a session": ([*expires(20), *comes(24)], 13, 0),
    "it is back before its old session ends": ([*comes(15), *expires(20)], 10, 2),
    "members share a client id": ([*leaves(10, SAME[0]), *comes(14, SAME[1]), *OF_SAME], 5, 4),
    "and the first never comes back": ([*leaves(10, SAME[0]), *OF_SAME], 5, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATES)
def test_what_static_members_are_spared(name: str) -> None:
    """They ran with sessions of 10 s."""
    lines, session_s, expected = ESTIMATES[name]
    found = taken(lines)
    would_be = estimate(found, session_s * SECOND, 10 * SECOND)
    free = [one for one in found.found if one.spared]
    assert len(free) == would_be["spared"] == expected
    if expected == 1:
        assert free[0].reason == "new_member"


IDLE = {
    "it never comes back": (leaves(10), 60, (1, 60)),
    "it comes back": ([*leaves(10), *comes(14)], 60, (1, 4)),
    "it comes back after the session": ([*leaves(10), *comes(99)], 60, (1, 60)),
    "an expired one was without an owner for 10 s anyway": (expires(20), 60, (1, 50)),
    "and its session was no shorter": (expires(20), 10, (0, 0)),
    "it is back before its old session ends": ([*comes(15), *expires(20)], 60, (0, 0)),
    "nobody is left 30 s later": (
        [*leaves(10), preparing(40, "leave", B), line(40, "left", member=B), line(40, "empty")],
        60, (1, 30),
    ),
    "a static member": ([line(1, "static_added", member=A, instance="a"), *leaves(10)], 60, (0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", IDLE)
def test_what_static_members_cost(name: str) -> None:
    """They ran with sessions of 10 s; partitions of members that went lie idle."""
    lines, session_s, (members, idle_s) = IDLE[name]
    would_be = estimate(taken(lines), session_s * SECOND, 10 * SECOND)
    assert (would_be["idle_members"], would_be["idle_ms"]) == (members, idle_s * SECOND)
    assert would_be["session_ms"] == session_s * SECOND
    same = {name: would_be[name] for name in ("session_ms", "spared", "idle_members", "idle_ms")}
    assert (same in would_be["by_session"]) == (same["session_ms"] in SESSIONS_MS)


def test_members_of_unknown_kind_are_spared_nothing_for_sure() -> None:
    left = line(10, "preparing", reason="leave", member=A)
    came = line(14, "preparing", reason="new_member", member=A_AGAIN)
    lines = [left, *done(10.5), came, *done(14.5)]
    would_be = estimate(taken(lines), 60 * SECOND, 10 * SECOND)
    assert (would_be["spared"], would_be["spared_up_to"], would_be["unknown"]) == (0, 2, 1)


def test_what_a_storm_is() -> None:
    minute = 60 * SECOND
    at = lambda *minutes: [Began(one * minute, one * minute) for one in minutes]
    assert storms(at(0, 1, 2, 3)) == []
    assert storms(at(*range(7))) == [Storm(0, 6 * minute, 7)]
    assert storms(at(0, 2, 4, 6, 8, 10, 12)) == []
    twice = at(*range(5), *range(1_000, 1_006))
    assert [storm.rebalances for storm in storms(twice)] == [5, 6]


def test_numbers_of_eighteen_digits_have_room_in_the_table() -> None:
    most, old = "9" * 18, "9" * 17 + "8"
    begun = line(1, "preparing", reason="leave", generation=old)
    stabilized = line(2, "stabilized", generation=most, members=most)
    row = row_about("g", [begun, stabilized, line(3, "assignment", generation=most)], None)
    [rebalance] = table_of(row["rebalances"], TABLES["rebalances"]).to_pylist()
    assert (rebalance["members"], rebalance["generation"]) == (int(most), int(old))
    assert (rebalance["took_ms"], rebalance["line"]) == (2_000, "preparing as it was written")
