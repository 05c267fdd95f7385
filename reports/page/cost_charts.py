"""The figures of costs: the owners of partitions over time, and how long members were stopped."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from reports.page import drawing
from reports.page.costs import identity, natural
from reports.page.drawing import Json, Span, bar
from reports.page.drawn_groups import LANES_DRAWN, DrawnGroup
from reports.page.wording import ENDINGS, seconds

HUES = 16
"""How many colours owners have, as `hue-0` and so on."""
PARTITIONS = 48
"""How many partitions of a group get a row, and of a topic may get one."""
BARS = 4_000
"""How many bars the owners of one page may have, and the stops of one group, to keep it small."""


def colour_number(members: Sequence[str], member: str) -> int:
    """Return the number of a member's colour; its second process has the same."""
    return members.index(identity(member)) % HUES


def drawn_partitions(one: DrawnGroup, bars_left: int = BARS) -> list[str]:
    """Return the partitions to draw: the first ones, up to the limits."""
    each = len(one.ownership) / max(1, len(one.partitions))
    return one.partitions[: min(PARTITIONS, max(1, int(bars_left / max(1.0, each))))]


def owners(one: DrawnGroup, span: Span, bars_left: int = BARS) -> Json:
    """Draw one row a partition, coloured by owner, below a row of the faults."""
    known = labels(one.members)
    held: dict[str, list[Json]] = {name: [] for name in drawn_partitions(one, bars_left)}
    for holding in one.ownership.itertuples():
        if holding.partition in held:
            held[holding.partition] += _held(one.members, known, holding, span)
    faults = drawing.row("faults", drawing.fault_bars(one.faults, span), head=True)
    rows = [faults, *(drawing.row(name, bars) for name, bars in held.items())]
    block = drawing.block("", rows, bands=drawing.bands(one.periods, span))
    return drawing.figure(span, [block], drawing.broker_bands(one.faults, span))


def _held(
    members: Sequence[str], known: Mapping[str, str], holding: Any, span: Span
) -> Iterator[Json]:
    """Yield how long a partition was held, and how long it had another owner beside this one."""
    owner = identity(holding.member)
    second = "" if owner == holding.member else " second"
    kind = f"owner hue-{colour_number(members, owner)}{second}"
    ends = span.ends(holding.from_ms, holding.until_ms)
    ended = ENDINGS.get(holding.ended_as, "")
    yield bar(kind, ends, f"of {holding.member}", ended, text=known[owner])
    if holding.overlaps:
        both = span.ends(holding.from_ms, holding.from_ms + holding.overlap_ms)
        who = f"{holding.overlaps} and {holding.member}"
        yield bar("shared", both, "two owners, as clients saw it", who)


def labels(members: Sequence[str]) -> dict[str, str]:
    """Return a short label for each member: the number in its name, else its position."""
    numbers = [name[len(name.rstrip("0123456789")) :] for name in members]
    if not all(numbers) or len({*numbers}) < len(numbers):
        numbers = [str(place) for place, _ in enumerate(members)]
    return dict(zip(members, numbers, strict=True))


def stops(groups: Sequence[DrawnGroup]) -> Json:
    """Draw how long each member of some groups was stopped, stop after stop."""
    longest_ms, blocks = 1000.0, []
    for one in groups:
        of_member = dict(iter(one.stops.groupby("member"))) if len(one.stops) else {}
        total = dict.fromkeys(one.members, 0.0)
        total |= {name: sum(mine["stopped_ms"]) for name, mine in of_member.items()}
        longest = sorted(one.members, key=lambda name: -total[name])[:LANES_DRAWN]
        longest_ms = max([longest_ms, *total.values()])
        whole, none = len(one.stops) > BARS, one.stops[:0]
        rows = [
            drawing.row(
                name,
                _one_after_the_other(of_member.get(name, none), whole=whole),
                text=f"{seconds(total[name], 2)} s" if total[name] else "0",
            )
            for name in sorted(longest, key=natural)
        ]
        title = one.title + drawing.part_drawn(longest, one.members)
        blocks.append(drawing.block(one.group, rows, title=title))
    axis = {"shows": "amount", "title": "seconds stopped, in the impact phase", "zero_ms": None}
    end = round(longest_ms / 1000, 3)
    return {"axis": axis, "end": end, "phases": [], "bands": [], "blocks": blocks}


def _one_after_the_other(stops: pd.DataFrame, *, whole: bool) -> Iterator[Json]:
    """Yield a bar for each stop of a member, or one for them as a `whole`."""
    said = "stop {}: {} s"
    if whole:
        said = f"{len(stops)} stops: {{1}} s"
        stops = stops.groupby("kind", as_index=False).agg({"stopped_ms": "sum"})
    base_ms = 0.0
    for number, stop in enumerate(stops.itertuples(), 1):
        ends = {"from": round(base_ms / 1000, 3)}
        base_ms += stop.stopped_ms
        ends["to"] = round(base_ms / 1000, 3)
        yield bar(f"stop {stop.kind}", ends, said.format(number, seconds(stop.stopped_ms, 3)))
