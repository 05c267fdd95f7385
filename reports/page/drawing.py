"""What the figures share: colours, time axis, phases, bars, bands, faults."""

import html
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import sub
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from kafka_protocol.printable import printable
from reports.page.faults import Fault, declared, hits_broker
from reports.page.wording import offset, utc

if TYPE_CHECKING:
    from reports.page.drawn_groups import Period

Json = dict[str, Any]
Ends = tuple[float, float]
"""Where something begins, and where it ends."""

REBALANCING = "#3d4554"
BAND = "rgba(61, 69, 84, 0.30)"
BROKER_BAND, BROKER_EDGE = "rgba(200, 120, 0, 0.13)", "#b5790a"
TWICE = "#1c2430"
FINDING, UNVERIFIED = "#b3261e", "#f3b9b4"
INK, MUTED, LINE = "#1c2430", "#5b6675", "#d9dee5"
PHASE_TINTS = ("#ffffff", "#f4f6f9")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
TOP_PX, BOTTOM_PX, TITLE_PX = 26, 44, 40
NARROW = 0.08
"""A phase that is a smaller part of the time is too narrow: its name stands to its left."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is drawn, in epoch milliseconds, with the phases that began in it."""

    zero_ms: float
    end_ms: float
    phases: Sequence[tuple[str, float]] = ()
    is_virtual: bool = False
    """Whether no time of day belongs to it."""

    @property
    def lasts_ms(self) -> float:
        """The length of the time that is drawn."""
        return self.end_ms - self.zero_ms

    def at(self, at_ms: float) -> float:
        """Return the position of a time on the axis: seconds since the start."""
        return round((at_ms - self.zero_ms) / 1000, 3)

    def when(self, at_ms: float) -> str:
        """Write a time for a hover text."""
        of_day = "" if self.is_virtual else f" · {utc(at_ms)}"
        return f"{offset(at_ms, self.zero_ms)} s{of_day}"


def shape(
    kind: str, x: Ends, y: Ends = (0, 1), rows: str = "paper", layer: str = "below", **style: Any
) -> Json:
    """Return a shape over some time; `y` are rows of an axis, or parts of the whole figure."""
    where = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    return {"type": kind, "xref": "x", "yref": rows, "layer": layer, **where, **style}


def phases(span: Span) -> tuple[list[Json], list[Json]]:
    """Draw the phases: shapes behind everything, and their names."""
    begun = [*span.phases, ("", span.end_ms)]
    edge = {"width": 1, "color": "#9aa5b4", "dash": "dot"}
    zones, names = [], []
    for number, ((name, at_ms), (_, next_ms)) in enumerate(pairwise(begun)):
        start, tint = span.at(at_ms), PHASE_TINTS[number % 2]
        zones += [
            shape("rect", (start, span.at(next_ms)), fillcolor=tint, line={"width": 0}),
            shape("line", (start, start), line=edge),
        ]
        narrow = number < len(span.phases) - 1 and next_ms - at_ms < NARROW * span.lasts_ms
        names.append({
            "text": name, "showarrow": False, "xref": "x", "yref": "paper", "x": start, "y": 1,
            "xanchor": "right" if narrow else "left", "yanchor": "bottom",
            "xshift": -2 if narrow else 2,
            "font": {"size": 12, "color": MUTED},
        })  # fmt: skip
    return zones, names


def stacked(heights: Sequence[float]) -> list[list[float]]:
    """Return the domains of blocks that lie below each other, each under a title.

    `heights` are those of blocks with their titles, in pixels.
    """
    inner = float(sum(heights))
    edges = pairwise(accumulate(heights, sub, initial=inner))
    return [[max(0.0, below) / inner, (top - TITLE_PX) / inner] for top, below in edges]


def layout(inner: float, lowest: str) -> Json:
    """Return a layout for rows of `inner` pixels in all; `lowest` is the last axis of rows."""
    return {
        "template": "none", "barmode": "overlay", "bargap": 0, "dragmode": "zoom",
        "height": TOP_PX + inner + BOTTOM_PX, "showlegend": False, "hovermode": "closest",
        "margin": {"l": 150, "r": 62, "t": TOP_PX, "b": BOTTOM_PX},
        "font": {"family": FONT, "size": 12, "color": INK},
        "hoverlabel": {
            "align": "left", "bgcolor": "#ffffff", "font": {"family": FONT, "size": 12},
        },
        "paper_bgcolor": "#ffffff", "plot_bgcolor": "rgba(0,0,0,0)",
        "uniformtext": {"mode": "hide", "minsize": 8},
        "xaxis": {
            "anchor": lowest, "ticksuffix": " s", "gridcolor": "#e8ebf0", "zeroline": False,
            "ticks": "outside", "tickcolor": LINE,
        },
    }  # fmt: skip


def time_layout(span: Span, inner: float, lowest: str) -> Json:
    """Return a layout over the time of the run; all such figures have the same time axis."""
    whole = layout(inner, lowest)
    whole["xaxis"] |= {
        "range": [0, span.at(span.end_ms)],
        "title": {"text": "seconds since formation began", "standoff": 6},
    }
    return whole


def row_axis(names: Mapping[float, str], rows: Ends, domain: list[float]) -> Json:
    """Return an axis of rows by position; `rows` is where the first begins and the last ends."""
    return {
        "domain": domain, "range": [rows[1], rows[0]], "fixedrange": True,
        "tickvals": list(names), "ticktext": list(names.values()),
        "tickfont": {"size": 11}, "showgrid": False, "zeroline": False, "ticks": "",
    }  # fmt: skip


def title(group: str, rest: str, top: float) -> Json:
    """Write a group's name over its rows."""
    return {
        "text": f"<b>{escape(group)}</b>  {escape(rest)}", "showarrow": False,
        "font": {"size": 14, "color": INK}, "xref": "paper", "yref": "paper",
        "x": 0, "y": top, "xanchor": "left", "yanchor": "bottom", "yshift": 3,
    }  # fmt: skip


def figure(
    traces: Sequence[Json], whole: Json, shapes: Sequence[Json] = (), notes: Sequence[Json] = ()
) -> Json:
    """Compose a figure; plotly checks it and returns its JSON form."""
    import plotly.graph_objects as go  # noqa: PLC0415 (it loads slowly)

    # assigned at once: plotly checks all shapes again whenever one is added
    drawn: Json = go.Figure(**unchecked(traces, whole, shapes, notes)).to_plotly_json()
    return drawn


def unchecked(
    traces: Sequence[Json], whole: Json, shapes: Sequence[Json] = (), notes: Sequence[Json] = ()
) -> Json:
    """Compose a figure, in its JSON form, without the second that a check takes."""
    layout = {**whole, "shapes": list(shapes), "annotations": list(notes)}
    return {"data": list(traces), "layout": layout}


def escape(text: str) -> str:
    """Write a text so that a figure shows it as it is; figures know no entities of quotes."""
    return html.escape(printable(text), quote=False)


def short_names(names: Iterable[str], most: int = 22) -> dict[str, str]:
    """Return names as they fit beside rows, by name; no two are the same.

    A name of more than `most` characters keeps its begin, its end, and where it parts from others.
    It is longer where that takes more, and whole where another name has its label.
    """
    distinct = [*dict.fromkeys(names)]
    short = {name: _shortened(name, distinct, most) for name in distinct}
    uses = Counter(label for name in distinct for label in {name, short[name]})
    return {name: escape(label if uses[label] == 1 else name) for name, label in short.items()}


def _shortened(name: str, others: Iterable[str], most: int) -> str:
    if len(name) <= most:
        return name
    parts = {len(commonprefix([name, other])) for other in others}  # noqa: RUF071 (no paths)
    for width in range(most // 2, 0, -1):
        starts = sorted([0, *(max(0, part - width // 3) for part in parts), len(name) - width])
        label = "".join(
            "…" * (start > before + width) + name[max(start, before + width) : start + width]
            for before, start in pairwise([-width, *starts])
        )
        if len(label) <= most:
            break
    return label


def part_drawn(drawn: Sequence[str], names: Sequence[str]) -> str:
    """Say how many of the names are drawn, if not all are."""
    return f", {len(drawn)} of them drawn" if len(drawn) < len(names) else ""


def bars(axis: str, drawn: Sequence[Json], **style: Any) -> Json:
    """Return a trace of horizontal bars; each has base, length, row, colour, text and hover."""
    colours = {"color": [one["colour"] for one in drawn]}
    return {
        "type": "bar", "orientation": "h", "xaxis": "x", "yaxis": axis, "hoverinfo": "text",
        "base": [one["base"] for one in drawn], "x": [one["length"] for one in drawn],
        "y": [one["row"] for one in drawn], "text": [one.get("text", "") for one in drawn],
        "hovertext": [one["hover"] for one in drawn], "textposition": "inside", "textangle": 0,
        "insidetextanchor": "middle", "insidetextfont": {"size": 11, "color": INK},
        "cliponaxis": True, **style, "marker": colours | style.get("marker", {}),
    }  # fmt: skip


def texts(
    axis: str, x: Sequence[float], y: Sequence[float], shown: Sequence[str], **style: Any
) -> Json:
    """Return a trace of texts at positions."""
    return {
        "type": "scatter", "mode": "text", "xaxis": "x", "yaxis": axis, "hoverinfo": "skip",
        "x": [*x], "y": [*y], "text": [*shown], **style,
    }  # fmt: skip


def bar(span: Span, start_ms: float, end_ms: float) -> Json:
    """Return base and length of a bar from start to end."""
    return {"base": span.at(start_ms), "length": round((end_ms - start_ms) / 1000, 3)}


def bands(
    periods: "Iterable[Period]", span: Span, axis: str, top: float, bottom: float
) -> list[Json]:
    """Draw rebalances as bands over the rows between `top` and `bottom`."""
    look = {"fillcolor": BAND, "line": {"width": 0.5, "color": REBALANCING}}
    times = ((span.at(one.start_ms), span.at(one.end_ms)) for one in periods if one.rebalancing)
    return [shape("rect", x, (top, bottom), axis, "above", **look) for x in times]


def broker_bands(faults: Iterable[Fault], span: Span) -> list[Json]:
    """Draw faults of brokers as bands over all rows: they may affect every group."""
    edge = {"width": 1, "color": BROKER_EDGE, "dash": "dash"}
    times = (time for fault in faults if hits_broker(fault) for time in _lasted(fault, span))
    return [
        shape("rect", (span.at(start), span.at(end)), fillcolor=BROKER_BAND, line=edge)
        for start, end in times
    ]


def fault_bars(
    faults: Iterable[Fault], row: Callable[[Fault], float], span: Span, axis: str, width: float
) -> Json:
    """Draw faults from injected to healed, each in the row that `row` gives."""
    drawn = [
        {
            **bar(span, start_ms, end_ms),
            "row": row(fault),
            "colour": "#ffffff" if fault["verified"] else UNVERIFIED,
            "text": escape(fault["name"].rpartition(".")[2]) + ("" if fault["verified"] else " ?"),
            "hover": _hover(fault, span),
        }
        for fault in faults
        for start_ms, end_ms in _lasted(fault, span)
    ]
    look = {
        "color": "#ffffff",  # plotly.js draws no colours of a pattern where bars have their own
        "pattern": {
            "shape": "/", "size": 5, "solidity": 0.22, "fgcolor": "#b9c1cc",
            "bgcolor": [one["colour"] for one in drawn],
        },
        "line": {"width": 1, "color": INK},
    }  # fmt: skip
    return bars(axis, drawn, width=width, marker=look, opacity=0.92)


def _lasted(fault: Fault, span: Span) -> list[Ends]:
    """List start and end of a fault if it was injected; a single request is an instant."""
    start_ms = fault["injected_at_ms"]
    if start_ms is None:
        return []
    if declared(fault).one_shot:
        return [(start_ms, start_ms + span.lasts_ms / 100)]
    return [(start_ms, fault["healed_at_ms"] or span.end_ms)]


def _hover(fault: Fault, span: Span) -> str:
    about = declared(fault)
    does = f": {about.meaning}" if about.meaning else ""
    if about.one_shot:
        healed = "nothing to heal"
    elif fault["healed_at_ms"]:
        healed = f"healed {span.when(fault['healed_at_ms'])}"
    else:
        healed = "<b>not healed</b>"
    witness = escape(fault["witness"]) if fault["verified"] else "<b>not verified</b>"
    return (
        f"<b>{escape(fault['name'])}</b> on {escape(fault['target'])}{does}<br>"
        f"injected {span.when(fault['injected_at_ms'])}<br>{healed}<br>{witness}"
    )
