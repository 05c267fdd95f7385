"""The page of an incident: one self-contained HTML file, in the style of a run's report.

The same input gives the same bytes. All text goes through the template's escaping, and the figure's
data through a JSON form that cannot end a script.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from heapq import nlargest
from itertools import cycle
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from kafka_protocol.printable import printable
from reports.incident.rebalances import BEFORE, IN_GAP
from reports.incident.refusals import what_to_do
from reports.incident.timing import SHORTEST_DRAWN_MS
from reports.page import drawing, wording
from reports.page.drawing import Ends, bars, escape
from reports.page.environment import environment_of, page_of

Json = dict[str, Any]
GROUPS_SHOWN = 40
"""How many groups the page shows, those with most rebalances first; `incident.json` has all."""
ROWS_SHOWN = 25
"""How many rows each table shows, the worst first."""
STRIPS_SHOWN = 25
"""How many coordinators of a group the timeline shows, those for longest."""
ROW_PX = 42
COLOURS: Mapping[str, str] = {
    "new_member": "#77aadd", "leave": "#eedd88", "session_expired": "#ee8866",
    "member_metadata": "#bbcc33", "leader_rejoin": "#44bb99", "static_replaced": "#aaaa00",
    "protocol_change": "#99ddff", "pending_sync": "#ffaabb",
    BEFORE: "#bcaed6", IN_GAP: "#bcaed6", "": "#c9c0b0",
}  # fmt: skip
"""Of rebalances by reason (Paul Tol, light)."""
UNBEGUN = (BEFORE, IN_GAP)
OTHER_COLOUR, MISSING_COLOUR = "#9aa5b4", "#d9dee5"
BROKER_COLOURS = ("#dfe4ec", "#c6d0de", "#d3e3dc", "#e8dfc8", "#d8d6ec")
"""Of coordinators; their ids stand in them."""
BARS, STRIP = {"offset": -0.47, "width": 0.5}, {"offset": 0.06, "width": 0.38}
"""Where bars stand in the row of a group: its rebalances, and below them its coordinators."""
SUMMED = ("spared", "idle_members", "idle_ms")
NARROWEST = 1 / 400
"""The least part of the time that a bar takes, so that a short rebalance shows."""


def render(incident: Json, rebalances: Sequence[Json]) -> str:
    """Write the page; `rebalances` are rows of the table, in the order of their times."""
    groups = incident["groups"].values()  # a clock may go back: the last line may not be the latest
    first_ms = min([incident["first_ms"] or 0.0, *(group["first_ms"] for group in groups)])
    last_ms = max([incident["last_ms"] or 0.0, *(group["last_ms"] for group in groups)])
    time = (first_ms, max(last_ms, first_ms + SHORTEST_DRAWN_MS))
    shown = {name: incident["groups"][name] for name in [*incident["groups"]][:GROUPS_SHOWN]}
    of_groups = chains(incident["groups"], rebalances)
    environment = environment_of("reports.incident", "reports.page")
    environment.filters |= {"moment": moment, "date": _date}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return page_of(
        environment,
        "incident.html.j2",
        incident=incident,
        groups=shown,
        missing_colour=MISSING_COLOUR,
        some_missing=any(group["missing"] for group in shown.values()),
        rows_shown=ROWS_SHOWN,
        strips_shown=STRIPS_SHOWN,
        drawn=len(rebalances),
        chains=of_groups,
        figures={"timeline": _timeline(shown, of_groups, time)} if shown else {},
        plotly=Markup(get_plotlyjs()),  # noqa: S704 (the library's own text)
        causes=causes,
        reason=reason,
        given_reason=given_reason,
        trade_offs=trade_offs(incident["groups"].values()),
        what_to_do=what_to_do,
        unbegun=UNBEGUN,
        wording=wording,
    )


def chains(groups: Mapping[str, Json], rebalances: Sequence[Json]) -> dict[str, list[Json]]:
    """Return the rebalances of each group, and `what` breaks the chain of its generations."""
    found = {
        name: [*({**gap, "at_ms": gap["after_ms"]} for gap in group["missing"]), *group["resets"]]
        for name, group in groups.items()
    }
    for one in rebalances:
        found[one["group"]].append(one)
    in_order = lambda one: (one["at_ms"], "what" in one)
    return {name: sorted(of, key=in_order) for name, of in found.items() if of}


def trade_offs(groups: Iterable[Json]) -> list[Json]:
    """Return what all groups together are spared, and what it costs, by session timeout."""
    rows = zip(*(group["would_be_static"]["by_session"] for group in groups), strict=True)
    return [{**row[0], **{name: sum(one[name] for one in row) for name in SUMMED}} for row in rows]


def moment(at_ms: float | None) -> str:
    """Write date and time of day, UTC."""
    return "-" if at_ms is None else f"{_date(at_ms)} UTC"


def causes(by_reason: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """Return colours, what they mean, and how many rebalances have them.

    Reasons without a colour of their own are one.
    """
    found = [
        (COLOURS[name], reason(name), count) for name, count in by_reason.items() if name in COLOURS
    ]
    others = sum(count for name, count in by_reason.items() if name not in COLOURS)
    return [*found, *([(OTHER_COLOUR, "another cause", others)] if others else [])]


def reason(name: str) -> str:
    """Return the words of a reason; one of no class is in the broker's own words."""
    return wording.REASONS.get(name, name)


def given_reason(one: Json) -> str:
    """Return the reason that a client gave (KIP-800); a broker prints that it gave none."""
    given: str = one["client_reason"]
    return "" if given == "not provided" else given


def _timeline(groups: Mapping[str, Json], of_groups: Mapping[str, list[Json]], time: Ends) -> Json:
    """Draw a row for each group: its rebalances and missing generations, and who coordinated it.

    What shows where the pointer rests on a rebalance, the page's script takes from the table.
    """
    rows = {name: place for place, name in enumerate(groups)}
    narrowest_ms = (time[1] - time[0]) * NARROWEST

    def bar(name: str, from_ms: float, until_ms: float, colour: str, **shown: str) -> Json:
        length = round(max(until_ms - from_ms, narrowest_ms))
        at = {"base": _date(from_ms), "length": length, "row": rows[name], "colour": colour}
        return {**at, "hover": "", **{key: escape(text) for key, text in shown.items()}}

    gaps = [
        bar(name, gap["after_ms"], gap["before_ms"], MISSING_COLOUR, hover=gap["what"])
        for name, group in groups.items()
        for gap in group["missing"]
    ]
    begun = [
        bar(name, one["at_ms"], one["ended_ms"] or 0, COLOURS.get(one["reason"], OTHER_COLOUR))
        for name in groups
        for one in of_groups.get(name, ())
        if "what" not in one
    ]
    lasted = lambda of: of["until_ms"] - of["from_ms"]
    coordinated = [
        (name, of["broker"], of["from_ms"], of["until_ms"])
        for name, group in groups.items()
        for of in nlargest(STRIPS_SHOWN, group["coordinators"], key=lasted)
    ]
    brokers = sorted({broker for _, broker, *_ in coordinated})
    colours = dict(zip(brokers, cycle(BROKER_COLOURS), strict=False))
    about = "broker {} coordinated from {} to {}".format
    strips = [
        bar(
            name,
            from_ms,
            until_ms,
            colours[broker],
            text=broker,
            hover=about(broker, moment(from_ms), moment(until_ms)),
        )
        for name, broker, from_ms, until_ms in coordinated
    ]
    inner = ROW_PX * len(rows) + ROW_PX
    names = {float(row): name for row, name in enumerate(drawing.short_names(rows).values())}
    axis = drawing.row_axis(names, (-0.6, len(rows) - 0.4), [0.0, 1.0])
    edge = {"line": {"width": 0.5, "color": drawing.MUTED}}
    layout = drawing.layout(inner, lowest="y1")
    layout["xaxis"] |= {
        "type": "date", "range": [_date(time[0] - narrowest_ms), _date(time[1] + 2 * narrowest_ms)],
        "ticksuffix": "", "automargin": True,
        "title": {"text": "date and time, UTC", "standoff": 6},
    }  # fmt: skip
    traces = [
        bars("y1", gaps, **BARS),
        bars("y1", begun, **BARS, marker=edge, text="", hovertext=""),
        bars("y1", strips, **STRIP),
    ]
    whole = {**layout, "yaxis1": axis, "meta": [*map(printable, rows)]}
    return drawing.unchecked(traces, whole, [], [])


def _date(at_ms: float) -> str:
    """Write a time as an axis of dates takes it in any time zone of a browser."""
    at = datetime.fromtimestamp(round(at_ms) / 1000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}"
