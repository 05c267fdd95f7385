"""The page of an incident: one self-contained HTML file, in the style of a run's report.

The same input gives the same bytes. All text goes through the template's escaping, and the figure's
data through a JSON form that cannot end a script.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from reports.incident.timing import SHORTEST_DRAWN_MS
from reports.page import drawing, wording
from reports.page.drawing import Span, bar, bars, escape
from reports.page.environment import environment_of, page_of

Json = dict[str, Any]
GROUPS_SHOWN = 40
"""How many groups the page shows, those with most rebalances first; `incident.json` has all."""
ROWS_SHOWN = 25
"""How many rows each table shows, the worst first."""
ROW_PX = 26
COLOURS: Mapping[str, str] = {
    "new_member": "#77aadd", "leave": "#eedd88", "session_expired": "#ee8866",
    "member_metadata": "#bbcc33", "leader_rejoin": "#44bb99", "static_replaced": "#aaaa00",
    "protocol_change": "#99ddff", "pending_sync": "#ffaabb",
}  # fmt: skip
"""Of rebalances by reason (Paul Tol, light)."""
OTHER_COLOUR = "#9aa5b4"
NARROWEST = 1 / 400
"""The least part of the time that a bar takes, so that a short rebalance shows."""


def render(incident: Json, rebalances: Sequence[Json]) -> str:
    """Write the page; `rebalances` are rows of the table, in the order of their times."""
    zero_ms = incident["first_ms"] or 0.0
    span = Span(zero_ms, max(incident["last_ms"] or 0.0, zero_ms + SHORTEST_DRAWN_MS))
    shown = list(incident["groups"])[:GROUPS_SHOWN]
    environment = environment_of("reports.incident", "reports.page")
    environment.filters["moment"] = moment
    return page_of(
        environment,
        "incident.html.j2",
        incident=incident,
        groups={name: incident["groups"][name] for name in shown},
        rows_shown=ROWS_SHOWN,
        figures={"timeline": _timeline(shown, rebalances, span)} if shown else {},
        plotly=Markup(get_plotlyjs()),  # noqa: S704 (the library's own text)
        colours={
            name: COLOURS.get(name, OTHER_COLOUR) for name in incident["rebalances_by_reason"]
        },
        reason=reason,
        given_reason=given_reason,
        wording=wording,
    )


def moment(at_ms: float | None) -> str:
    """Write date and time of day, UTC."""
    return "-" if at_ms is None else f"{wording.day(at_ms)} {wording.utc(at_ms)}"


def reason(name: str) -> str:
    """Return the words of a reason; one of no class is in the broker's own words."""
    return wording.REASONS.get(name, name)


def given_reason(one: Json) -> str:
    """Return the reason that a client gave (KIP-800); a broker prints that it gave none."""
    given: str = one["client_reason"]
    return "" if given == "not provided" else given


def _timeline(groups: Sequence[str], rebalances: Sequence[Json], span: Span) -> Json:
    """Draw a row for each group, with a bar for each rebalance."""
    rows = {name: place for place, name in enumerate(groups)}
    narrowest_ms = span.lasts_ms * NARROWEST
    drawn = []
    for one in rebalances:
        if one["group"] not in rows:
            continue
        end_ms = max(one["ended_ms"] or one["at_ms"], one["at_ms"] + narrowest_ms)
        drawn.append({
            **bar(span, one["at_ms"], end_ms),
            "row": rows[one["group"]],
            "colour": COLOURS.get(one["reason"], OTHER_COLOUR),
            "hover": _hover(one, span),
        })  # fmt: skip
    inner = ROW_PX * len(rows) + ROW_PX
    names = {float(place): drawing.shortened(name) for name, place in rows.items()}
    axis = drawing.row_axis(names, (-0.6, len(rows) - 0.4), [0.0, 1.0])
    edge = {"line": {"width": 0.5, "color": drawing.INK}}
    layout = drawing.time_layout(span, inner, lowest="y1")
    layout["xaxis"]["title"] = {"text": "seconds since the first line", "standoff": 6}
    traces = [bars("y1", drawn, width=0.7, marker=edge)]
    return drawing.unchecked(traces, {**layout, "yaxis1": axis}, [], [])


def _hover(one: Json, span: Span) -> str:
    took = wording.seconds(one["took_ms"], 3)
    given = given_reason(one)
    client_reason = f"<br>client: {escape(given)}" if given else ""
    return (
        f"<b>{escape(one['group'])}</b>: {escape(reason(one['reason']))}<br>"
        f"{escape(one['clients'])}{client_reason}<br>{span.when(one['at_ms'])}, {took} s, "
        f"{escape(one['ending'])}"
    )
