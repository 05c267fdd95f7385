"""What rebalances cost, in numbers: of constructed tables and runs with known answers."""

from collections import Counter

from reports.judgement import members, verdict
from reports.judgement.costs import hub_gaps, summary
from reports.judgement.logged import REQUEST, Chunk
from tests.reports.page_run import IMPACT_MS, ZERO_MS, expulsion, handover, stop

ANSWERS = [
    (1.0, "a", "HEARTBEAT", True, '{"throttleTimeMs":0,"errorCode":82}'),
    (6.0, "a", "LEAVE_GROUP", True, '{"errorCode":0,"members":[{"errorCode":82}]}'),
    (7.0, "b", "OFFSET_COMMIT", True, '{"topics":[{"partitions":[{"errorCode":82,"i":1}'),
    (8.0, "a", "HEARTBEAT", False, '{"errorCode":82}'),
    (9.0, "a", "HEARTBEAT", True, '{"errorCode":27,"generationId":82}'),
    (9.0, "a", "HEARTBEAT", True, '{"errorCode":820}'),
]
LINES = [(4.0, "id-4", "session_expired"), (5.0, "id-5", "pending_expired")]


def test_members_are_expelled_by_timers_and_by_answers_that_fence_them():
    names = ("answered_ms", "client_id", "api", "readable", "response")
    answers = [dict(zip(names, answer, strict=True)) for answer in ANSWERS]
    requests = [tuple(row.get(column) for column in REQUEST) for row in answers]
    lines = [dict(zip(("at_ms", "member", "template"), line, strict=True)) for line in LINES]
    found = members.expulsions(Chunk(requests, lines))
    assert sorted((row["at_ms"], row["subject"], row["api"]) for row in found) == [
        (1.0, "a", "HEARTBEAT"), (4.0, "id-4", ""), (6.0, "a", "LEAVE_GROUP"),
        (7.0, "b", "OFFSET_COMMIT"),
    ]  # fmt: skip


def by_phase(**counts):
    phases = dict.fromkeys(("formation", "impact", "recovery", "teardown"), 0) | counts
    return {**phases, "total": sum(counts.values())}


def test_the_verdict_holds_the_costs_of_each_group(made):
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


def test_costs_without_history_are_not_zero(made):
    made.handovers = [one for one in made.handovers if one["group"] == "dynamic"]
    _, judged, *_ = made.finish()
    assert judged["groups"]["static"]["stop_the_world_ms"] is None
    assert judged["groups"]["static"]["partitions_moved"] is None
    assert judged["groups"]["static"]["evictions"] == by_phase()
    assert judged["groups"]["dynamic"]["partitions_moved"] == by_phase(impact=16)


def test_partitions_without_an_owner_count_in_the_impact_phase(made):
    spans = {ZERO_MS + 1: 5_000.0, IMPACT_MS + 1: 1_250.0, IMPACT_MS + 2: 2_000.0}
    made.handovers = [handover("static", at_ms, 1, ms) for at_ms, ms in spans.items()]
    _, judged, *_ = made.finish()
    assert judged["groups"]["static"]["unowned_partition_s"] == 3.25
    assert judged["groups"]["dynamic"]["unowned_partition_s"] is None


def test_stops_outside_the_impact_phase_do_not_count(made):
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


def test_same_evidence_same_bytes(made):
    first = verdict.to_json(made.finish()[1])
    for rows in (made.stops, made.joins, made.holdings, made.handovers):
        rows.reverse()
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
