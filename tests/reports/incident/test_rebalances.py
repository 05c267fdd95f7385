"""Rebalances from the lines of one group, in the orders that releases write them."""

from collections.abc import Iterable, Sequence

from reports.incident.group_incident import Storm, storms
from reports.incident.rebalances import Rebalance, Rebalances, client_of
from reports.incident.static_estimate import absences, spared
from reports.incident.stock_lines import Line

SECOND = 1000.0
UUID = "f16351f5-996e-42c3-a846-07c023f0f2b"


def id_of(client: str, number: int = 1) -> str:
    return f"{client}-{UUID}{number}"


def line(at_s: float, template: str, broker: str = "1", **fields: str) -> Line:
    return Line(at_s * SECOND, broker, 0, template, "g", fields, "")


def preparing(at_s: float, reason: str, member: str, instance: str = "None") -> Line:
    return line(at_s, "preparing", reason=reason, member=member, instance=instance, generation="3")


def done(at_s: float) -> list[Line]:
    return [line(at_s, "stabilized", members="2"), line(at_s, "assignment")]


def taken(lines: Iterable[Line]) -> Rebalances:
    found = Rebalances()
    for one in lines:
        found.take(one)
    return found


def bounced(member: str, again: str, at_s: float, down_s: float) -> list[Line]:
    """A dynamic member closes and comes back, as Scala logs it from 3.0 on."""
    return [
        preparing(at_s, "leave", member),
        line(at_s, "left", member=member),
        *done(at_s + 0.5),
        line(at_s + down_s, "dynamic_given_id", member=again),
        preparing(at_s + down_s + 0.01, "new_member", again),
        *done(at_s + down_s + 0.5),
    ]


def test_a_rebalance_lasts_from_preparing_to_the_assignment() -> None:
    [one] = taken([preparing(1, "leader_rejoin", id_of("a")), *done(3.5)]).found
    assert (one.took_ms, one.size, one.ending) == (2500.0, 2, "assigned")
    assert one.clients == ["a"]


def test_who_left_is_known_in_either_order_of_the_lines() -> None:
    left = line(1, "left", member=id_of("a"))
    java_reason = preparing(1.001, "leave", f"{id_of('a')}, {id_of('b')}")
    both = [left, line(1, "left", member=id_of("b")), java_reason, *done(2)]
    [java] = taken(both).found
    [scala] = taken([preparing(1, "leave", id_of("a")), left, *done(2)]).found
    assert [change.client for change in java.changes] == ["a", "b"]
    assert [change.client for change in scala.changes] == ["a"]


def test_ids_that_a_request_did_not_give_are_taken_from_the_lines_beside() -> None:
    lines = [line(1, "left", member=id_of("a")), preparing(1.001, "leave", ", "), *done(2)]
    [one] = taken(lines).found
    assert one.clients == ["a"]


def test_a_departure_of_long_ago_is_not_of_the_next_rebalance() -> None:
    lines = [line(1, "left", member=id_of("a")), preparing(9, "leader_rejoin", id_of("b"))]
    [one] = taken(lines).found
    assert one.changes == []


def test_a_member_goes_once_though_another_coordinator_tells_it_later() -> None:
    gone = id_of("a")
    lines = [
        preparing(1, "session_expired", gone),
        *done(2),
        line(40, "group_loaded", broker="2"),
        preparing(60, "session_expired", gone),
        *done(61),
    ]
    found = taken(lines)
    assert [change.at_ms for change in found.changes] == [1 * SECOND]
    assert [len(one.changes) for one in found.found] == [1, 0]


def test_a_change_belongs_to_one_of_several_rebalances_of_a_second() -> None:
    lines = [
        line(1.0, "session_expired", member=id_of("a")),
        preparing(1.1, "session_expired", id_of("a")),
        preparing(1.2, "session_expired", id_of("b")),
        preparing(1.3, "session_expired", id_of("c")),
    ]
    found = taken(lines).found
    assert [[change.client for change in one.changes] for one in found] == [["a"], ["b"], ["c"]]


def test_how_rebalances_end() -> None:
    lines = [
        preparing(1, "leave", id_of("a")),
        preparing(2, "leave", id_of("b")),
        line(3, "empty"),
        preparing(4, "new_member", id_of("c")),
        line(5, "group_unloaded"),
        preparing(6, "new_member", id_of("d")),
    ]
    found = taken(lines).found
    assert [one.ending for one in found] == [
        "the next one began",
        "the group became empty",
        "the coordinator gave the group up",
        "no end in the logs",
    ]
    assert found[-1].took_ms is None


def test_sets_are_read_as_scala_and_java_print_them() -> None:
    scala = line(2, "absent_dynamic_removed", removed=f"HashSet({id_of('a')}, {id_of('b')})")
    java = line(2, "absent_dynamic_removed", removed=f"{id_of('a')}, {id_of('b')}")
    for removed in (scala, java):
        found = taken([preparing(1, "leader_rejoin", id_of("c")), removed, *done(3)])
        assert [change.client for change in found.found[0].changes] == ["a", "b"]


def test_a_member_id_that_looks_like_no_other_is_kept() -> None:
    assert client_of(id_of("consumer, one (two)")) == "consumer, one (two)"
    assert client_of("odd") == "odd"


def estimated(lines: Sequence[Line], session_s: float, ran_with_s: float = 45) -> list[Rebalance]:
    found = taken(lines)
    pairs = absences(found.changes, ran_with_s * SECOND, session_s * SECOND)
    return spared(found.found, pairs)


def test_a_dynamic_bounce_within_the_session_is_spared_and_a_longer_one_is_not() -> None:
    lines = bounced(id_of("a", 1), id_of("a", 2), at_s=10, down_s=4)
    assert len(estimated(lines, 5)) == 2
    assert len(estimated(lines, 3)) == 0


def test_another_client_that_comes_is_not_the_one_that_went() -> None:
    assert estimated(bounced(id_of("a"), id_of("b"), at_s=10, down_s=4), 60) == []


def test_a_static_member_is_not_spared_what_it_is_spared_already() -> None:
    lines = bounced(id_of("a", 1), id_of("a", 2), at_s=10, down_s=4)
    first = [line(1, "static_added", member=id_of("a", 1), instance="a")]
    assert estimated([*first, *lines], 60) == []


def test_a_member_is_static_whose_rebalance_names_its_instance() -> None:
    came = [preparing(1, "new_member", id_of("a", 1), instance="Some(a)"), *done(2)]
    lines = bounced(id_of("a", 1), id_of("a", 2), at_s=10, down_s=4)
    assert estimated([*came, *lines], 60) == []


def test_a_rebalance_that_somebody_else_needs_stays() -> None:
    lines = bounced(id_of("a", 1), id_of("a", 2), at_s=10, down_s=4)
    newcomer = line(10.2, "dynamic_given_id", member=id_of("new"))
    assert [one.reason for one in estimated([*lines[:2], newcomer, *lines[2:]], 60)] == [
        "new_member"
    ]


def test_an_expired_member_was_away_since_its_last_heartbeat() -> None:
    gone, back = id_of("a", 1), id_of("a", 2)
    lines = [
        line(20, "session_expired", member=gone),
        preparing(20, "session_expired", gone),
        *done(20.5),
        line(24, "dynamic_given_id", member=back),
        preparing(24, "new_member", back),
        *done(24.5),
    ]
    assert len(estimated(lines, 15, ran_with_s=10)) == 2
    assert len(estimated(lines, 13, ran_with_s=10)) == 0


def test_a_member_that_is_back_before_its_old_session_expires() -> None:
    gone, back = id_of("a", 1), id_of("a", 2)
    lines = [
        line(15, "dynamic_given_id", member=back),
        preparing(15, "new_member", back),
        *done(15.5),
        line(20, "session_expired", member=gone),
        preparing(20, "session_expired", gone),
        *done(20.5),
    ]
    assert len(estimated(lines, 10, ran_with_s=10)) == 2


def test_members_that_share_a_client_id_are_paired_in_order() -> None:
    lines = [
        *bounced(id_of("same", 1), id_of("same", 2), at_s=10, down_s=4),
        *bounced(id_of("same", 3), id_of("same", 4), at_s=20, down_s=4),
    ]
    assert len(estimated(lines, 5)) == 4
    assert len(estimated([*lines[:4], *lines[8:]], 5)) == 2  # the first never came back


def test_what_a_storm_is() -> None:
    minute = 60 * SECOND
    assert storms([minute * number for number in range(4)]) == []
    assert storms([minute * number for number in range(7)]) == [Storm(0, 6 * minute, 7)]
    assert storms([2 * minute * number for number in range(7)]) == []
    twice = [*range(5), *range(1_000_000, 1_000_006)]
    assert [storm.rebalances for storm in storms([float(at) for at in twice])] == [5, 6]
