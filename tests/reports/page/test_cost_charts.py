"""The figures of costs: positions and kinds."""

import pandas as pd
import pytest

from reports.page import cost_charts
from reports.page.charts import timeline
from reports.page.cost_charts import HUES, colour_number, labels, owners
from reports.page.drawing import Span
from reports.page.drawn_groups import LANES_DRAWN, DrawnGroup, Period
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


def bars_of(figure):
    """Return the bars of the one block, as (row, from, to, kind, text)."""
    (block,) = figure["blocks"]
    return [
        (row["name"], bar["from"], bar["to"], bar["kind"], bar.get("text", ""))
        for row in block["rows"]
        for bar in row["bars"]
    ]


def test_bars_lie_in_the_rows_of_their_partitions_with_their_owners_number_and_colour(owned):
    figure = owners(owned, SPAN)
    assert bars_of(figure) == [
        ("faults", 20.0, 23.0, "fault", "restart"),
        ("orders-0", 5.0, 20.0, "owner hue-0", "0"),
        ("orders-1", 5.0, 20.0, "owner hue-0", "0"),
        ("orders-1", 21.0, None, "owner hue-1", "1"),
        ("orders-2", 5.0, 5.5, "owner hue-1", "1"),
        ("orders-10", 5.0, 20.0, "owner hue-1", "1"),
        ("orders-10", 18.0, 30.0, "owner hue-1 second", "1"),
        ("orders-10", 18.0, 20.0, "shared", ""),
    ]
    last = figure["blocks"][0]["rows"][-1]["bars"][-1]
    assert last["hover"] == ["two owners, as clients saw it", "m-1 and m-1.duplicate"]
    still = figure["blocks"][0]["rows"][2]["bars"][1]
    assert still["hover"] == ["of m-1", "still owned at the end of the history"]


def test_rebalances_lie_over_the_rows_on_the_timelines_axis(owned):
    figure = owners(owned, SPAN)
    assert figure["blocks"][0]["bands"] == [{"from": 20.0, "to": 21.0, "kind": "rebalance"}]
    assert figure["axis"] == timeline([], SPAN)["axis"]
    assert (figure["end"], len(figure["phases"])) == (60.0, 2)


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
    assert len({*numbers[:16]}) == HUES
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
    first, second = figure["blocks"]
    drawn = [
        (row["name"], [(bar["from"], bar["to"], bar["kind"]) for bar in row["bars"]], row["text"])
        for row in first["rows"]
    ]
    assert drawn == [
        ("a", [(0.0, 0.5, "stop dynamic"), (0.5, 2.0, "stop dynamic")], "2.00 s"),
        ("b", [(0.0, 0.25, "stop static")], "0.25 s"),
        ("c", [], "0"),
    ]
    assert (figure["end"], second["rows"]) == (2.0, [])


def test_too_many_stops_are_one_bar_a_member():
    found = [
        stop("g", f"m-{number % 2}", "dynamic", ZERO, 100.0)
        for number in range(cost_charts.BARS + 2)
    ]
    (block,) = cost_charts.stops([stopped(["m-0", "m-1"], found)])["blocks"]
    assert [len(row["bars"]) for row in block["rows"]] == [1, 1]
    assert block["rows"][0]["bars"][0]["hover"] == ["2001 stops: 200.100 s"]


def test_those_stopped_longest_are_drawn_first():
    members = [f"m-{number}" for number in range(LANES_DRAWN + 10)]
    found = [stop("g", name, "dynamic", ZERO, float(place)) for place, name in enumerate(members)]
    (block,) = cost_charts.stops([stopped(members, found)])["blocks"]
    assert [row["name"] for row in block["rows"]] == members[10:]
    assert f"{LANES_DRAWN} of them drawn" in block["title"]
