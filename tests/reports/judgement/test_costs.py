"""What rebalances cost, in numbers: of constructed tables and runs with known answers."""

from collections import Counter

from reports.judgement import members, verdict
from reports.judgement.costs import hub_gaps, summary
from reports.judgement.logged import REQUEST, Chunk
from reports.page.costs import Costs
from tests.reports.page_run import IMPACT_MS, ZERO_MS, expulsion, made_up, stop


def owned(group, partition, member, from_ms, overlaps=None):
    return {
        "group": group, "partition": partition, "member": member, "kind": "static",
        "from_ms": from_ms, "until_ms": from_ms + 50, "ended_as": "revoked", "moved": False,
        "unowned_ms": 0.0, "overlap_ms": 5.0 if overlaps else 0.0, "overlaps": overlaps,
    }  # fmt: skip


def test_rows_of_tables_are_given_in_order_of_time(tmp_path):
    ownership = [
        owned("other", "orders-0", "c", 30.0),
        owned("static", "orders-99", "b", 20.0, overlaps="a"),
        owned("static", "orders-1", "a", 10.0),
        owned("static", "orders-0", "a", 10.0),
    ]
    handovers = [
        {"group": "other", "at_ms": 30.0, "moved": 0, "unowned_ms": 0.0},
        {"group": "static", "at_ms": 10.0, "moved": 2, "unowned_ms": 3.2},
    ]
    lines = [
        {"at_ms": at_ms, "member": member, "template": template}
        for at_ms, member, template in (
            (4.0, "id-4", "session_expired"),
            (5.0, "id-5", "pending_expired"),
            (3.0, "id-3", "session_expired"),
        )
    ]
    requests = [
        {"answered_ms": at_ms, "client_id": client, "api": api, "readable": readable,
         "response": response}
        for at_ms, client, api, readable, response in (
            (1.0, "a", "HEARTBEAT", True, '{"throttleTimeMs":0,"errorCode":82}'),
            (6.0, "a", "LEAVE_GROUP", True, '{"errorCode":0,"members":[{"errorCode":82}]}'),
            (7.0, "b", "OFFSET_COMMIT", True, '{"topics":[{"partitions":[{"errorCode":82,"i":1}'),
            (8.0, "a", "HEARTBEAT", False, '{"errorCode":82}'),
            (9.0, "a", "HEARTBEAT", True, '{"errorCode":27,"generationId":82}'),
            (9.0, "a", "HEARTBEAT", True, '{"errorCode":820}'),
        )
    ]  # fmt: skip
    asked = [tuple(row.get(column) for column in REQUEST) for row in requests]
    expelled = members.expulsions(Chunk(asked, lines))
    rows = {
        "stops": [stop("static", "a", "static", 7.0, 2.0)],
        "handovers": handovers,
        "ownership": ownership,
        "expulsions": [{"group": "static", **row} for row in expelled],
    }
    run, judged, *_ = made_up(tmp_path).finish()
    found = Costs(run, judged, [], rows)
    assert found.frames["handovers"]["at_ms"].to_list() == [10.0, 30.0]
    drawn = found.frames["ownership"][["partition", "member", "overlaps"]]
    assert [tuple(row) for row in drawn.itertuples(index=False)] == [
        ("orders-0", "a", None),
        ("orders-1", "a", None),
        ("orders-99", "b", "a"),
        ("orders-0", "c", None),
    ]
    evicted = [(row["at_ms"], row["subject"]) for row in found.evictions(["static"])]
    assert evicted == [(3.0, "id-3"), (4.0, "id-4")]
    assert found.fences(["static"]) == {
        ("static", "a", "HEARTBEAT"): [1.0],
        ("static", "a", "LEAVE_GROUP"): [6.0],
        ("static", "b", "OFFSET_COMMIT"): [7.0],
    }
    assert not found.has_history("g")


def by_phase(formation=0, impact=0, recovery=0, teardown=0):
    total = formation + impact + recovery + teardown
    return {
        "formation": formation, "impact": impact, "recovery": recovery, "teardown": teardown,
        "total": total,
    }  # fmt: skip


def test_the_verdict_holds_the_costs_of_each_group(tmp_path):
    made = made_up(tmp_path)
    made.expulsions = [
        expulsion("static", ZERO_MS + 1, "id"),
        expulsion("static", IMPACT_MS + 1, "id"),
        expulsion("static", IMPACT_MS + 2, "static-0", "HEARTBEAT"),
        expulsion("static", made.recovery_ms + 1, "static-0", "HEARTBEAT"),
        expulsion("static", made.recovery_ms + 2, "static-0", "JOIN_GROUP"),
    ]
    _, judged, *_ = made.finish()
    static, dynamic = judged["groups"]["static"], judged["groups"]["dynamic"]
    assert dynamic["by_cause"] == {
        "formation": {"new_member": 1},
        "impact": {"leave": 8, "new_member": 8},
        "recovery": {},
        "teardown": {},
    }
    assert dynamic["stop_the_world_ms"] == {
        "stops": 112, "p50": 800.0, "p99": 800.0, "max": 800.0, "total": 89_600.0
    }  # fmt: skip
    assert dynamic["partitions_moved"] == by_phase(impact=16)
    assert static["stop_the_world_ms"]["stops"] == 0
    assert static["partitions_moved"] == by_phase()
    assert static["evictions"] == by_phase(formation=1, impact=1)
    assert static["fences"] == by_phase(impact=1, recovery=2)
    assert dynamic["evictions"] == dynamic["fences"] == by_phase()


def test_costs_without_history_are_not_zero(tmp_path):
    made = made_up(tmp_path)
    made.handovers = [one for one in made.handovers if one["group"] == "dynamic"]
    _, judged, *_ = made.finish()
    assert judged["groups"]["static"]["stop_the_world_ms"] is None
    assert judged["groups"]["static"]["partitions_moved"] is None
    assert judged["groups"]["static"]["evictions"] == by_phase()
    assert judged["groups"]["dynamic"]["partitions_moved"] == by_phase(impact=16)


def test_stops_outside_the_impact_phase_do_not_count(tmp_path):
    made = made_up(tmp_path)
    made.stops = [
        stop("dynamic", "a", "dynamic", at_ms, length)
        for at_ms, length in (
            (IMPACT_MS - 1, 1.0), (IMPACT_MS, 2.0),
            (made.recovery_ms - 1, 4.0), (made.recovery_ms, 8.0),
        )
    ]  # fmt: skip
    _, judged, *_ = made.finish()
    stopped = judged["groups"]["dynamic"]["stop_the_world_ms"]
    assert (stopped["stops"], stopped["total"]) == (2, 6.0)


def test_percentiles_are_the_nearest_rank():
    def of(lengths):
        summed = summary(lengths)
        return summed["p50"], summed["p99"], summed["max"], summed["total"]

    assert of(float(n) for n in range(100, 0, -1)) == (50.0, 99.0, 100.0, 5050.0)
    assert of([3.0, 1.0, 2.0]) == (2.0, 3.0, 3.0, 6.0)
    assert of([0.1] * 10) == (0.1, 0.1, 0.1, 1.0)
    assert of([]) == (0.0, 0.0, 0.0, 0.0)


def test_same_evidence_same_bytes(tmp_path):
    made = made_up(tmp_path)
    first = verdict.to_json(made.finish()[1])
    made.stops.reverse()
    assert verdict.to_json(made.finish()[1]) == first


def test_the_percentile_of_the_hub_lies_between_two_seconds():
    """Of 1 to 201 ms the 99th percentile is 1 + 0.99 * 200 ms; of 0 and 10 it is 9.9 ms."""
    for late_ms, expected in (
        (Counter(map(float, range(1, 202))), (201, 199.0, 201.0)),
        (Counter([0.0, 10.0]), (2, 9.9, 10.0)),
        (Counter([4.5]), (1, 4.5, 4.5)),
        (Counter({2.0: 1_000, 9_000.0: 3}), (1_003, 2.0, 9_000.0)),
    ):
        assert tuple(hub_gaps(late_ms).values()) == expected
    assert hub_gaps(Counter()) is None
