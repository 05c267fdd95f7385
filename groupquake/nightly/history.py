"""The nights in a folder, and the results of each experiment over the nights."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from groupquake.nightly.outcome import WORST_FIRST, Verdict

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
    rebalancing_ms: _Amount


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


@dataclass(frozen=True, slots=True)
class Line:
    """One experiment on one platform; `runs` has the runs of every night, the oldest first."""

    experiment: str
    platform: str
    runs: tuple[tuple[Json, ...], ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups with measurements."""
        return tuple(
            dict.fromkeys(g for night in self.runs for run in night for g in run["groups"])
        )

    def measured(self, group: str, what: str) -> list[float | None]:
        """Return a group's mean over seeds for each night, None without a verdict."""
        return [
            _mean(r["groups"][group][what] for r in n if group in r["groups"]) for n in self.runs
        ]

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
            night = _Night.model_validate_json(file.read_bytes())
        except (OSError, ValueError):
            unreadable.append(file.parent.name)
        else:
            found.append({**night.model_dump(), "night": file.parent.name})
    return found, unreadable


def lines(chosen: Sequence[Json]) -> list[Line]:
    """Return a line for each experiment and platform in the nights, which are given oldest first.

    The order is that of the newest night; experiments that it does not have come last.
    """
    runs = [run for night in reversed(chosen) for run in night["runs"]]
    experiments = dict.fromkeys(run["experiment"] for run in runs)
    there = dict.fromkeys((run["experiment"], run["platform"]) for run in runs)
    return [
        Line(experiment, platform, tuple(_of(night, experiment, platform) for night in chosen))
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
