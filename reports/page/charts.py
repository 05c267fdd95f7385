"""The timeline: one plotly figure with a block for each group and one time axis.

From the top, a block has its findings (if any), the observed and the expected generations, and a
lane for every member. Vertical bands are rebalances.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from reports.page import drawing
from reports.page.drawing import REBALANCING, TITLE_PX, Json, Span, bar, bars, escape, short_names
from reports.page.drawn_groups import DrawnGroup, Period, lane
from reports.page.wording import REASONS, RECORDS, counted, seconds
from reports.timing import NOTED_MS

GENERATION_COLOURS = ("#77aadd", "#eedd88", "#44bb99", "#ffaabb", "#bbcc33")
"""Neighbours differ in hue and brightness for every kind of colour vision (Paul Tol, light)."""
ROW_PX = 20
HEAD_ROWS = 1.3
"""The height of a row above the lanes, in lanes, so that numbers fit into it."""
FINDING_EDGE = {"width": 1.5, "color": drawing.FINDING}

Rows = Mapping[str, float]
"""The middle of each row of a block, in lanes from the middle of the first row."""


def timeline(groups: Sequence[DrawnGroup], span: Span) -> Json:
    """Draw the figure; returns plotly's JSON form of it."""
    heads = [_heads(one) for one in groups]
    pairs = zip(groups, heads, strict=True)
    bottoms = [len(head) * HEAD_ROWS + len(one.lanes) - 0.4 for one, head in pairs]
    heights = [TITLE_PX + ROW_PX * (bottom + 0.7) for bottom in bottoms]
    shapes, notes = drawing.phases(span)
    faults = {
        (fault["name"], fault["target"], fault["injected_at_ms"]): fault
        for one in groups
        for fault in _in_lanes(one)
    }
    shapes += drawing.broker_bands(faults.values(), span)
    traces: list[Json] = []
    layout = drawing.time_layout(span, sum(heights) or 1.0, lowest=f"y{max(1, len(groups))}")
    blocks = zip(groups, heads, bottoms, drawing.stacked(heights), strict=True)
    for number, (one, head, bottom, domain) in enumerate(blocks, 1):
        axis, first_lane = f"y{number}", len(head) * HEAD_ROWS + 0.1
        lanes = {name: first_lane + place for place, name in enumerate(one.lanes)}
        named = {at: f"<b>{name}</b>" for name, at in head.items()}
        named |= dict(zip(lanes.values(), short_names(lanes).values(), strict=True))
        layout[f"yaxis{number}"] = drawing.row_axis(named, (-0.6, bottom + 0.1), domain)
        traces += _traces(one, head, lanes, span, axis)
        shapes += drawing.bands(one.periods, span, axis, first_lane - 0.5, bottom)
        shapes += [
            drawing.shape("line", (at, at), (0, bottom), axis, "above", line=FINDING_EDGE)
            for at in (span.at(found["at_ms"]) for found in one.findings if found["root"])
        ]
        title = one.title + drawing.part_drawn(one.lanes, one.everyone)
        notes.append(drawing.title(one.group, title, domain[1]))
    return drawing.figure(traces, layout, shapes, notes)


def _heads(one: DrawnGroup) -> Rows:
    """Place the rows above the lanes."""
    names = [*(["findings"] if one.findings else []), *one.timelines]
    return {name: number * HEAD_ROWS for number, name in enumerate(names)}


def _in_lanes(one: DrawnGroup) -> list[Mapping[str, object]]:
    return [fault for fault in one.faults if lane(fault) in one.lanes]


def _traces(one: DrawnGroup, head: Rows, lanes: Rows, span: Span, axis: str) -> list[Json]:
    of_lane = lambda fault: lanes[lane(fault)]
    return [
        _members(one, lanes, span, axis),
        *(_strip(one, side, head, span, axis) for side in one.timelines),
        drawing.fault_bars(_in_lanes(one), of_lane, span, axis, width=0.9),
        *([_records(one, lanes, span, axis)] if one.records else []),
        *(_findings(one, root, span, axis) for root in (False, True) if one.findings),
    ]


def _colour(generation: int | None) -> str:
    return GENERATION_COLOURS[((generation or 1) - 1) % len(GENERATION_COLOURS)]


def _members(one: DrawnGroup, lanes: Rows, span: Span, axis: str) -> Json:
    drawn = [
        {
            **bar(span, membership.start_ms, membership.end_ms),
            "row": lanes[membership.client],
            "colour": _colour(membership.generation),
            "hover": f"<b>{escape(membership.client)}</b> in generation {membership.generation}<br>"
            f"from {span.when(membership.start_ms)}<br>to {span.when(membership.end_ms)}<br>"
            f"member id {escape(membership.member_id)}",
        }
        for membership in one.memberships
        if membership.client in lanes
    ]
    return bars(axis, drawn, width=0.68)


def _records(one: DrawnGroup, lanes: Rows, span: Span, axis: str) -> Json:
    """Mark in each member's lane when it noted records twice, out of order, or committed past."""
    noted: dict[tuple[str, float], dict[str, bool]] = defaultdict(dict)
    for row in one.records:  # what each range says, and whether it is allowed
        said = f"{row['partition']}: {counted(row['records'], 'record')} {RECORDS[row['what']]}"
        said = escape(f"{said} ({row['first']:,} to {row['last']:,})")
        noted[row["member"], row["until_ms"]][said] = row["what"] == "twice"
    drawn = [
        {
            **bar(span, at_ms - NOTED_MS, at_ms),
            "row": lanes[member],
            "colour": drawing.TWICE if all(said.values()) else drawing.FINDING,
            "hover": "<br>".join([f"<b>{escape(member)}</b>, {span.when(at_ms)}", *said]),
        }
        for (member, at_ms), said in noted.items()
        if member in lanes
    ]
    return bars(axis, drawn, width=0.24)


def _strip(one: DrawnGroup, side: str, head: Rows, span: Span, axis: str) -> Json:
    """Draw a group's generations, with the number in each that is wide enough."""
    drawn = [
        {
            **bar(span, period.start_ms, period.end_ms),
            "row": head[side],
            "colour": REBALANCING if period.rebalancing else _colour(period.generation),
            "text": "" if period.rebalancing else f"{period.generation}",
            "hover": _hover(one, side, period, span),
        }
        for period in one.timelines[side]
    ]
    edge = {"line": {"width": 0.5, "color": REBALANCING}}
    return bars(axis, drawn, width=1.05, marker=edge)


def _hover(one: DrawnGroup, side: str, period: Period, span: Span) -> str:
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
    cause = f" · {escape(one.clients.get(member, member))}" if member else ""
    began = ("observed_started_ms", "expected_started_ms", "observed_joined_ms")
    began_ms = next(filter(None, map(row.get, began)), None)
    remark = one.remarks.get(began_ms, "") if side == "observed" and began_ms else ""
    to = "none" if period.generation is None else period.generation
    return (
        f"<b>rebalance</b> ({side}) from generation {row[f'{side}_old_generation']} to {to}<br>"
        f"{escape(reason)}: {escape(REASONS.get(reason, 'as the broker put it'))}{cause}<br>"
        f"{escape(remark)}{'<br>' if remark else ''}"
        f"from {span.when(period.start_ms)}<br>took {lasted} s, {row['outcome']}"
    )


def _findings(one: DrawnGroup, root: bool, span: Span, axis: str) -> Json:
    """Mark findings: roots with their number, their consequences as small rings."""
    found = [finding for finding in one.findings if finding["root"] is root]
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
