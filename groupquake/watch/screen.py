"""What is counted in; a screen, lines of text and JSON lines out."""

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from groupquake.console import Console
from groupquake.watch.counting import View
from groupquake.watch.group_counts import Ended, Event
from kafka_protocol.printable import printable
from reports.page.wording import REASONS, counted, day, seconds, utc

NOT_JUDGED = "Whether a rebalance was due is not known: `groupquake run` judges that."
SHOWN = 3
"""How many causes and clients of a group are shown, and how many events and notices."""


class Lines:
    """A line an event, as text or as JSON; notices go to standard error."""

    def __init__(self, *, as_json: bool = False) -> None:
        """Choose the form."""
        self._line = _as_json if as_json else as_text

    def show(self, events: Sequence[Event], notices: Sequence[str], _: View) -> None:
        """Print what is new."""
        if events:
            Console.result(*map(self._line, events))
        if notices:
            Console.error(*notices)


class Screen:
    """The groups, and the last events, on a terminal that is drawn anew."""

    def __init__(self, live: Live) -> None:
        """Take what draws."""
        self._live = live
        self._events = deque[str](maxlen=SHOWN)
        self._notices = deque[str](maxlen=SHOWN)

    def show(self, events: Sequence[Event], notices: Sequence[str], view: View) -> None:
        """Draw all anew."""
        self._events += map(as_text, events)
        self._notices += notices
        drawn = drawing(view, [*self._events, *self._notices], self._live.console.height)
        self._live.update(drawn, refresh=True)


def drawing(view: View, news: Sequence[str], height: int) -> Group:
    """Return the screen; of the groups there are as many as it has room for, or more."""
    table = Table(expand=True, box=None, pad_edge=False, header_style="bold")
    for title, ratio in (("group", 2), ("by cause", 3), ("most by", 3)):
        table.add_column(title, overflow="fold", ratio=ratio)
    for title in ("total", "generation", "last, s", "storms"):
        table.add_column(title, justify="right")
    for one in view.groups[:height]:
        cells = (
            one.name, most(one.causes), most(one.clients), str(one.rebalances),
            "?" if one.generation is None else str(one.generation),
            "now" if one.is_going_on else seconds(one.last_ms, 3), str(one.storms),
        )  # fmt: skip
        style = "bold yellow" if one.is_going_on else "red" if one.storms else ""
        table.add_row(*(Text(printable(cell)) for cell in cells), style=style)
    groups = f"{counted(len(view.groups), 'group')}, those with most rebalances first"
    above = (of_lines(view), NOT_JUDGED, *news, groups)
    return Group(*(Text(printable(line)) for line in above), table)


def of_lines(view: View) -> str:
    """Say how many lines were read, by their status."""
    by_status = ", ".join(f"{count:,} {status}" for status, count in sorted(view.lines.items()))
    said = f"{counted(sum(view.lines.values()), 'line')} read: {by_status or 'waiting'}"
    return f"{said} ({view.rejected})" if view.rejected else said


def most(counts: Mapping[str, int]) -> str:
    """Name those that count most."""
    by_count = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = ["…"] if len(by_count) > SHOWN else []
    return ", ".join([*(f"{name} {count}" for name, count in by_count[:SHOWN]), *more])


def as_text(event: Event) -> str:
    """Return an event in a line."""
    by = f" by {', '.join(event.clients[:SHOWN])}" if event.clients else ""
    if isinstance(event, Ended):
        took = None if event.ended_ms is None else event.ended_ms - event.at_ms
        lasted = "" if took is None else f" of {seconds(took, 3)} s"
        cause = REASONS.get(event.cause, event.cause)
        return (
            f"{_at(event.at_ms)} {event.group}: rebalance{lasted} after generation"
            f" {event.generation}, {cause}{by}: {event.ending}"
        )
    within_s = seconds(event.until_ms - event.from_ms)
    return (
        f"{_at(event.until_ms)} {event.group}: a storm, {event.rebalances} rebalances within"
        f" {within_s} s{by}"
    )


def summary(view: View) -> list[str]:
    """Return the last lines that the command prints."""
    groups = [
        f"  {one.name}: {counted(one.rebalances, 'rebalance')} ({most(one.causes)}),"
        f" {counted(one.storms, 'storm')}; most by {most(one.clients) or 'nobody named'}"
        for one in view.groups
        if one.rebalances
    ]
    return ["", *groups, f"  {of_lines(view)}", f"  {NOT_JUDGED}"]


def _as_json(event: Event) -> str:
    return msgspec.json.encode(event).decode()


def _at(at_ms: float) -> str:
    return f"{day(at_ms)} {utc(at_ms)}"
