"""The page over all nights: one self-contained HTML file with links to reports."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from groupquake.nightly.history import Line, lines, nights, trend, worst
from reports.page.environment import environment_of, page_of
from reports.page.wording import SIGNS

Json = dict[str, Any]
NIGHTS_DRAWN = 30
"""The most nights in a trend; the list below it has all."""
WIDTH, HEIGHT, EDGE = 190.0, 40.0, 5.0
"""The size of a trend's drawing, in pixels."""


@dataclass(frozen=True, slots=True)
class Dot:
    """The measurement of one night, at its place in the drawing."""

    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A group's measurements over the nights; a night without a verdict leaves a gap."""

    name: str
    pieces: tuple[tuple[Dot, ...], ...]
    last: str


def render(directory: Path) -> str:
    """Return the page over the nights in a folder."""
    found, unreadable = nights(directory)
    drawn = list(reversed(found[:NIGHTS_DRAWN]))
    environment = environment_of("groupquake.nightly")
    environment.filters["when"] = _when
    environment.filters["time"] = _time
    return page_of(
        environment,
        "index.html.j2",
        nights=found,
        drawn=drawn,
        unreadable=unreadable,
        trends=[_Trend(line, drawn) for line in lines(drawn, trend(directory))],
        table=_table,
        link=lambda night, run: _link(directory, night, run),
        signs={**SIGNS, "not run": "-"},
        size=(WIDTH, HEIGHT),
    )


@dataclass(frozen=True, slots=True)
class _Trend:
    """One row of the table of trends."""

    line: Line
    nights: Sequence[Json]

    def verdicts(self) -> Iterable[tuple[str | None, str]]:
        """Yield verdict and night, oldest first."""
        for verdict, night in zip(self.line.verdicts(), self.nights, strict=True):
            yield verdict, f"{_when(night['started_at'])}: {verdict or 'not in this night'}"

    def rebalances(self) -> list[Curve]:
        values = {group: self.line.measured(group, "rebalances") for group in self.line.groups}
        return self._curves(values, lambda value: f"{value:g}")

    def rebalancing(self) -> list[Curve]:
        values = {group: self.line.measured(group, "rebalancing_ms") for group in self.line.groups}
        return self._curves(values, lambda value: _time(value / 1000))

    def took(self) -> list[Curve]:
        return self._curves({"run": self.line.took_s()}, _time)

    def _curves(self, values: dict[str, list[float | None]], as_text: Any) -> list[Curve]:
        """Return the curves, all on one scale from 0 to the largest value."""
        top = max((v for series in values.values() for v in series if v is not None), default=0)
        step = (WIDTH - 2 * EDGE) / max(1, len(self.nights) - 1)
        curves = []
        for name, series in values.items():
            pieces: list[list[Dot]] = [[]]
            for i, value in enumerate(series):
                if value is None:
                    pieces.append([])
                    continue
                when = _when(self.nights[i]["started_at"])
                x = EDGE + i * step if len(self.nights) > 1 else WIDTH / 2
                y = HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value / top if top else 0)
                pieces[-1].append(Dot(round(x, 1), round(y, 1), f"{when}: {name} {as_text(value)}"))
            last = as_text(series[-1]) if series[-1] is not None else "-"
            curves.append(Curve(name, tuple(map(tuple, filter(None, pieces))), last))
        return curves


def _table(night: Json) -> Json:
    """Arrange a night's runs: a row for each experiment, a column for each platform."""
    runs: list[Json] = night["runs"]
    platforms = list(dict.fromkeys(run["platform"] for run in runs))
    rows = {
        experiment: [
            [r for r in runs if (r["experiment"], r["platform"]) == (experiment, platform)]
            for platform in platforms
        ]
        for experiment in dict.fromkeys(run["experiment"] for run in runs)
    }
    return {
        "platforms": platforms,
        "rows": rows,
        "not_passed": [run for run in runs if run["verdict"] != "pass"],
        "cut_off": night["state"] != "ended",
        "worst": worst,
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
