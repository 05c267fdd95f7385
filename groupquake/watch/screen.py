"""What is counted in; a screen, and lines of text, out."""

import io
from collections.abc import Iterable, Mapping
from shutil import get_terminal_size

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from groupquake.watch.counting import View
from groupquake.watch.group_counts import Storm
from kafka_protocol.printable import printable
from reports.page.wording import counted, day, seconds, utc

NOT_JUDGED = "Whether a rebalance was due is not known: `groupquake run` judges that."
SHOWN = 3
"""How many causes and clients of a group, or of a storm, are shown."""


def drawing(view: View, news: Iterable[str] = (), groups: int | None = None) -> Group:
    """Return the screen, with so many groups at most."""
    table = Table(expand=True, box=None, pad_edge=False, header_style="bold")
    for title, ratio in (("group", 3), ("by cause", 4), ("most by", 3)):
        table.add_column(title, overflow="fold", ratio=ratio)
    for title in ("total", "generation", "last, s", "storms"):
        table.add_column(title, justify="right")
    for one in view.groups[:groups]:
        cells = (
            one.name, _most(one.causes), _most(one.clients), str(one.rebalances),
            "?" if one.generation is None else str(one.generation),
            "now" if one.is_going_on else seconds(one.last_ms, 3), str(one.storms),
        )  # fmt: skip
        style = "bold yellow" if one.is_going_on else "red" if one.storms else ""
        table.add_row(*(Text(printable(cell)) for cell in cells), style=style)
    by_status = ", ".join(f"{count:,} {status}" for status, count in sorted(view.lines.items()))
    lines = f"{counted(sum(view.lines.values()), 'line')} read: {by_status or 'waiting'}"
    above = (
        f"{lines} ({view.rejected})" if view.rejected else lines,
        NOT_JUDGED,
        *news,
        f"{counted(len(view.groups), 'group')}, those with most rebalances first",
    )
    return Group(*(Text(printable(line)) for line in above), table)


def as_lines(view: View) -> list[str]:
    """Return what the screen shows, as lines of text as wide as the terminal."""
    written = io.StringIO()
    Console(file=written, width=get_terminal_size().columns).print(drawing(view))
    return [line.rstrip() for line in written.getvalue().splitlines()]


def as_text(storm: Storm) -> str:
    """Return a storm in a line."""
    by = f" by {', '.join(storm.clients[:SHOWN])}" if storm.clients else ""
    return (
        f"{day(storm.until_ms)} {utc(storm.until_ms)} {storm.group}: a storm, {storm.rebalances}"
        f" rebalances within {seconds(storm.until_ms - storm.from_ms)} s{by}"
    )


def _most(counts: Mapping[str, int]) -> str:
    by_count = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = ["…"] if len(by_count) > SHOWN else []
    return ", ".join([*(f"{name} {count}" for name, count in by_count[:SHOWN]), *more])
