"""The figures of costs: positions and colours."""

import pandas as pd
import pytest

from reports.page import cost_charts
from reports.page.cost_charts import KIND_COLOURS, OWNER_COLOURS, colour_number, labels, owners
from reports.page.drawing import Span
from reports.page.drawn_groups import DrawnGroup, Period
from tests.reports.page_run import holding, stop

ZERO = 1_000_000.0
SPAN = Span(ZERO, ZERO + 60_000, (("formation", ZERO), ("impact", ZERO + 10_000)))


def held(number, member, from_s, until_s, overlap_s=0, overlaps=None, ended_as="revoked"):
    from_ms, until_ms = ZERO + from_s * 1000, ZERO + until_s * 1000
    partition = f"orders-{number}"
    return holding("g", partition, member, from_ms, until_ms, ended_as, overlap_s * 1000, overlaps)


@pytest.fixture
def owned():
    fault = {
        "name": "member.restart", "target": "m-1", "injected_at_ms": ZERO + 20_000,
        "healed_at_ms": ZERO + 23_000, "verified": True, "witness": "", "group": "g",
    }  # fmt: skip
    return DrawnGroup(
        group="g",
        total=12,
        planned=("m-0", "m-1"),
        ownership=pd.DataFrame([
            held(0, "m-0", 5, 20),
            held(1, "m-0", 5, 20),
            held(10, "m-1", 5, 20),
            held(2, "m-1", 5, 5.5),
            held(1, "m-1", 21, 60, ended_as="open"),
            held(10, "m-1.duplicate", 18, 30, overlap_s=2, overlaps="m-1"),
        ]),
        timelines={"observed": [
            Period(True, 1, ZERO + 20_000, ZERO + 21_000, {}),
            Period(False, 1, ZERO + 21_000, ZERO + 60_000, {}),
        ]},
        faults=[fault],
    )  # fmt: skip


def rows(figure, trace):
    axis = figure["layout"]["yaxis"]
    names = dict(zip(axis["tickvals"], axis["ticktext"], strict=True))
    return [names[y] for y in figure["data"][trace]["y"]]


def test_bars_lie_in_the_rows_of_their_partitions_in_the_colour_of_their_owner(owned):
    figure = owners(owned, SPAN)
    named = figure["layout"]["yaxis"]["ticktext"]
    assert list(named) == ["<b>faults</b>", "orders-0", "orders-1", "orders-2", "orders-10"]
    bars = figure["data"][0]
    first, second = OWNER_COLOURS[:2]
    columns = (rows(figure, 0), bars["base"], bars["x"], bars["marker"]["color"])
    assert list(zip(*columns, strict=True)) == [
        ("orders-0", 5.0, 15.0, first),
        ("orders-1", 5.0, 15.0, first),
        ("orders-10", 5.0, 15.0, second),
        ("orders-2", 5.0, 0.5, second),
        ("orders-1", 21.0, 39.0, second),
        ("orders-10", 18.0, 12.0, second),
    ]
    assert list(bars["marker"]["pattern"]["shape"]) == ["", "", "", "", "", "/"]
    assert "<b>orders-1</b> of m-1<br>from +21.000 s" in bars["hovertext"][4]
    assert bars["hovertext"][4].endswith("still owned at the end of the history")


def test_an_owners_number_stands_once_in_neighbours_and_only_where_there_is_room(owned):
    figure = owners(owned, SPAN)
    marks = figure["data"][1]
    assert list(zip(rows(figure, 1), marks["x"], marks["text"], strict=True)) == [
        ("orders-0", 12.5, "0"),
        ("orders-1", 40.5, "1"),
        ("orders-10", 12.5, "1"),
        ("orders-10", 24.0, "1"),
    ]


def test_two_owners_at_once_are_marked(owned):
    figure = owners(owned, SPAN)
    mark = figure["data"][2]
    assert (rows(figure, 2), mark["base"], mark["x"]) == (["orders-10"], [18.0], [2.0])
    assert "as clients saw it<br>for 2.000 s" in mark["hovertext"][0]
    assert "m-1 and m-1.duplicate" in mark["hovertext"][0]


def test_faults_stand_above_and_rebalances_lie_over_the_rows_on_the_timelines_axis(owned):
    figure = owners(owned, SPAN)
    assert rows(figure, 3) == ["<b>faults</b>"]
    assert figure["data"][3]["base"][0] == 20.0
    (band,) = [s for s in figure["layout"]["shapes"] if s["layer"] == "above"]
    ticks = figure["layout"]["yaxis"]["tickvals"]
    assert (band["x0"], band["x1"]) == (20.0, 21.0)
    assert ticks[0] < band["y0"] < ticks[1] < ticks[-1] < band["y1"]
    assert list(figure["layout"]["xaxis"]["range"]) == [0, 60.0]
    assert figure["layout"]["margin"]["l"] == 150


def test_no_more_is_drawn_than_a_page_can_carry(owned):
    assert cost_charts.drawn_partitions(owned) == ["orders-0", "orders-1", "orders-2", "orders-10"]
    assert cost_charts.drawn_partitions(owned, bars_left=3) == ["orders-0", "orders-1"]
    assert cost_charts.drawn_partitions(owned, bars_left=0) == ["orders-0"]
    many = pd.DataFrame([held(number, "m-0", 5, 20) for number in range(60)])
    assert len(cost_charts.drawn_partitions(DrawnGroup("g", ownership=many))) == 48
    assert cost_charts.drawn_partitions(DrawnGroup("g")) == []


def test_sixteen_members_have_sixteen_colours_and_a_second_process_its_members():
    members = [f"m-{number}" for number in range(17)]
    numbers = [colour_number(members, member) for member in members]
    assert len({OWNER_COLOURS[number] for number in numbers[:16]}) == 16
    assert numbers[16] == numbers[0]
    assert colour_number(members, "m-3.duplicate") == 3


def test_an_owner_is_written_by_its_number_or_its_place():
    assert labels(["a-0", "a-12"]) == {"a-0": "0", "a-12": "12"}
    assert labels(["a-0", "b-0", "a-12"]) == {"a-0": "0", "b-0": "1", "a-12": "2"}
    assert labels(["a-1", "b"]) == {"a-1": "0", "b": "1"}


def stopped(members, found):
    return DrawnGroup("g", f"{len(members)} members", members, stops=pd.DataFrame(found))


def test_a_members_stops_are_put_one_after_the_other():
    found = [
        stop("g", "a", "dynamic", ZERO, 500.0),
        stop("g", "b", "static", ZERO, 250.0),
        stop("g", "a", "dynamic", ZERO + 9_000, 1500.0),
    ]
    figure = cost_charts.stops([stopped(("a", "b", "c"), found), stopped((), ())])
    bars, totals = figure["data"][:2]
    drawn = list(zip(bars["y"], bars["base"], bars["x"], bars["marker"]["color"], strict=True))
    static, dynamic = KIND_COLOURS["static"], KIND_COLOURS["dynamic"]
    assert drawn == [(0, 0.0, 0.5, dynamic), (0, 0.5, 1.5, dynamic), (1, 0.0, 0.25, static)]
    assert [text.strip() for text in totals["text"]] == ["2.00 s", "0.25 s", "0"]
    assert list(figure["layout"]["yaxis"]["ticktext"]) == ["a", "b", "c"]
    domains = [figure["layout"][name]["domain"] for name in ("yaxis", "yaxis2")]
    assert domains[0][0] > domains[1][1] > domains[1][0] >= 0


def test_those_stopped_longest_are_drawn_first():
    members = [f"m-{number}" for number in range(50)]
    found = [stop("g", f"m-{number}", "dynamic", ZERO, float(number)) for number in range(50)]
    figure = cost_charts.stops([stopped(members, found)])
    drawn = list(figure["layout"]["yaxis"]["ticktext"])
    assert drawn == [f"m-{number}" for number in range(10, 50)]
    assert "40 of them drawn" in str(figure["layout"]["annotations"])
