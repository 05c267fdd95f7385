"""The timeline: one plotly figure, a block for each group, one time axis for all.

From the top, a block holds its findings (if it has any), the generations that were observed and
those that were expected, and a lane for every member. Vertical bands are rebalances.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from reports.scenes import Period, Stretch
from reports.wording import REASONS, counted, offset, seconds, utc

Json = dict[str, Any]

GENERATION_COLOURS = ("#77aadd", "#eedd88", "#44bb99", "#ffaabb", "#bbcc33")
"""Neighbours differ in hue and in brightness for every kind of colour vision (Paul Tol, light)."""
REBALANCING = "#3d4554"
BAND = "rgba(61, 69, 84, 0.30)"
FINDING, UNVERIFIED = "#b3261e", "#f3b9b4"
INK, MUTED, LINE = "#1c2430", "#5b6675", "#d9dee5"
PHASE_TINTS = ("#ffffff", "#f4f6f9")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"

ROW_PX, TITLE_PX, TOP_PX, BOTTOM_PX = 20, 40, 26, 44
HEAD_ROWS = 1.3
"""How many lanes high a row above the lanes is, so that numbers fit into it."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is drawn, in epoch milliseconds, with the phases that began in it."""

    zero_ms: float
    end_ms: float
    phases: Sequence[tuple[str, float]] = ()

    def at(self, at_ms: float) -> float:
        """Give a time its place on the axis: seconds since the start."""
        return round((at_ms - self.zero_ms) / 1000, 3)

    def when(self, at_ms: float) -> str:
        """Write a time for a hover text."""
        return f"{offset(at_ms, self.zero_ms)} s · {utc(at_ms)}"


@dataclass(frozen=True, slots=True)
class Block:
    """Everything drawn of one group; faults and findings as they stand in the verdict."""

    group: str
    title: str
    lanes: Sequence[str]
    stretches: Sequence[Stretch]
    observed: Sequence[Period]
    expected: Sequence[Period]
    faults: Sequence[Mapping[str, Any]]
    findings: Sequence[Mapping[str, Any]]
    clients: Mapping[str, str] = field(default_factory=dict)

    @property
    def heads(self) -> tuple[str, ...]:
        """The rows above the lanes."""
        strips = ("observed", "expected")
        return ("findings", *strips) if self.findings else strips

    @property
    def first_lane(self) -> float:
        """Where the first lane's middle lies, counted in lanes from the first row's."""
        return len(self.heads) * HEAD_ROWS + 0.1

    @property
    def bottom(self) -> float:
        """Where the lanes end."""
        return self.first_lane + len(self.lanes) - 0.5

    def head_at(self, name: str) -> float:
        """Say where a row above the lanes lies."""
        return self.heads.index(name) * HEAD_ROWS

    def lane_at(self, name: str) -> float:
        """Say where a lane lies."""
        return self.first_lane + self.lanes.index(name)


def timeline(blocks: Sequence[Block], span: Span) -> Json:
    """Draw the figure; returns plotly's JSON form of it."""
    heights = [TITLE_PX + ROW_PX * (block.bottom + 0.7) for block in blocks]
    inner = sum(heights) or 1.0
    traces, axes = [], {}
    shapes, notes = _phases(span)
    top = inner
    for number, (block, height) in enumerate(zip(blocks, heights, strict=True), 1):
        axis = f"y{number}"
        domain = [max(0.0, top - height) / inner, (top - TITLE_PX) / inner]
        axes[f"yaxis{number}"] = _lane_axis(block, domain)
        traces += _traces(block, span, axis)
        shapes += _shapes(block, span, axis)
        notes.append(_title(block, domain[1]))
        top -= height
    layout = _layout(span, inner, lowest=f"y{max(1, len(blocks))}")
    # Assigned once: plotly checks all shapes anew whenever one is added.
    figure = go.Figure(traces, {**layout, **axes, "shapes": shapes, "annotations": notes})
    drawn: Json = figure.to_plotly_json()
    return drawn


def _title(block: Block, top: float) -> Json:
    return {
        "text": f"<b>{escape(block.group)}</b>  {escape(block.title)}", "showarrow": False,
        "font": {"size": 14, "color": INK}, "xref": "paper", "yref": "paper",
        "x": 0, "y": top, "xanchor": "left", "yanchor": "bottom", "yshift": 3,
    }  # fmt: skip


def _phases(span: Span) -> tuple[list[Json], list[Json]]:
    """Draw the phases: shapes behind everything, and their names."""
    begun = [*span.phases, ("", span.end_ms)]
    zones, names = [], []
    for number, ((name, at_ms), (_, next_ms)) in enumerate(pairwise(begun)):
        behind = {"layer": "below", "xref": "x", "yref": "paper", "y0": 0, "y1": 1}
        start = span.at(at_ms)
        zones.append({
            "type": "rect", **behind, "x0": start, "x1": span.at(next_ms),
            "fillcolor": PHASE_TINTS[number % 2], "line": {"width": 0},
        })  # fmt: skip
        zones.append({
            "type": "line", **behind, "x0": start, "x1": start,
            "line": {"width": 1, "color": "#9aa5b4", "dash": "dot"},
        })  # fmt: skip
        names.append({
            "text": name, "showarrow": False, "xref": "x", "yref": "paper",
            "x": start, "y": 1, "xanchor": "left", "yanchor": "bottom", "xshift": 2,
            "font": {"size": 12, "color": MUTED},
        })  # fmt: skip
    return zones, names


def _layout(span: Span, inner: float, lowest: str) -> Json:
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
            "anchor": lowest,
            "range": [0, span.at(span.end_ms)], "ticksuffix": " s", "gridcolor": "#e8ebf0",
            "zeroline": False, "ticks": "outside", "tickcolor": LINE, "nticks": 16,
            "title": {"text": "seconds since formation began", "standoff": 6},
        },
    }  # fmt: skip


def _lane_axis(block: Block, domain: list[float]) -> Json:
    named = {block.head_at(name): f"<b>{name}</b>" for name in block.heads}
    named |= {block.lane_at(name): _shortened(name) for name in block.lanes}
    return {
        "domain": domain, "range": [block.bottom + 0.1, -0.6], "fixedrange": True,
        "tickvals": list(named), "ticktext": list(named.values()),
        "tickfont": {"size": 11}, "showgrid": False, "zeroline": False, "ticks": "",
    }  # fmt: skip


def _shortened(name: str, longest: int = 22) -> str:
    cut = name if len(name) <= longest else f"{name[:10]}…{name[-11:]}"
    return escape(cut, quote=False)


def _traces(block: Block, span: Span, axis: str) -> list[go.Bar | go.Scatter]:
    return [
        _members(block, span, axis),
        _strip(block, "observed", block.observed, span, axis),
        _strip(block, "expected", block.expected, span, axis),
        _faults(block, span, axis),
        *(_findings(block, span, axis) if block.findings else ()),
    ]


def _shapes(block: Block, span: Span, axis: str) -> list[Json]:
    """Draw the bands of observed rebalances and the lines of root findings."""
    placed = {"xref": "x", "yref": axis, "layer": "above"}
    bands = [
        {
            "type": "rect", **placed, "fillcolor": BAND,
            "x0": span.at(period.start_ms), "x1": span.at(period.end_ms),
            "y0": block.first_lane - 0.5, "y1": block.bottom,
            "line": {"width": 0.5, "color": REBALANCING},
        }
        for period in block.observed
        if period.rebalancing
    ]  # fmt: skip
    lines = [
        {
            "type": "line", **placed, "x0": at, "x1": at, "y0": 0, "y1": block.bottom,
            "line": {"width": 1.5, "color": FINDING},
        }
        for at in (span.at(finding["at_ms"]) for finding in block.findings if finding["root"])
    ]  # fmt: skip
    return bands + lines


def _bars(axis: str, bars: Sequence[Json], **style: Any) -> go.Bar:
    """Put horizontal bars into one trace; each gives base, length, row, colour, text, hover."""
    return go.Bar(
        orientation="h", xaxis="x", yaxis=axis, hoverinfo="text", textangle=0,
        base=[bar["base"] for bar in bars], x=[bar["length"] for bar in bars],
        y=[bar["row"] for bar in bars], text=[bar.get("text", "") for bar in bars],
        hovertext=[bar["hover"] for bar in bars], textposition="inside",
        insidetextanchor="middle", insidetextfont={"size": 11, "color": INK},
        marker={"color": [bar["colour"] for bar in bars], **style.pop("marker", {})},
        cliponaxis=True, **style,
    )  # fmt: skip


def _bar(span: Span, start_ms: float, end_ms: float) -> Json:
    return {"base": span.at(start_ms), "length": round((end_ms - start_ms) / 1000, 3)}


def _colour(generation: int | None) -> str:
    return GENERATION_COLOURS[((generation or 1) - 1) % len(GENERATION_COLOURS)]


def _members(block: Block, span: Span, axis: str) -> go.Bar:
    bars = [
        {
            **_bar(span, stretch.start_ms, stretch.end_ms),
            "row": block.lane_at(stretch.client),
            "colour": _colour(stretch.generation),
            "hover": f"<b>{escape(stretch.client)}</b> in generation {stretch.generation}<br>"
            f"from {span.when(stretch.start_ms)}<br>to {span.when(stretch.end_ms)}<br>"
            f"member id {escape(stretch.member_id)}",
        }
        for stretch in block.stretches
    ]
    return _bars(axis, bars, width=0.68)


def _strip(block: Block, side: str, periods: Sequence[Period], span: Span, axis: str) -> go.Bar:
    """Draw a group's generations; the number stands in each that is wide enough."""
    bars = [
        {
            **_bar(span, period.start_ms, period.end_ms),
            "row": block.head_at(side),
            "colour": REBALANCING if period.rebalancing else _colour(period.generation),
            "text": "" if period.rebalancing else f"{period.generation}",
            "hover": _told(block, side, period, span),
        }
        for period in periods
    ]
    edge = {"line": {"width": 0.5, "color": REBALANCING}}
    return _bars(axis, bars, width=1.05, marker=edge)


def _told(block: Block, side: str, period: Period, span: Span) -> str:
    row = period.row
    lasted = seconds(period.end_ms - period.start_ms, 3)
    if not period.rebalancing:
        who = counted(row[f"{side}_members"] or 0, "member")
        return (
            f"<b>generation {period.generation}</b> ({side}), {who}<br>"
            f"from {span.when(period.start_ms)}<br>stood for {lasted} s"
        )
    reason = str(row[f"{side}_reason"] or "no reason logged")
    member = str(row[f"{side}_member_id"] or "")
    cause = f" · {escape(block.clients.get(member, member))}" if member else ""
    to = "none" if period.generation is None else period.generation
    return (
        f"<b>rebalance</b> ({side}) from generation {row[f'{side}_old_generation']} to {to}<br>"
        f"{escape(reason)}: {escape(REASONS.get(reason, 'as the broker put it'))}{cause}<br>"
        f"from {span.when(period.start_ms)}<br>took {lasted} s, {row['outcome']}"
    )


def _faults(block: Block, span: Span, axis: str) -> go.Bar:
    bars = []
    for fault in block.faults:
        start_ms = fault["injected_at_ms"]
        if start_ms is None:
            continue
        end_ms = fault["healed_at_ms"] or span.end_ms
        witness = escape(fault["witness"]) if fault["verified"] else "<b>not verified</b>"
        bars.append({
            **_bar(span, start_ms, end_ms),
            "row": block.lane_at(fault["target"]),
            "colour": "#ffffff" if fault["verified"] else UNVERIFIED,
            "text": escape(fault["name"].rpartition(".")[2]) + ("" if fault["verified"] else " ?"),
            "hover": f"<b>{escape(fault['name'])}</b> on {escape(fault['target'])}<br>"
            f"injected {span.when(start_ms)}<br>"
            + (f"healed {span.when(end_ms)}" if fault["healed_at_ms"] else "<b>not healed</b>")
            + f"<br>{witness}",
        })  # fmt: skip
    look = {
        "pattern": {
            "shape": "/",
            "size": 5,
            "solidity": 0.22,
            "fgcolor": "#b9c1cc",
            "bgcolor": [bar["colour"] for bar in bars],
        },
        "line": {"width": 1, "color": INK},
    }
    return _bars(axis, bars, width=0.9, marker=look, opacity=0.92)


def _findings(block: Block, span: Span, axis: str) -> Iterator[go.Scatter]:
    """Mark findings: roots with their number, what follows from them as small rings."""
    for root in (False, True):
        found = [finding for finding in block.findings if finding["root"] is root]
        yield go.Scatter(
            xaxis="x", yaxis=axis, mode="markers+text" if root else "markers",
            x=[span.at(finding["at_ms"]) for finding in found], y=[0] * len(found),
            customdata=[f"finding-{finding['number']}" for finding in found],
            text=[str(finding["number"]) if root else "" for finding in found],
            textfont={"color": "#ffffff", "size": 11}, cliponaxis=False, hoverinfo="text",
            hovertext=[
                f"<b>finding {finding['number']}</b>: {escape(finding['kind'].replace('_', ' '))}"
                f"<br>{span.when(finding['at_ms'])}<br>click to read it"
                for finding in found
            ],
            marker={
                "size": 17 if root else 8, "color": FINDING if root else "#ffffff",
                "line": {"width": 1.5, "color": FINDING},
            },
        )  # fmt: skip
