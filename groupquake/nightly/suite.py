"""A suite: which experiments run on which releases and backends every night."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

import scenarios
from scenarios import Experiment, ScenarioError, load, named
from scenarios.durations import PositiveMs
from scenarios.fields import MOST, Items, Name, Part, Seed, SomeItems, Version
from scenarios.loading import read
from scenarios.model import PropertyValue
from scenarios.problems import Problem, nearest
from scenarios.releases import Coordinator, default_coordinator, require_coordinator

SUITES = Path(scenarios.__file__).parent / "suites"
_FILE_ENDINGS = (".yaml", ".yml")
_OF_THE_PLATFORM = ("cluster.version", "cluster.coordinator")


class Platform(Part):
    """Where every experiment of a suite runs: a release, one of its coordinators, a backend."""

    kafka: Version
    coordinator: Coordinator | None = None
    """By default that of the release."""
    cluster: Literal["process", "docker"] = "process"

    @property
    def resolved(self) -> Coordinator:
        """The coordinator that runs."""
        return self.coordinator or default_coordinator(self.kafka)

    def __str__(self) -> str:
        """Return its name."""
        return platform_name(self.kafka, self.resolved, self.cluster)


def platform_name(kafka: str, coordinator: str, cluster: str) -> str:
    """Name a platform as in table headings: `3.9.1 scala`, `4.3.0 java in docker`."""
    return f"{kafka} {coordinator}" + ("" if cluster == "process" else f" in {cluster}")


class Suite(Part):
    """The whole file of a suite."""

    name: Name
    description: str = ""
    experiments: SomeItems[str]
    """Library names, and files next to the suite."""
    on: SomeItems[Platform]
    seeds: Items[Seed] = ()
    """By default one is drawn every night, for all runs."""
    settings: Annotated[Mapping[str, PropertyValue], Field(alias="set", max_length=100)] = {}
    """Changes to every experiment, as for `run --set`."""
    max_duration_ms: PositiveMs | None = None
    """Runs that have not started by then are skipped."""

    @property
    def assignments(self) -> tuple[str, ...]:
        """The changes as arguments of `--set`."""
        return tuple(f"{key}={_as_yaml(value)}" for key, value in self.settings.items())


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a night; `source` is what `groupquake run` takes."""

    experiment: str
    source: str
    platform: Platform
    seed: int
    assignments: tuple[str, ...]
    options: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """Return the command line that runs it, from `run` on."""
        words = ["run", self.source, f"--kafka={self.platform.kafka}", f"--seed={self.seed}"]
        if self.platform.coordinator is not None:
            words.append(f"--coordinator={self.platform.coordinator}")
        if self.platform.cluster != "process":
            words.append(f"--cluster={self.platform.cluster}")
        return [*words, *(f"--set={one}" for one in self.assignments), *self.options]


def find(name: str) -> Path:
    """Return the path of a suite: of the library, or the given file.

    Raises ScenarioError if there is none.
    """
    if name.endswith(_FILE_ENDINGS) or "/" in name:
        return Path(name)
    known = sorted(file.stem for file in SUITES.glob("*.yaml"))
    if name not in known:
        raise ScenarioError(
            f"there is no suite '{name}' (a file ends in .yaml); {nearest(name, known)}"
        )
    return SUITES / f"{name}.yaml"


def load_suite(file: Path) -> Suite:
    """Read a suite and check all of it that needs no cluster.

    Raises ScenarioError, one line per problem, with file and line.
    """
    hint = "give it a name, experiments and on (where they run)"
    return read(file, Suite, hint, lambda suite: _problems(suite, file.parent))


def jobs(suite: Suite, folder: Path, drawn_seed: int) -> tuple[Job, ...]:
    """Return the runs of a night, platform by platform."""
    found = {source: _experiment(source, folder) for source in suite.experiments}
    return tuple(
        Job(
            experiment.name,
            str((folder / source).resolve()) if _is_file(source) else source,
            platform,
            seed,
            suite.assignments,
        )
        for platform in suite.on
        for source, experiment in found.items()
        for seed in suite.seeds or (drawn_seed,)
    )


def _is_file(source: str) -> bool:
    return source.endswith(_FILE_ENDINGS) or "/" in source


def _experiment(source: str, folder: Path) -> Experiment:
    return load(folder / source) if _is_file(source) else named(source)


def _problems(suite: Suite, folder: Path) -> Iterator[Problem]:
    runs = len(suite.experiments) * len(suite.on) * max(1, len(suite.seeds))
    if runs > MOST:
        yield Problem((), f"makes {runs} runs, and {MOST} is the most; leave some out")
        return
    names: set[str] = set()
    for i, source in enumerate(suite.experiments):
        try:
            experiment = _experiment(source, folder)
        except ScenarioError as error:
            yield from (Problem(("experiments", i), line) for line in error.args)
            continue
        if experiment.name in names:
            yield Problem(("experiments", i), f"'{experiment.name}' is listed twice; list it once")
            continue
        names.add(experiment.name)
        yield from _unsettable(suite, experiment)
    for i, platform in enumerate(suite.on):
        try:
            require_coordinator(platform.kafka, platform.coordinator)
        except ValueError as error:
            yield Problem(("on", i, "coordinator"), str(error))
        if str(platform) in map(str, suite.on[:i]):
            yield Problem(("on", i), f"{platform} is listed twice; remove one")
    for key in suite.settings.keys() & _OF_THE_PLATFORM:
        yield Problem(("set", key), "the platform decides it; set it under on")
    if len(set(suite.seeds)) < len(suite.seeds):
        yield Problem(("seeds",), "a seed is listed twice; list it once")


def _unsettable(suite: Suite, experiment: Experiment) -> Iterator[Problem]:
    """Check the changes one by one, so that each error names its change."""
    for key, assignment in zip(suite.settings, suite.assignments, strict=True):
        try:
            experiment.override([assignment])
        except ScenarioError as error:
            problem = error.args[0].partition(": ")[2]
            yield Problem(("set", key), f"{problem} (in {experiment.name})")


def _as_yaml(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
