"""The timeline: positions and kinds."""

import json
from dataclasses import replace
from math import inf

import pytest

from kafka_protocol.errors import Error
from reports.page.charts import timeline
from reports.page.drawing import Span
from reports.page.drawn_groups import DrawnGroup, Membership, Period, periods

ZERO = 1_000_000.0
SPAN = Span(ZERO, ZERO + 60_000, (("formation", ZERO), ("impact", ZERO + 10_000)))
SIDE = (
    "started_ms", "joined_ms", "assigned_ms", "ended_as", "generation", "old_generation",
    "reason", "member_id", "members",
)  # fmt: skip


def row(start_s, old, ended_as="assigned", side="observed", **other):
    """Return a row of the comparison of which one side has a rebalance of a second."""
    start = ZERO + start_s * 1000
    assigned_ms = start + 1000 if ended_as == "assigned" else None
    times = {"started_ms": start, "joined_ms": start + 900, "assigned_ms": assigned_ms}
    about = {"reason": "leave", "member_id": "id-7", "members": 3, "ended_as": ended_as}
    values = {**times, **about, "generation": old + 1, "old_generation": old, **other}
    empty = {f"{one}_{name}": None for one in ("observed", "expected") for name in SIDE}
    return {**empty, "outcome": "match"} | {f"{side}_{n}": value for n, value in values.items()}


PERIODS = {
    "each instant is a rebalance or a generation": (
        [row(5, 0), row(20, 1)],
        [(True, 1, 5, 6), (False, 1, 6, 20), (True, 2, 20, 21), (False, 2, 21, 60)],
    ),
    "an empty group is in no generation": (
        [row(5, 0), row(20, 1, "empty")],
        [(True, 1, 5, 6), (False, 1, 6, 20), (True, 2, 20, 20.9)],
    ),
    "a rebalance goes over into the one that overtakes it": (
        [row(5, 0, "superseded"), row(8, 1)],
        [(True, 1, 5, 8), (True, 2, 8, 9), (False, 2, 9, 60)],
    ),
    "an open one lasts to the end": ([row(5, 0, "open", generation=None)], [(True, None, 5, 60)]),
    "without its first line it begins where its join phase ended": (
        [row(5, 0, started_ms=None)],
        [(True, 1, 5.9, 6), (False, 1, 6, 60)],
    ),
    "a side without the rebalance shows nothing": ([row(5, 0, side="expected")], []),
}


@pytest.mark.parametrize("name", PERIODS)
def test_rebalances_and_generations(name):
    rows, expected = PERIODS[name]
    assert [
        (one.rebalancing, one.generation, (one.start_ms - ZERO) / 1000, (one.end_ms - ZERO) / 1000)
        for one in periods(rows, "observed", SPAN.end_ms)
    ] == expected


@pytest.fixture
def block():
    fault = {
        "name": "member.restart", "target": "a", "injected_at_ms": ZERO + 20_000,
        "healed_at_ms": ZERO + 23_000, "verified": True, "witness": "it was gone",
    }  # fmt: skip
    return DrawnGroup(
        group="g",
        title="2 members",
        planned=("a", "b"),
        memberships=[
            Membership("a", "a-1", 1, ZERO + 6_000, ZERO + 20_000),
            Membership("b", "b-1", 2, ZERO + 21_000, ZERO + 60_000),
        ],
        timelines={
            "observed": periods([row(5, 0), row(20, 1)], "observed", SPAN.end_ms),
            "expected": [Period(False, 1, ZERO + 6_000, SPAN.end_ms, row(5, 0, side="expected"))],
        },
        faults=[fault, {**fault, "target": "b", "healed_at_ms": None, "verified": False}],
        findings=[
            {"number": 1, "root": True, "kind": "late", "at_ms": ZERO + 20_000},
            {"number": 2, "root": False, "kind": "late", "at_ms": ZERO + 21_000},
        ],
        clients={"id-7": "seven"},
    )


def draw(block):
    """Return the bars of the one block, as (row, from, to, kind, text), and the block."""
    (drawn,) = timeline([block], SPAN)["blocks"]
    bars = [
        (row["name"], bar["from"], bar.get("to", "mark"), bar["kind"], bar.get("text", ""))
        for row in drawn["rows"]
        for bar in row["bars"]
    ]
    return bars, drawn


def test_bars_lie_in_their_rows_with_the_kind_of_their_generation(block):
    bars, drawn = draw(block)
    assert [bar for bar in bars if bar[3].startswith(("gen", "reb"))] == [
        ("observed", 5.0, 6.0, "rebalance", ""),
        ("observed", 6.0, 20.0, "gen-0", "1"),
        ("observed", 20.0, 21.0, "rebalance", ""),
        ("observed", 21.0, None, "gen-1", "2"),
        ("expected", 6.0, None, "gen-0", "1"),
        ("a", 6.0, 20.0, "gen-0", ""),
        ("b", 21.0, None, "gen-1", ""),
    ]
    heads = [row["name"] for row in drawn["rows"] if row["head"]]
    assert heads == ["findings", "observed", "expected"]


def test_as_time_goes_on_the_end_alone_changes(block):
    def drawn(span):
        still_in = [Membership("b", "b-1", 2, ZERO + 21_000, inf)]
        observed = {"observed": periods([row(5, 0), row(20, 1)], "observed", span.end_ms)}
        return timeline([replace(block, memberships=still_in, timelines=observed)], span)

    later = drawn(Span(ZERO, ZERO + 70_000, SPAN.phases))
    assert later == drawn(SPAN) | {"end": 70.0}


def test_faults_lie_on_their_targets_and_those_not_healed_last_to_the_end(block):
    bars, drawn = draw(block)
    assert ("a", 20.0, 23.0, "fault", "restart") in bars
    assert ("b", 20.0, None, "fault unverified", "restart ?") in bars
    hovers = [bar["hover"] for bar in drawn["rows"][-1]["bars"]]
    assert ["not healed", "not verified"] in [hover[-2:] for hover in hovers]


def test_observed_rebalances_are_bands(block):
    _, drawn = draw(block)
    times = [(band["from"], band["to"], band["kind"]) for band in drawn["bands"]]
    assert times == [(5.0, 6.0, "rebalance"), (20.0, 21.0, "rebalance")]


def test_a_fault_of_a_broker_is_one_band_over_all_groups(block):
    fault = {**block.faults[0], "name": "broker.kill", "target": "1"}
    hit = replace(block, faults=[fault])
    bands = timeline([hit, hit], SPAN)["bands"]
    assert bands == [{"from": 20.0, "to": 23.0, "kind": "broker"}]


def test_root_findings_are_numbered_and_details_tell_who_caused_a_rebalance(block):
    bars, drawn = draw(block)
    assert bars[:2] == [
        ("findings", 20.0, "mark", "finding", "1"),
        ("findings", 21.0, "mark", "finding consequence", ""),
    ]
    found, observed, *_ = drawn["rows"]
    assert [bar["opens"] for bar in found["bars"]] == ["finding-1", "finding-2"]
    assert observed["bars"][0]["hover"][1] == "leave: a member left · seven"


def records(what, number, member="a", until_s=24):
    until_ms = ZERO + until_s * 1000
    return {
        "partition": f"orders-{number}", "member": member, "what": what, "first": 5, "last": 9,
        "records": 5, "from_ms": until_ms - 1_000, "until_ms": until_ms,
    }  # fmt: skip


def test_records_that_went_wrong_are_marked_in_the_lane_of_their_member(block):
    found = [records("twice", 0), records("twice", 1), records("lost", 0, "b"), records("twice", 2)]
    bars, drawn = draw(replace(block, records=[*found, records("twice", 0, "c")]))
    marks = [one for one in bars if one[1:3] == (23.0, 24.0)]
    assert marks == [("a", 23.0, 24.0, "records", ""), ("b", 23.0, 24.0, "records wrong", "")]
    assert "orders-1: 5 records twice, allowed" in str(drawn)


def test_of_very_many_memberships_short_ones_are_joined(block):
    """No lane then has more bars than its part of what a page can carry; absences show."""
    ends = [ZERO + 1_000 * at for at in (0, 1, 2, 3, 40, 41, 42)]
    mine = [Membership("a", "a-1", at + 1, *ends[at : at + 2]) for at in range(6)]
    bars, drawn = draw(replace(block, memberships=mine, bars=5, faults=(), records=()))
    assert [bar[1:4] for bar in bars if bar[0] == "a"] == [
        (0.0, 40.0, "many"),
        (40.0, 42.0, "many"),
    ]
    assert drawn["rows"][-2]["bars"][0]["hover"][0] == "generation 1 to 4"


def test_requests_of_scripted_members_are_marks_in_their_lanes(block):
    request = {"memberId": "a-1", "generationId": 3, "members": [{"groupInstanceId": "i"}]}
    asked = {
        "client_id": "a", "api": "LEAVE_GROUP", "api_version": 4,
        "error_code": Error.FENCED_INSTANCE_ID,
        "at_ms": ZERO + 30_000, "request": json.dumps(request),
    }  # fmt: skip
    refused = {**asked, "client_id": "never joined", "error_code": None}
    beat = {**asked, "api": "HEARTBEAT", "error_code": 0}
    _, drawn = draw(replace(block, requests=[asked, beat, refused]))
    acts = [
        (row["name"], bar) for row in drawn["rows"] for bar in row["bars"] if bar["kind"] == "act"
    ]
    (first, one), (second, other) = acts
    assert (first, second, one["from"]) == ("a", "never joined", 30.0)
    said = ["memberId a-1, generationId 3, groupInstanceId i", "answered FENCED_INSTANCE_ID"]
    assert one["hover"] == ["LEAVE_GROUP, version 4", *said]
    assert other["hover"][-1] == "without an answer"


def test_who_coordinated_is_a_row_only_where_that_changed(block):
    times = [("1", ZERO - 9_000, ZERO + 30_000), ("2", ZERO + 31_000, inf)]
    bars, _ = draw(replace(block, coordinators=times))
    assert [bar for bar in bars if bar[0] == "coordinator"] == [
        ("coordinator", 0.0, 30.0, "broker", "broker 1"),
        ("coordinator", 31.0, None, "broker", "broker 2"),
    ]
    bars, _ = draw(replace(block, coordinators=times[:1]))
    assert not [bar for bar in bars if bar[0] == "coordinator"]
