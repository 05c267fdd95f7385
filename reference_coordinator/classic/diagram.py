"""The state machine as a picture (SVG) and as a page (Markdown), both drawn from `transitions`.

`python -m reference_coordinator.classic.diagram` prints the page, with the argument `svg` the
picture. `python docs/generate.py` writes both into `docs/`.
"""

import sys
from collections.abc import Iterator
from html import escape
from math import hypot
from typing import NamedTuple

from reference_coordinator.classic.transitions import (
    ANY,
    COMPLETING,
    DEAD,
    EMPTY,
    LOADING_GROUP,
    NO_GROUP,
    NOT_COORDINATOR,
    PREPARING,
    STABLE,
    TABLE,
    Cause,
    Row,
)

PICTURE = "images/state-machine.svg"
WIDTH, HEIGHT = 1140, 600
BOX_WIDTH, BOX_HEIGHT = 176, 44
LINE_HEIGHT = 14
APART = 14
"""How far from each other two arrows between the same states are."""


HEAD = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"
 font-size="12" role="img" aria-label="States of a classic group and causes of their transitions">
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"
 orient="auto"><path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>"""
INTRODUCTION = f"""\
# State machine of a classic group

![States of a classic group and causes of their transitions]({PICTURE})

A transition into PreparingRebalance is a *rebalance*; its reason is the class of the reason in
Kafka's log line. A rule is a field of `Profile`: the transition exists where it is true (`not`:
where it is false). `step` makes no other transition: every test of the oracle checks that.

| from | cause | to | when | reason | rule | source |
|---|---|---|---|---|---|---|"""


class Box(NamedTuple):
    """A state in the picture: its name, its centre and its width."""

    name: str
    x: float
    y: float
    width: float = BOX_WIDTH


class Arrow(NamedTuple):
    """An arrow of the picture, with the lines of its label."""

    start: Box
    end: Box
    label: tuple[str, ...]
    two_way: bool


BOXES = {
    box.name: box
    for box in (
        Box(NO_GROUP, 120, 60),
        Box(DEAD, 120, 230),
        Box(EMPTY, 480, 60),
        Box(PREPARING, 860, 60),
        Box(COMPLETING, 860, 360),
        Box(STABLE, 340, 360),
    )
}
FAILOVER = {
    box.name: box
    for box in (
        Box(ANY, 120, 515),
        Box(LOADING_GROUP, 450, 470),
        Box(NOT_COORDINATOR, 450, 560),
        Box("", 820, 470, 260),
    )
}
LOADED_BOX = FAILOVER[""]


def arrows() -> Iterator[Arrow]:
    """Yield an arrow for each pair of states, with all causes that lead from one to the other."""
    causes: dict[tuple[str, str], list[str]] = {}
    for row in TABLE:
        if row.before in BOXES and row.after in BOXES:
            known = causes.setdefault((row.before, row.after), [])
            known += [row.cause] if row.cause not in known else []
    for (before, after), label in causes.items():
        two_way = (after, before) in causes
        yield Arrow(BOXES[before], BOXES[after], _wrapped(label), two_way)


def failover() -> Iterator[Arrow]:
    """Yield the arrows of load and resignation, which lead from any state."""
    anywhere, loading = FAILOVER[ANY], FAILOVER[LOADING_GROUP]
    yield Arrow(anywhere, loading, (Cause.LOAD_STARTED,), False)
    yield Arrow(anywhere, FAILOVER[NOT_COORDINATOR], (Cause.UNLOADED,), False)
    yield Arrow(loading, LOADED_BOX, (Cause.LOADED,), False)


def svg() -> str:
    """Draw the picture; it needs no fonts, scripts or network."""
    loaded = [r.after for r in TABLE if r.before == ANY and r.cause is Cause.LOADED]
    after_load = LOADED_BOX._replace(name=" or ".join(loaded))
    boxes = [*BOXES.values(), FAILOVER[ANY], FAILOVER[LOADING_GROUP], FAILOVER[NOT_COORDINATOR]]
    drawn = map(_box, [*boxes, after_load])
    lines = [_arrow(arrow) for arrow in (*arrows(), *failover())]
    return "\n".join((HEAD, *lines, *drawn, "</svg>", ""))


def markdown() -> str:
    """Write the page: the picture, and the table with the source of each transition."""
    rows = [
        f"| {row.before} | {row.cause} | {row.after} | {row.when} | {_reason(row)} "
        f"| {_rule(row)} | {row.source} |"
        for row in TABLE
    ]
    return "\n".join((INTRODUCTION, *rows, ""))


def _reason(row: Row) -> str:
    return f"`{row.reason}`" if row.reason is not None else ""


def _rule(row: Row) -> str:
    return f"`{row.rule}`" if row.rule else ""


def _wrapped(causes: list[str]) -> tuple[str, ...]:
    """Put at most two causes on a line."""
    return tuple(", ".join(causes[n : n + 2]) for n in range(0, len(causes), 2))


def _box(box: Box) -> str:
    x, y = box.x - box.width / 2, box.y - BOX_HEIGHT / 2
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{box.width:g}" height="{BOX_HEIGHT}" rx="8"'
        f' fill="#eef3fb" stroke="#345"/><text x="{box.x:g}" y="{box.y + 4:g}" text-anchor="middle"'
        f' font-weight="bold">{escape(box.name)}</text>'
    )


def _arrow(arrow: Arrow) -> str:
    """Draw an arrow from edge to edge; two opposite arrows lie beside each other."""
    start, end = arrow.start, arrow.end
    dx, dy = end.x - start.x, end.y - start.y
    length = hypot(dx, dy)
    side = APART if arrow.two_way else 0
    ox, oy = -dy / length * side, dx / length * side
    leaves, arrives = _inside(dx, dy, start), _inside(dx, dy, end)
    x1, y1 = start.x + ox + dx * leaves, start.y + oy + dy * leaves
    x2, y2 = end.x + ox - dx * arrives, end.y + oy - dy * arrives
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    rest = LINE_HEIGHT * (len(arrow.label) - 1)
    if abs(dx) > abs(dy):  # above the line, of two opposite ones the lower has it below
        anchor, first = "middle", y + 16 if oy > 0 else y - 7 - rest
    else:
        anchor, x = ("start", x + 8) if ox > 0 else ("end", x - 8)
        first = y + 4 - rest / 2
    label = "".join(
        f'<text x="{x:.0f}" y="{first + LINE_HEIGHT * n:.0f}" text-anchor="{anchor}" fill="#333"'
        f' stroke="#fff" stroke-width="4" paint-order="stroke">{escape(line)}</text>'
        for n, line in enumerate(arrow.label)
    )
    return (
        f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#555"'
        f' stroke-width="1.5" marker-end="url(#head)"/>{label}'
    )


def _inside(dx: float, dy: float, box: Box) -> float:
    """Return the share of a line between two centres that lies inside a box at its end."""
    shares = [box.width / 2 / abs(dx)] if dx else []
    shares += [BOX_HEIGHT / 2 / abs(dy)] if dy else []
    return min(shares)


if __name__ == "__main__":
    sys.stdout.write(svg() if sys.argv[1:] == ["svg"] else markdown())
