"""The page of an incident: one self-contained HTML file, in the style of a run's report.

The same input gives the same bytes. All text goes through the template's escaping, and the figure's
data through a JSON form that cannot end a script.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import cycle
from typing import Any, NamedTuple

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
ROW_PX = 42
COLOURS: Mapping[str, str] = {
    "new_member": "#77aadd", "leave": "#eedd88", "session_expired": "#ee8866",
    "member_metadata": "#bbcc33", "leader_rejoin": "#44bb99", "static_replaced": "#aaaa00",
    "protocol_change": "#99ddff", "pending_sync": "#ffaabb",
    BEFORE: "#bcaed6", IN_GAP: "#bcaed6",
}  # fmt: skip
"""Of rebalances by reason (Paul Tol, light)."""
UNBEGUN = (BEFORE, IN_GAP)
OTHER_COLOUR, MISSING_COLOUR = "#9aa5b4", "#d9dee5"
BROKER_COLOURS = ("#dfe4ec", "#c6d0de", "#d3e3dc", "#e8dfc8", "#d8d6ec")
"""Of coordinators; their ids stand in them."""
BARS, STRIP = {"offset": -0.47, "width": 0.5}, {"offset": 0.06, "width": 0.38}
"""Where bars stand in the row of a group: its rebalances, and below them its coordinators."""
NARROWEST = 1 / 400
"""The least part of the time that a bar takes, so that a short rebalance shows."""


class Cause(NamedTuple):
    """A colour, what it means, and how many rebalances have it."""

    colour: str
    words: str
    rebalances: int


def render(incident: Json, rebalances: Sequence[Json]) -> str:
    """Write the page; `rebalances` are rows of the table, in the order of their times."""
    groups = incident["groups"].values()  # a clock may go back: the last line may not be the latest
    first_ms = min([incident["first_ms"] or 0.0, *(group["first_ms"] for group in groups)])
    last_ms = max([incident["last_ms"] or 0.0, *(group["last_ms"] for group in groups)])
    time = (first_ms, max(last_ms, first_ms + SHORTEST_DRAWN_MS))
    shown = {name: incident["groups"][name] for name in [*incident["groups"]][:GROUPS_SHOWN]}
    environment = environment_of("reports.incident", "reports.page")
    environment.filters["moment"] = moment
    return page_of(
        environment,
        "incident.html.j2",
        incident=incident,
        groups=shown,
        missing_colour=MISSING_COLOUR,
        some_missing=any(group["missing"] for group in shown.values()),
        rows_shown=ROWS_SHOWN,
        drawn=len(rebalances),
        chains=chains(incident["groups"], rebalances),
        figures={"timeline": _timeline(shown, rebalances, time)} if shown else {},
        plotly=Markup(get_plotlyjs()),  # noqa: S704 (the library's own text)
        causes=causes,
        reason=reason,
        given_reason=given_reason,
        trade_offs=trade_offs(incident["groups"].values()),
        trade_offs_of=trade_offs_of,
        what_to_do=what_to_do,
        unbegun=UNBEGUN,
        wording=wording,
    )


def chains(groups: Mapping[str, Json], rebalances: Sequence[Json]) -> dict[str, list[Json]]:
    """Return the rebalances of each group, and `what` breaks the chain of its generations."""
    breaks = {
        name: [
            *({"at_ms": gap["after_ms"], "what": gap["what"]} for gap in group["missing"]),
            *({"at_ms": back["at_ms"], "what": went_back(back)} for back in group["resets"]),
        ]
        for name, group in groups.items()
    }
    for one in rebalances:
        breaks[one["group"]].append(one)
    return {name: sorted(of, key=_place) for name, of in breaks.items() if of}


def _place(one: Json) -> tuple[float, bool]:
    return one["at_ms"], "what" in one


def went_back(reset: Json) -> str:
    """Say that the generation of a group went back."""
    return f"the generation went back from {reset['from_generation']} to {reset['to_generation']}"


class TradeOff(NamedTuple):
    """What static members would have spared, and cost, with a session timeout of `session_ms`.

    The partitions of `members` would have lain idle for `idle_ms` in all.
    """

    session_ms: float
    spared: int
    members: int
    idle_ms: float


def trade_offs(groups: Iterable[Json]) -> list[TradeOff]:
    """Return the sums over groups, for each session timeout that all of them have."""
    of_groups = [trade_offs_of(group) for group in groups]
    shared = set[float].intersection(*({*of} for of in of_groups)) if of_groups else set[float]()
    sums = {each: [*zip(*(of[each] for of in of_groups), strict=True)] for each in sorted(shared)}
    return [TradeOff(each, *map(sum, columns[1:])) for each, columns in sums.items()]


def trade_offs_of(group: Json) -> dict[float, TradeOff]:
    """Return those of one group, by session timeout."""
    of = group["would_be_static"]
    pairs = zip(of["spared_by_session_ms"], of["idle_by_session_ms"], strict=True)
    return {each: TradeOff(each, count, *cost) for (each, count), (_, *cost) in pairs}


def moment(at_ms: float | None) -> str:
    """Write date and time of day, UTC."""
    return "-" if at_ms is None else f"{wording.day(at_ms)} {wording.utc(at_ms)}"


def causes(by_reason: Mapping[str, int]) -> list[Cause]:
    """Return what the colours mean; reasons without a colour of their own are one."""
    found = [Cause(COLOURS[name], reason(name), count)
             for name, count in by_reason.items() if name in COLOURS]  # fmt: skip
    others = sum(count for name, count in by_reason.items() if name not in COLOURS)
    return [*found, *([Cause(OTHER_COLOUR, "another cause", others)] if others else [])]


def reason(name: str) -> str:
    """Return the words of a reason; one of no class is in the broker's own words."""
    return wording.REASONS.get(name, name)


def given_reason(one: Json) -> str:
    """Return the reason that a client gave (KIP-800); a broker prints that it gave none."""
    given: str = one["client_reason"]
    return "" if given == "not provided" else given


def _timeline(groups: Mapping[str, Json], rebalances: Sequence[Json], time: Ends) -> Json:
    """Draw a row for each group: its rebalances and missing generations, and who coordinated it."""
    rows = {name: place for place, name in enumerate(groups)}
    narrowest_ms = (time[1] - time[0]) * NARROWEST

    def bar(
        name: str, from_ms: float, until_ms: float, colour: str, hover: str, text: str = ""
    ) -> Json:
        return {
            "base": _date(from_ms), "length": max(until_ms - from_ms, narrowest_ms),
            "row": rows[name],
            "colour": colour, "hover": f"<b>{escape(name)}</b>: {hover}", "text": escape(text),
        }  # fmt: skip

    gaps = [
        bar(name, gap["after_ms"], gap["before_ms"], MISSING_COLOUR, escape(gap["what"]))
        for name, group in groups.items()
        for gap in group["missing"]
    ]
    begun = [
        bar(
            one["group"],
            one["at_ms"],
            one["ended_ms"] or one["at_ms"],
            COLOURS.get(one["reason"], OTHER_COLOUR),
            _hover(one),
        )
        for one in rebalances
        if one["group"] in rows
    ]
    coordinators = {of["broker"]: "" for group in groups.values() for of in group["coordinators"]}
    colours = dict(zip(sorted(coordinators), cycle(BROKER_COLOURS), strict=False))
    strips = [
        bar(
            name,
            of["from_ms"],
            of["until_ms"],
            colours[of["broker"]],
            f"broker {escape(of['broker'])} coordinated<br>{moment(of['from_ms'])}<br>"
            f"to {moment(of['until_ms'])}",
            of["broker"],
        )
        for name, group in groups.items()
        for of in group["coordinators"]
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
        bars("y1", begun, **BARS, marker=edge),
        bars("y1", strips, **STRIP),
    ]
    whole = {**layout, "yaxis1": axis, "meta": [*map(printable, rows)]}
    return drawing.unchecked(traces, whole, [], [])


def _date(at_ms: float) -> str:
    """Write a time as an axis of dates takes it in any time zone of a browser."""
    at = datetime.fromtimestamp(round(at_ms) / 1000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}"


def _hover(one: Json) -> str:
    took = "" if one["took_ms"] is None else f"{wording.seconds(one['took_ms'], 3)} s, "
    given = given_reason(one)
    client_reason = f"<br>client: {escape(given)}" if given else ""
    return (
        f"{escape(reason(one['reason']))}<br>{escape(one['clients'])}{client_reason}<br>"
        f"{moment(one['at_ms'])}<br>{took}{escape(one['ending'])}"
    )
