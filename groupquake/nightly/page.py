"""The page over all nights: one self-contained HTML file with links to reports."""

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

from groupquake.nightly.history import Series, nights, points, trends
from reports.page import junit
from reports.page.environment import environment_of, page_of
from reports.page.wording import SIGNS

Json = dict[str, Any]
NIGHTS_DRAWN = 30
"""The most nights in a trend; the list below it has all."""
WIDTH, HEIGHT, EDGE = 190.0, 40.0, 5.0
"""The size of a trend's drawing, in pixels."""


class Dot(NamedTuple):
    """The measurement of one night, at its place in the drawing."""

    x: float
    y: float
    title: str


class Curve(NamedTuple):
    """A group's measurements over the nights; a night without a verdict leaves a gap."""

    name: str
    pieces: list[list[Dot]]
    last: str


def render(directory: Path) -> str:
    """Return the page over the nights in a folder."""
    found, unreadable = nights(directory)
    drawn = list(reversed(found[:NIGHTS_DRAWN]))
    environment = environment_of("groupquake.nightly", "reports.page")
    environment.filters["when"] = _when
    environment.filters["time"] = _time
    times = [_when(night["started_at"]) for night in drawn]
    drawings: dict[str, Callable[[float], str]] = {
        "rebalances": lambda value: f"{value:g}",
        "rebalancing_ms": lambda value: _time(value / 1000),
    }
    return page_of(
        environment,
        "index.html.j2",
        nights=found,
        drawn=drawn,
        times=times,
        unreadable=unreadable,
        trends=[
            {
                "experiment": one.experiment,
                "platform": one.platform,
                "verdicts": one.verdicts,
                "took": _curves(times, {"run": one.took_s}, _time),
                **{
                    name: _curves(times, one.measures.get(name, {}), as_text)
                    for name, as_text in drawings.items()
                },
            }
            for one in trends(drawn, points(directory))
        ],
        table=_table,
        link=lambda night, run: _link(directory, night, run),
        signs={**SIGNS, "not run": "-"},
        size=(WIDTH, HEIGHT),
    )


def _curves(
    times: list[str], values: Mapping[str, Series], as_text: Callable[[float], str]
) -> list[Curve]:
    """Return the curves, all on one scale from 0 to the largest value."""
    top = max((v for series in values.values() for v in series if v is not None), default=0)
    step = (WIDTH - 2 * EDGE) / max(1, len(times) - 1)
    curves = []
    for name, series in values.items():
        pieces: list[list[Dot]] = [[]]
        for i, value in enumerate(series):
            if value is None:
                pieces.append([])
                continue
            x = EDGE + i * step if len(times) > 1 else WIDTH / 2
            y = HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value / top if top else 0)
            title = f"{times[i]}: {name} {as_text(value)}"
            pieces[-1].append(Dot(round(x, 1), round(y, 1), title))
        last = as_text(series[-1]) if series[-1] is not None else "-"
        curves.append(Curve(name, [piece for piece in pieces if piece], last))
    return curves


def _table(night: Json) -> Json:
    """Arrange a night's runs: a row for each experiment, a column for each platform."""
    runs: list[Json] = night["runs"]
    platforms = list(dict.fromkeys(run["platform"] for run in runs))
    rows: dict[str, list[list[Json]]] = {}
    for run in runs:
        row = rows.setdefault(run["experiment"], [[] for _ in platforms])
        row[platforms.index(run["platform"])].append(run)
    return {
        "platforms": platforms,
        "rows": rows,
        "not_passed": [run for run in runs if run["verdict"] != "pass"],
        "cut_off": night["state"] != "ended",
    }


def _link(directory: Path, night: Json, run: Json) -> str | None:
    """Return the link to a run's report, or else to its output, if the file exists."""
    places = (run["folder"] and f"{run['folder']}/report.html", run["output"])
    for place in filter(None, places):
        if (directory / night["night"] / place).is_file():
            return quote(f"{night['night']}/{place}")
    return None


def _when(text: str) -> str:
    """Return a time as text."""
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M UTC")


def _time(seconds: float) -> str:
    """Return a duration as text."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 1000:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def junit_xml(night: Json) -> str:
    """Write a night as JUnit XML: a suite for each platform, a case for each run.

    `fail` is a failure, all other verdicts but `pass` are errors.
    """
    root = ET.Element("testsuites", name=night["suite"])
    for platform, runs in groupby(night["runs"], key=lambda run: run["platform"]):
        suite = junit.child(root, "testsuite", name=f"Kafka {platform}")
        classname = f"groupquake.{night['suite']}.{platform.replace('.', '_')}"
        for run in runs:
            name, took_s = f"{run['experiment']} seed {run['seed']}", str(run["took_s"] or 0)
            case = junit.child(suite, "testcase", classname=classname, name=name, time=took_s)
            if run["verdict"] != "pass":
                kind = "failure" if run["verdict"] == "fail" else "error"
                why = run["why"] or run["state"]
                lines = (why, f"repeat: {run['command']}", f"folder: {run['folder']}")
                junit.child(case, kind, *lines, message=f"{run['verdict']}: {why}")
        junit.count(suite)
    junit.count(root)
    return junit.written(root)
