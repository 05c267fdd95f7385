"""`groupquake open`: the report of a run, an incident or the nights, in the browser."""

import os
import webbrowser
from pathlib import Path

import click

from groupquake.console import Console
from groupquake.exits import Exit

LATEST = Path("runs/latest")
PAGES = ("report.html", "incident.html", "index.html")
"""The pages that a folder may have, its own first."""
_SHOWN_BY = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""One of these variables is set where a browser can open a window."""


@click.command("open")
@click.argument("place", metavar="[RUN]", type=click.Path(path_type=Path), default=LATEST)
def open_page(place: Path) -> Exit:
    """Open the report of a run in the browser: the latest one, if no other is named.

    RUN is the folder of a run, of an incident, of a night or of all nights, or a page itself. Where
    no browser can open a window, the address of the page is all.
    """
    address = page_of(place).resolve().as_uri()
    if not (has_windows() and webbrowser.open(address)):
        Console.error("no browser can open a window here; open this page in one")
    Console.result(address)
    return Exit.PASS


def has_windows() -> bool:
    """Return whether a browser can open a window here."""
    return any(map(os.environ.get, _SHOWN_BY))


def page_of(place: Path) -> Path:
    """Return the page of a folder. Raises UsageError, which says how to make one."""
    if place.is_file():
        return place
    if not place.exists():
        hint = "`groupquake run demo` makes one" if place == LATEST else "check the path"
        raise click.UsageError(f"{place}: there is no such run; {hint}")
    above = [place.parent] if (place / "night.json").exists() else []
    for folder in (place, *above):
        for page in PAGES:
            if (folder / page).is_file():
                return folder / page
    raise click.UsageError(f"{place}: it has no report; `groupquake report {place}` makes one")
