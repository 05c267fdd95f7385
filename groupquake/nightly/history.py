"""The nights in a folder, and the results of each experiment over the nights."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from groupquake.nightly.outcome import WORST_FIRST, Verdict
from groupquake.nightly.suite import Platform
from scenarios.regular_files import read_regular

Json = dict[str, Any]


def _time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


_Amount = Annotated[float, Field(ge=0, le=1e12)]
_State = Literal["waiting", "running", "ended"]


class _Read(BaseModel):
    """A part of `night.json`, as far as the page shows it."""

    model_config = ConfigDict(strict=True)


class _Group(_Read):
    rebalances: Annotated[int, Field(ge=0, le=10**12)]


class _Run(_Read):
    experiment: str
    platform: str
    seed: int
    command: str
    state: _State
    verdict: Verdict
    why: str | None
    took_s: _Amount | None
    folder: str | None
    output: str | None
    groups: dict[str, _Group]

    @model_validator(mode="after")
    def _measured_in_some_time(self) -> Self:
        if self.groups and self.took_s is None:
            raise ValueError("it has measurements and no duration")
        return self


class _Night(_Read):
    suite: str
    description: str
    state: _State
    verdict: Verdict
    why: str | None
    aborted: str | None
    started_at: Annotated[str, AfterValidator(_time)]
    took_s: _Amount
    groupquake_version: str
    git: str | None
    runs: Annotated[list[_Run], Field(min_length=1)]


class Point(BaseModel):
    """One measure of a group in one night: the mean over `runs` runs, one for each seed."""

    model_config = ConfigDict(frozen=True)

    night: str
    experiment: str
    kafka_version: str
    coordinator: str
    cluster: str
    group: str
    measure: str
    value: float
    runs: int

    @property
    def platform(self) -> str:
        """The platform as the suite names it."""
        named = {"coordinator": self.coordinator, "cluster": self.cluster}
        return str(Platform.model_validate({"kafka": self.kafka_version, **named}))


TREND = "trend.json"
"""The measures of all nights, in the folder of the nights (see `groupquake.nightly.trend`)."""
_POINTS = TypeAdapter(list[Point])


@dataclass(frozen=True, slots=True)
class Line:
    """One experiment on one platform; `runs` has the runs of every night, the oldest first.

    `points` are its measures, `nights` the names of the nights.
    """

    experiment: str
    platform: str
    nights: tuple[str, ...]
    runs: tuple[tuple[Json, ...], ...]
    points: tuple[Point, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups with measures in these nights."""
        return tuple(dict.fromkeys(point.group for point in self.points))

    def measured(self, group: str, measure: str) -> list[float | None]:
        """Return a measure of a group for each night, None where it was not measured."""
        of = {p.night: p.value for p in self.points if (p.group, p.measure) == (group, measure)}
        return [of.get(night) for night in self.nights]

    def took_s(self) -> list[float | None]:
        """Return the duration of the runs for each night, the mean over seeds."""
        return [_mean(run["took_s"] for run in night if run["groups"]) for night in self.runs]

    def verdicts(self) -> list[str | None]:
        """Return the worst verdict of each night, None for a night without the experiment."""
        return [worst(night) if night else None for night in self.runs]


def nights(directory: Path) -> tuple[list[Json], list[str]]:
    """Return the nights, newest first, and the names of unreadable ones."""
    found: list[Json] = []
    unreadable: list[str] = []
    for file in sorted(directory.glob("*/night.json"), reverse=True):
        if file.parent.is_symlink():
            continue
        try:
            night = _Night.model_validate_json(read_regular(file, 64 << 20))
        except (OSError, ValueError):
            unreadable.append(file.parent.name)
        else:
            found.append({**night.model_dump(), "night": file.parent.name})
    return found, unreadable


def trend(directory: Path) -> list[Point]:
    """Return the measures of all nights; none if they were never computed or cannot be read."""
    try:
        return _POINTS.validate_json(read_regular(directory / TREND, 64 << 20))
    except (OSError, ValueError):
        return []


def lines(chosen: Sequence[Json], points: Sequence[Point]) -> list[Line]:
    """Return a line for each experiment and platform in the nights, which are given oldest first.

    The order is that of the newest night; experiments that it does not have come last.
    """
    runs = [run for night in reversed(chosen) for run in night["runs"]]
    experiments = dict.fromkeys(run["experiment"] for run in runs)
    there = dict.fromkeys((run["experiment"], run["platform"]) for run in runs)
    names = tuple(night["night"] for night in chosen)
    measured = defaultdict(list)
    for point in points:
        if point.night in names:
            measured[point.experiment, point.platform].append(point)
    return [
        Line(
            experiment,
            platform,
            names,
            tuple(_of(night, experiment, platform) for night in chosen),
            tuple(measured[experiment, platform]),
        )
        for each in experiments
        for experiment, platform in there
        if experiment == each
    ]


def worst(runs: Iterable[Json]) -> str:
    """Return the worst verdict."""
    return min((run["verdict"] for run in runs), key=WORST_FIRST.index)


def _of(night: Json, experiment: str, platform: str) -> tuple[Json, ...]:
    wanted = (experiment, platform)
    return tuple(run for run in night["runs"] if (run["experiment"], run["platform"]) == wanted)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
