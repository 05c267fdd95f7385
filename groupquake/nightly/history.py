"""The nights in a folder, and the results of each experiment over the nights."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import pandas as pd
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from groupquake.nightly.night import Verdict, worst
from groupquake.nightly.suite import platform_name
from scenarios.regular_files import read_regular

Json = dict[str, Any]
TREND = "trend.json"
"""The measures of all nights, in the folder of the nights (see `reports.many_runs.measures`)."""
MOST_BYTES = 64 << 20


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


class _Point(_Read):
    """One measure of a group in one night: the mean over `runs` runs, one for each seed."""

    night: str
    experiment: str
    kafka_version: str
    coordinator: str
    cluster: str
    group: str
    measure: str
    value: float
    runs: int


Series = list[float | None]
"""A value of each night, the oldest first; None where there is none."""


class Trend(NamedTuple):
    """One experiment on one platform: of each night the worst verdict, and the mean over seeds.

    `measures` are by measure and group. Durations are in s.
    """

    experiment: str
    platform: str
    verdicts: list[Verdict | None]
    took_s: Series
    measures: dict[str, dict[str, Series]]


def nights(directory: Path) -> tuple[list[Json], list[str]]:
    """Return the nights, newest first, and the names of unreadable ones."""
    found: list[Json] = []
    unreadable: list[str] = []
    for file in sorted(directory.glob("*/night.json"), reverse=True):
        if file.parent.is_symlink():
            continue
        try:
            night = _Night.model_validate_json(read_regular(file, MOST_BYTES))
        except (OSError, ValueError):
            unreadable.append(file.parent.name)
        else:
            found.append({**night.model_dump(), "night": file.parent.name})
    return found, unreadable


def points(directory: Path) -> list[Json]:
    """Return the measures of all nights; none if they were never computed or cannot be read."""
    try:
        text = read_regular(directory / TREND, MOST_BYTES)
        found = TypeAdapter(list[_Point]).validate_json(text)
    except (OSError, ValueError):
        return []
    return [point.model_dump() for point in found]


def trends(chosen: Sequence[Json], measured: Sequence[Json]) -> Iterator[Trend]:
    """Yield each experiment on each platform of the nights, which are given oldest first.

    The order is that of the newest night; experiments that it does not have come last.
    """
    names = [night["night"] for night in chosen]
    runs = pd.DataFrame(
        [run | {"night": night["night"]} for night in reversed(chosen) for run in night["runs"]],
        columns=["experiment", "platform", "night", "verdict", "took_s", "groups"],
    )
    of_groups = pd.DataFrame(measured, columns=list(_Point.model_fields))
    of_groups["platform"] = [
        platform_name(one["kafka_version"], one["coordinator"], one["cluster"]) for one in measured
    ]
    for experiment, of_experiment in runs.groupby("experiment", sort=False):
        for platform, mine in of_experiment.groupby("platform", sort=False):
            by_night = mine.groupby("night")["verdict"].agg(worst)
            took_s = mine[mine["groups"].astype(bool)].groupby("night")["took_s"].mean()
            here = of_groups["experiment"].eq(experiment) & of_groups["platform"].eq(platform)
            drawn = of_groups[here & of_groups["night"].isin(names)]
            values = drawn.set_index(["measure", "group", "night"])["value"].to_dict()
            measures = {
                measure: {
                    group: [values.get((measure, group, night)) for night in names]
                    for group in drawn["group"].unique()
                }
                for measure in drawn["measure"].unique()
            }
            yield Trend(
                experiment,
                platform,
                [by_night.get(night) for night in names],
                [took_s.get(night) for night in names],
                measures,
            )
