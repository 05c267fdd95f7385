"""The timeline: positions and colours."""

from dataclasses import replace

import pytest

from reports.page.charts import GENERATION_COLOURS, timeline
from reports.page.drawing import FINDING, REBALANCING, TWICE, Span
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


def colours(marker):
    """Return the colours of a trace's bars; plotly.js draws a pattern's where they have none."""
    if "pattern" not in marker:
        return marker["color"]
    assert isinstance(marker["color"], str)
    return marker["pattern"]["bgcolor"]


def draw(block):
    """Return the figure's bars, as (row, from, length, colour, text), and the whole figure."""
    figure = timeline([block], SPAN)
    axis = figure["layout"]["yaxis"]
    names = dict(zip(axis["tickvals"], axis["ticktext"], strict=True))
    bars = []
    for trace in (trace for trace in figure["data"] if trace["type"] == "bar"):
        columns = (trace["y"], trace["base"], trace["x"], colours(trace["marker"]), trace["text"])
        bars += [(names[y], *rest) for y, *rest in zip(*columns, strict=True)]
    return bars, figure


def test_bars_lie_in_their_rows_in_the_colour_of_their_generation(block):
    bars, _ = draw(block)
    first, second = GENERATION_COLOURS[:2]
    assert ("a", 6.0, 14.0, first, "") in bars
    assert ("b", 21.0, 39.0, second, "") in bars
    assert ("<b>observed</b>", 5.0, 1.0, REBALANCING, "") in bars
    assert ("<b>observed</b>", 6.0, 14.0, first, "1") in bars
    assert ("<b>observed</b>", 21.0, 39.0, second, "2") in bars
    assert ("<b>expected</b>", 6.0, 54.0, first, "1") in bars


def test_faults_lie_on_their_targets_and_those_not_healed_last_to_the_end(block):
    bars, figure = draw(block)
    assert ("a", 20.0, 3.0, "#ffffff", "restart") in bars
    assert [bar[1:3] for bar in bars if bar[4] == "restart ?"] == [(20.0, 40.0)]
    assert "<b>not healed</b><br><b>not verified</b>" in str(figure["data"])


def test_observed_rebalances_are_bands_over_all_lanes(block):
    _, figure = draw(block)
    above = [shape for shape in figure["layout"]["shapes"] if shape["layer"] == "above"]
    bands = [shape for shape in above if shape["type"] == "rect"]
    assert [(band["x0"], band["x1"]) for band in bands] == [(5.0, 6.0), (20.0, 21.0)]
    lanes = figure["layout"]["yaxis"]["tickvals"][-2:]
    assert all(band["y0"] < lanes[0] < lanes[1] < band["y1"] for band in bands)


def test_root_findings_are_numbered_and_hovering_tells_utc_and_who_caused_it(block):
    _, figure = draw(block)
    consequences, roots = [trace for trace in figure["data"] if trace["type"] == "scatter"]
    assert (roots["x"], roots["text"], roots["customdata"]) == ([20.0], ["1"], ["finding-1"])
    assert (consequences["x"], consequences["customdata"]) == ([21.0], ["finding-2"])
    lines = [s for s in figure["layout"]["shapes"] if s["type"] == "line" and s["layer"] == "above"]
    assert [line["x0"] for line in lines] == [20.0]
    hovers = str([trace["hovertext"] for trace in figure["data"]])
    assert "leave: a member left · seven<br>from +5.000 s · 00:16:45.000 UTC" in hovers


def test_groups_lie_below_each_other_on_one_time_axis(block):
    figure = timeline([block, block, block], SPAN)
    layout = figure["layout"]
    domains = [layout[name]["domain"] for name in ("yaxis", "yaxis2", "yaxis3")]
    assert all(0 <= low < high <= 1 for low, high in domains)
    assert domains[0][0] > domains[1][1] > domains[1][0] > domains[2][1]
    assert layout["xaxis"]["anchor"] == "y3"
    assert {trace["xaxis"] for trace in figure["data"]} == {"x"}


def test_a_phase_too_short_for_its_name_has_it_before_it_unless_it_is_the_last(block):
    phases = (("formation", ZERO), ("recovery", ZERO + 50_000), ("teardown", ZERO + 52_000))
    notes = timeline([block], Span(ZERO, ZERO + 53_000, phases))["layout"]["annotations"]
    sides = {note["text"]: note["xanchor"] for note in notes[:3]}
    assert sides == {"formation": "left", "recovery": "right", "teardown": "left"}


def records(what, number, member="a", until_s=24):
    until_ms = ZERO + until_s * 1000
    return {
        "partition": f"orders-{number}", "member": member, "what": what, "first": 5, "last": 9,
        "records": 5, "from_ms": until_ms - 1_000, "until_ms": until_ms,
    }  # fmt: skip


def test_records_that_went_wrong_are_marked_in_the_lane_of_their_member(block):
    found = [records("twice", 0), records("twice", 1), records("lost", 0, "b"), records("twice", 2)]
    bars, figure = draw(replace(block, records=[*found, records("twice", 0, "c")]))
    marks = [one for one in bars if one[1:3] == (23.0, 1.0)]
    assert marks == [("a", 23.0, 1.0, TWICE, ""), ("b", 23.0, 1.0, FINDING, "")]
    assert "orders-1: 5 records twice, allowed" in str(figure["data"])
