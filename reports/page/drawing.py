"""The JSON form of a figure, which `templates/figure.js` draws: data alone, no colours, no pixels.

    figure = {"axis": {"shows": "time" | "date" | "amount", "title": str, "zero_ms": float | None},
              "end": float, "phases": [{"name": str, "at": float}], "bands": [band],
              "blocks": [{"name": str, "title": str, "bands": [band], "rows": [row]}]}
    row    = {"name": str, "head": bool, "bars": [bar], "text"?: str}
    band   = {"from": float, "to": float | None, "kind": str}
    bar    = {"from": float, "to"?: float | None, "kind": str, "hover": [str],
              "text"?: str, "opens"?: str}

- Positions are seconds, with three decimals: of `time` and `date` since `zero_ms`, which is a time
  in epoch milliseconds, or None in virtual time; of `amount`, seconds in themselves.
- What ends where the figure ends has None in `to`: as time goes on, `end` alone changes.
- A bar without `to` is a mark at an instant: with `text` a number in a ring, which may be one with
  its neighbours, else a point.
- `kind` is one or more classes of `templates/figure.css`. The first also says how high a bar is,
  and what it lies on (`LOOKS` in the script).
- `hover` are lines that show at a bar. The script writes the row's name before them, and the times
  after them.
- `opens` is the id of an element of the page that a click on the bar leads to.
- Bands lie over all rows of a block, or over all blocks. Rows that are `head` are higher than the
  others and have bold names. The `text` of a row stands behind its last bar.
- A row's bars are in the order of their begins, blocks and rows in the order of their first
  appearance: what happens later is added at the end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from kafka_protocol.printable import printable
from reports.page.faults import Fault, declared, hits_broker

if TYPE_CHECKING:
    from reports.page.drawn_groups import Period

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is drawn, in epoch milliseconds, with the phases that began in it."""

    zero_ms: float
    end_ms: float
    phases: Sequence[tuple[str, float]] = ()
    is_virtual: bool = False
    """Whether no time of day belongs to it."""

    def at(self, at_ms: float) -> float:
        """Return the position of a time on the axis: seconds since the start."""
        return round((at_ms - self.zero_ms) / 1000, 3)

    def ends(self, start_ms: float, end_ms: float) -> Json:
        """Return begin and end of a bar or a band."""
        return {"from": self.at(start_ms), "to": None if end_ms >= self.end_ms else self.at(end_ms)}


def figure(
    span: Span, blocks: Sequence[Json], bands: Sequence[Json] = (), *, dated: bool = False
) -> Json:
    """Compose a figure over a time; `dated` if its axis shows dates and times of day."""
    axis = {"shows": "date", "title": "date and time, UTC"} if dated else {
        "shows": "time", "title": "seconds since formation began",
    }  # fmt: skip
    return {
        "axis": {**axis, "zero_ms": None if span.is_virtual else span.zero_ms},
        "end": span.at(span.end_ms),
        "phases": [{"name": printable(name), "at": span.at(at_ms)} for name, at_ms in span.phases],
        "bands": [*bands],
        "blocks": [*blocks],
    }


def block(name: str, rows: Sequence[Json], *, title: str = "", bands: Iterable[Json] = ()) -> Json:
    """Return rows under a name."""
    return {
        "name": printable(name), "title": printable(title), "bands": [*bands], "rows": [*rows],
    }  # fmt: skip


def row(name: str, bars: Iterable[Json], *, head: bool = False, **more: str) -> Json:
    """Return a row of bars and marks."""
    in_order = sorted(bars, key=itemgetter("from"))
    return {"name": printable(name), "head": head, "bars": in_order, **more}


def bar(kind: str, ends: Json, *hover: str, **more: str) -> Json:
    """Return a bar, or a mark if it has no end; empty lines of `hover` and texts are left out."""
    known = {name: printable(text) for name, text in more.items() if text}
    return {**ends, "kind": kind, "hover": [printable(line) for line in hover if line], **known}


def bands(periods: "Iterable[Period]", span: Span) -> list[Json]:
    """Return rebalances as bands."""
    times = (span.ends(one.start_ms, one.end_ms) for one in periods if one.rebalancing)
    return [{**ends, "kind": "rebalance"} for ends in times]


def broker_bands(faults: Iterable[Fault], span: Span) -> list[Json]:
    """Return faults of brokers as bands: they may affect every group."""
    lasted = {(one["name"], one["target"], one["injected_at_ms"]): one for one in faults}
    return [
        {**ends, "kind": "broker"}
        for fault in lasted.values()
        if hits_broker(fault)
        for ends in _lasted(fault, span)
    ]


def fault_bars(faults: Iterable[Fault], span: Span) -> list[Json]:
    """Return faults as bars, from injected to healed."""
    return [
        bar(
            "fault" if fault["verified"] else "fault unverified",
            ends,
            *_hover(fault),
            text=fault["name"].rpartition(".")[2] + ("" if fault["verified"] else " ?"),
        )
        for fault in faults
        for ends in _lasted(fault, span)
    ]


def _lasted(fault: Fault, span: Span) -> list[Json]:
    """List begin and end of a fault if it was injected; a single request is an instant."""
    start_ms = fault["injected_at_ms"]
    if start_ms is None:
        return []
    if declared(fault).one_shot:
        return [{"from": span.at(start_ms), "to": span.at(start_ms)}]
    return [span.ends(start_ms, fault["healed_at_ms"] or span.end_ms)]


def _hover(fault: Fault) -> list[str]:
    about = declared(fault)
    healed = about.one_shot or fault["healed_at_ms"]
    return [
        f"{fault['name']} on {fault['target']}",
        about.meaning,
        "" if healed else "not healed",
        fault["witness"] if fault["verified"] else "not verified",
    ]


def part_drawn(drawn: Sequence[str], names: Sequence[str]) -> str:
    """Say how many of the names are drawn, if not all are."""
    return f", {len(drawn)} of them drawn" if len(drawn) < len(names) else ""
