"""The timeline: one plotly figure with a block for each group and one time axis.

From the top, a block has its findings (if any), the observed and the expected generations, and a
lane for every member. Vertical bands are rebalances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reports.page import drawing
from reports.page.drawing import REBALANCING, TITLE_PX, Json, Span, bar, bars, escape, shortened
from reports.page.drawn_groups import Membership, Period
from reports.page.faults import Fault, declared
from reports.page.wording import REASONS, counted, seconds

GENERATION_COLOURS = ("#77aadd", "#eedd88", "#44bb99", "#ffaabb", "#bbcc33")
"""Neighbours differ in hue and brightness for every kind of colour vision (Paul Tol, light)."""

WHOLE_GROUP = "the group"
"""The lane of faults that have no single member as their target."""
ROW_PX = 20
HEAD_ROWS = 1.3
"""The height of a row above the lanes, in lanes, so that numbers fit into it."""

FINDING_EDGE = {"width": 1.5, "color": drawing.FINDING}


@dataclass(frozen=True)
class Block:
    """Everything drawn of one group; faults and findings have the form of the verdict."""

    group: str
    title: str
    lanes: Sequence[str]
    memberships: Sequence[Membership]
    observed: Sequence[Period]
    expected: Sequence[Period]
    faults: Sequence[Fault]
    findings: Sequence[Mapping[str, Any]]
    clients: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[float, str] = field(default_factory=dict)
    """Further text about observed rebalances, by the time they began."""

    @cached_property
    def head_at(self) -> Mapping[str, float]:
        """The positions of the rows above the lanes, in lanes from the middle of the first row."""
        names = [*(["findings"] if self.findings else []), "observed", "expected"]
        return {name: number * HEAD_ROWS for number, name in enumerate(names)}

    @cached_property
    def lane_at(self) -> Mapping[str, float]:
        """The positions of the lanes."""
        return {name: self.first_lane + number for number, name in enumerate(self.lanes)}

    @property
    def first_lane(self) -> float:
        """The middle of the first lane, or where it would be."""
        return len(self.head_at) * HEAD_ROWS + 0.1

    @property
    def bottom(self) -> float:
        """The end of the lanes."""
        return self.first_lane + len(self.lanes) - 0.5


def lane(fault: Fault) -> str:
    """Return the name of the lane that a fault is drawn in; some name no member."""
    whole = declared(fault).hits in ("group", "topic")
    return WHOLE_GROUP if whole else str(fault["target"])


def timeline(blocks: Sequence[Block], span: Span) -> Json:
    """Draw the figure; returns plotly's JSON form of it."""
    heights = [TITLE_PX + ROW_PX * (block.bottom + 0.7) for block in blocks]
    shapes, notes = drawing.phases(span)
    faults = {
        (fault["name"], fault["target"], fault["injected_at_ms"]): fault
        for block in blocks
        for fault in block.faults
    }
    shapes += drawing.broker_bands(faults.values(), span)
    traces: list[Json] = []
    layout = drawing.time_layout(span, sum(heights) or 1.0, lowest=f"y{max(1, len(blocks))}")
    for number, (block, domain) in enumerate(zip(blocks, drawing.stacked(heights), strict=True), 1):
        axis = f"y{number}"
        named = {at: f"<b>{name}</b>" for name, at in block.head_at.items()}
        named |= {at: shortened(name) for name, at in block.lane_at.items()}
        layout[f"yaxis{number}"] = drawing.row_axis(named, (-0.6, block.bottom + 0.1), domain)
        traces += _traces(block, span, axis)
        shapes += drawing.bands(block.observed, span, axis, block.first_lane - 0.5, block.bottom)
        shapes += [
            drawing.shape("line", (at, at), (0, block.bottom), axis, "above", line=FINDING_EDGE)
            for at in (span.at(found["at_ms"]) for found in block.findings if found["root"])
        ]
        notes.append(drawing.title(block.group, block.title, domain[1]))
    return drawing.figure(traces, layout, shapes, notes)


def _traces(block: Block, span: Span, axis: str) -> list[Json]:
    lane_of = lambda fault: block.lane_at[lane(fault)]
    return [
        _members(block, span, axis),
        _strip(block, "observed", block.observed, span, axis),
        _strip(block, "expected", block.expected, span, axis),
        drawing.fault_bars(block.faults, lane_of, span, axis, width=0.9),
        *(_findings(block, root, span, axis) for root in (False, True) if block.findings),
    ]


def _colour(generation: int | None) -> str:
    return GENERATION_COLOURS[((generation or 1) - 1) % len(GENERATION_COLOURS)]


def _members(block: Block, span: Span, axis: str) -> Json:
    drawn = [
        {
            **bar(span, membership.start_ms, membership.end_ms),
            "row": block.lane_at[membership.client],
            "colour": _colour(membership.generation),
            "hover": f"<b>{escape(membership.client)}</b> in generation {membership.generation}<br>"
            f"from {span.when(membership.start_ms)}<br>to {span.when(membership.end_ms)}<br>"
            f"member id {escape(membership.member_id)}",
        }
        for membership in block.memberships
    ]
    return bars(axis, drawn, width=0.68)


def _strip(block: Block, side: str, periods: Sequence[Period], span: Span, axis: str) -> Json:
    """Draw a group's generations, with the number in each that is wide enough."""
    drawn = [
        {
            **bar(span, period.start_ms, period.end_ms),
            "row": block.head_at[side],
            "colour": REBALANCING if period.rebalancing else _colour(period.generation),
            "text": "" if period.rebalancing else f"{period.generation}",
            "hover": _hover(block, side, period, span),
        }
        for period in periods
    ]
    edge = {"line": {"width": 0.5, "color": REBALANCING}}
    return bars(axis, drawn, width=1.05, marker=edge)


def _hover(block: Block, side: str, period: Period, span: Span) -> str:
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
    remark = block.remarks.get(row["observed_started_ms"], "") if side == "observed" else ""
    to = "none" if period.generation is None else period.generation
    return (
        f"<b>rebalance</b> ({side}) from generation {row[f'{side}_old_generation']} to {to}<br>"
        f"{escape(reason)}: {escape(REASONS.get(reason, 'as the broker put it'))}{cause}<br>"
        f"{escape(remark)}{'<br>' if remark else ''}"
        f"from {span.when(period.start_ms)}<br>took {lasted} s, {row['outcome']}"
    )


def _findings(block: Block, root: bool, span: Span, axis: str) -> Json:
    """Mark findings: roots with their number, their consequences as small rings."""
    found = [finding for finding in block.findings if finding["root"] is root]
    return {
        "type": "scatter", "mode": "markers+text" if root else "markers",
        "xaxis": "x", "yaxis": axis,
        "x": [span.at(finding["at_ms"]) for finding in found], "y": [0] * len(found),
        "customdata": [f"finding-{finding['number']}" for finding in found],
        "text": [str(finding["number"]) if root else "" for finding in found],
        "textfont": {"color": "#ffffff", "size": 11}, "cliponaxis": False, "hoverinfo": "text",
        "hovertext": [
            f"<b>finding {finding['number']}</b>: {escape(finding['kind'].replace('_', ' '))}"
            f"<br>{span.when(finding['at_ms'])}<br>click to read it"
            for finding in found
        ],
        "marker": {
            "size": 17 if root else 8, "color": drawing.FINDING if root else "#ffffff",
            "line": FINDING_EDGE,
        },
    }  # fmt: skip
