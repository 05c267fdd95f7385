"""The figures of costs: the owners of partitions over time, and how long members were stopped."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports.page import drawing
from reports.page.costs import identity, natural
from reports.page.drawing import INK, MUTED, TITLE_PX, Json, Span, bar, bars, escape, short_names
from reports.page.drawn_groups import DrawnGroup
from reports.page.wording import ENDINGS, seconds

OWNER_COLOURS = (
    "#77aadd", "#ee8866", "#eedd88", "#b18fcf", "#44bb99", "#ffaabb", "#bbcc33", "#99ddff",
    "#c7a17a", "#d5d8dc", "#a3c9a8", "#e58fc1", "#8f9fbc", "#d9b13b", "#7fd1c7", "#c9c4f0",
)  # fmt: skip
"""Light enough for a number on them; neighbours differ in hue and in brightness."""
KIND_COLOURS = {"static": "#2f6db3", "dynamic": "#b5790a"}

PARTITIONS = 48
"""How many partitions of a group get a row, and of a topic may get one."""
NARROWEST_LABELLED = 0.02
"""The least part of the time that an owner's bar takes, so that its label fits into it."""
BARS = 4_000
"""How many bars the owners of one page may have, to keep the page small."""
TALL_PX, LOW_PX, MANY = 17, 12, 24
"""The height of a partition's row, and the number of rows above which rows are low."""
MEMBERS = 40
"""How many members of a group get a bar."""
HEAD_PX, STOP_PX = 20, 18

Rows = Mapping[str, float]
"""The place of each partition's row."""
Held = Sequence[Any]
"""Rows of the frame `ownership`."""


def colour_number(members: Sequence[str], member: str) -> int:
    """Return the number of a member's colour; its second process has the same."""
    return members.index(identity(member)) % len(OWNER_COLOURS)


def drawn_partitions(one: DrawnGroup, bars_left: int = BARS) -> list[str]:
    """Return the partitions to draw: the first ones, up to the limits."""
    each = len(one.ownership) / max(1, len(one.partitions))
    return one.partitions[: min(PARTITIONS, max(1, int(bars_left / max(1.0, each))))]


def owners(one: DrawnGroup, span: Span, bars_left: int = BARS) -> Json:
    """Draw one row a partition, coloured by owner, below a row of the faults."""
    partitions = drawn_partitions(one, bars_left)
    low = len(partitions) > MANY
    row_px = LOW_PX if low else TALL_PX
    head = HEAD_PX / row_px
    at = {name: head + number for number, name in enumerate(partitions)}
    bottom = head + len(partitions) - 0.5
    rows = (-head / 2 - 0.1, bottom + 0.1)
    names = {0.0: "<b>faults</b>"} | dict(zip(at.values(), short_names(at).values(), strict=True))
    shapes, notes = drawing.phases(span)
    shapes += drawing.broker_bands(one.faults, span)
    shapes += drawing.bands(one.periods, span, "y", head - 0.5, bottom)
    axis = drawing.row_axis(names, rows, [0, 1]) | {"tickfont": {"size": 9 if low else 11}}
    layout = drawing.time_layout(span, (rows[1] - rows[0]) * row_px, lowest="y") | {"yaxis": axis}
    held = [holding for holding in one.ownership.itertuples() if holding.partition in at]
    traces = [
        _held(one.members, held, at, span),
        _labels(one.members, held, at, span),
        _shared(held, at, span),
        drawing.fault_bars(one.faults, lambda _: 0.0, span, "y", width=head * 0.8),
    ]
    return drawing.figure(traces, layout, shapes, notes)


def _held(members: Sequence[str], held: Held, at: Rows, span: Span) -> Json:
    drawn = [
        {
            **bar(span, holding.from_ms, holding.until_ms),
            "row": at[holding.partition],
            "colour": OWNER_COLOURS[colour_number(members, holding.member)],
            "hover": f"<b>{escape(holding.partition)}</b> of {escape(holding.member)}<br>"
            f"from {span.when(holding.from_ms)}<br>to {span.when(holding.until_ms)}<br>"
            f"{ENDINGS.get(holding.ended_as, '')}",
        }
        for holding in held
    ]
    second = ["/" if identity(holding.member) != holding.member else "" for holding in held]
    look = {
        "line": {"width": 0.5, "color": "#ffffff"},
        "pattern": {"shape": second, "size": 5, "solidity": 0.3, "fgcolor": INK},
    }
    return bars("y", drawn, width=0.86, marker=look)


def _labels(members: Sequence[str], held: Held, at: Rows, span: Span) -> Json:
    """Write the owner's label once into adjacent rows that it was assigned together, if it fits."""
    known = labels(members)
    labelled = []
    above: dict[tuple[str, float], float] = {}
    for holding in sorted(held, key=lambda holding: at[holding.partition]):
        given, row = (holding.member, holding.from_ms), at[holding.partition]
        if holding.until_ms - holding.from_ms >= NARROWEST_LABELLED * span.lasts_ms:
            if row - above.get(given, -2.0) > 1.5:
                labelled.append(holding)
            above[given] = row
    places = [span.at((one.from_ms + one.until_ms) / 2) for one in labelled]
    rows = [at[one.partition] for one in labelled]
    texts = [known[identity(one.member)] for one in labelled]
    return drawing.texts("y", places, rows, texts, textfont={"size": 9, "color": INK})


def _shared(held: Held, at: Rows, span: Span) -> Json:
    """Mark when a partition had two owners."""
    drawn = [
        {
            **bar(span, holding.from_ms, holding.from_ms + holding.overlap_ms),
            "row": at[holding.partition],
            "colour": INK,
            "hover": f"<b>{escape(holding.partition)} had two owners</b>, as clients saw it<br>"
            f"for {seconds(holding.overlap_ms, 3)} s from {span.when(holding.from_ms)}<br>"
            f"{escape(holding.overlaps)} and {escape(holding.member)}",
        }
        for holding in held
        if holding.overlaps
    ]
    return bars("y", drawn, width=0.4)


def labels(members: Sequence[str]) -> dict[str, str]:
    """Return a short label for each member: the number in its name, else its position."""
    numbers = [name[len(name.rstrip("0123456789")) :] for name in members]
    if not all(numbers) or len({*numbers}) < len(numbers):
        numbers = [str(place) for place, _ in enumerate(members)]
    return dict(zip(members, numbers, strict=True))


def stops(groups: Sequence[DrawnGroup]) -> Json:
    """Draw how long each member of some groups was stopped, stop after stop."""
    heights = [TITLE_PX + STOP_PX * max(1, min(MEMBERS, len(one.members))) for one in groups]
    layout = drawing.layout(float(sum(heights) or 1), lowest=f"y{max(1, len(groups))}")
    layout["margin"] |= {"t": 0}
    layout["height"] -= drawing.TOP_PX
    traces, notes, longest_ms = [], [], 1000.0
    for number, (one, domain) in enumerate(zip(groups, drawing.stacked(heights), strict=True), 1):
        members = one.members
        of_member = dict(iter(one.stops.groupby("member"))) if len(one.stops) else {}
        total = dict.fromkeys(members, 0.0)
        total |= {name: sum(mine["stopped_ms"]) for name, mine in of_member.items()}
        lanes = sorted(sorted(members, key=lambda name: -total[name])[:MEMBERS], key=natural)
        longest_ms = max([longest_ms, *total.values()])
        named = {float(row): label for row, label in enumerate(short_names(lanes).values())}
        layout[f"yaxis{number}"] = drawing.row_axis(named, (-0.5, len(lanes) - 0.5), domain)
        title = one.title + drawing.part_drawn(lanes, members)
        notes.append(drawing.title(one.group, title, domain[1]))
        drawn = [
            stop
            for row, name in enumerate(lanes)
            if name in of_member
            for stop in _one_after_the_other(row, name, of_member[name].itertuples())
        ]
        edge = {"line": {"width": 1, "color": "#ffffff"}}
        traces += [
            bars(f"y{number}", drawn, width=0.72, marker=edge),
            _totals(lanes, total, f"y{number}"),
        ]
    layout["xaxis"] |= {
        "range": [0, longest_ms / 1000 * 1.12],
        "title": {"text": "seconds stopped, in the impact phase"},
    }
    return drawing.figure(traces, layout, notes=notes)


def _one_after_the_other(row: int, name: str, stops: Iterable[Any]) -> list[Json]:
    base_ms, drawn = 0.0, []
    for number, stop in enumerate(stops, 1):
        drawn.append({
            "base": round(base_ms / 1000, 4),
            "length": round(stop.stopped_ms / 1000, 4),
            "row": row,
            "colour": KIND_COLOURS.get(stop.kind, MUTED),
            "hover": f"<b>{escape(name)}</b>, stop {number}: {seconds(stop.stopped_ms, 3)} s",
        })  # fmt: skip
        base_ms += stop.stopped_ms
    return drawn


def _totals(lanes: Sequence[str], total: Mapping[str, float], axis: str) -> Json:
    texts = [f"\u00a0{seconds(total[name], 2)} s" if total[name] else "\u00a00" for name in lanes]
    look = {"textposition": "middle right", "textfont": {"size": 11, "color": INK}}
    ends = [total[name] / 1000 for name in lanes]
    return drawing.texts(axis, ends, range(len(lanes)), texts, **look, cliponaxis=False)
