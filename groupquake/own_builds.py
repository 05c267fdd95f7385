"""Builds of the user's, and the rules that a run is judged by if the command line names them.

A build is run as the release that its version names: that decides its logging, its coordinator and
the grammar of its lines. Its rules are never guessed: a version that is no release needs --profile.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

from click import UsageError

from chaos.clusters.factory import Place
from chaos.clusters.image import of_image
from chaos.clusters.jars import Build, of_home
from chaos.errors import ClusterError
from kafka_protocol.releases import release_in
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import (
    KIP_345,
    LATEST,
    NEWEST,
    PROFILE_NAMES,
    nearest_to,
    origin_of,
    profile_for,
    profile_named,
)
from scenarios import Experiment
from scenarios.releases import default_coordinator, line_of

PROPOSAL = KIP_345.name


class Resolved(NamedTuple):
    """An experiment and its place, as they run; and what the run folder says of them."""

    experiment: Experiment
    place: Place
    environment: dict[str, Any]


def resolve(
    experiment: Experiment,
    place: Place,
    kafka: str | None,
    coordinator: str | None,
    profile: str | None,
    progress: Callable[[str], None],
) -> Resolved:
    """Find what a home or image holds, and the rules for it; None is the default of an option.

    Raises UsageError without rules, and ClusterError if there is no Kafka.
    """
    named = _rules(profile)
    build = _found(place, progress)
    if build is None and profile is None:
        return Resolved(experiment, place, {})
    version = experiment.cluster.version
    if build is not None:
        version = _release_of(build, kafka, coordinator, profile, named)
    coordinator = coordinator or experiment.cluster.coordinator
    origin = origin_of(named) if named else None
    if coordinator is None:
        offered = line_of(version).coordinators
        coordinator = origin[1] if origin and origin[1] in offered else offered[0]
    if origin is not None and origin[1] != coordinator:
        raise UsageError(
            f"--profile {profile} is of the {origin[1]} coordinator, and the brokers run"
            f" the {coordinator} one; choose a profile of that"
        )
    changes = [f'cluster.version="{version}"', f'cluster.coordinator="{coordinator}"']
    if (profile or "").startswith(PROPOSAL):
        changes.append(f"judge={PROPOSAL}")
    rules = named or profile_for(version, coordinator) or NEWEST
    run = experiment.override(changes)
    environment: dict[str, Any] = {"profile": rules.name} if profile else {}
    if build is not None:
        progress(f"Kafka {build} in {build.place}, judged by the rules of {rules.name}")
        environment["build"] = asdict(build)
    return Resolved(run, place, environment)


def _rules(profile: str | None) -> Profile | None:
    """Return the release's rules that --profile names; None without, or if only the proposal is."""
    if profile is None or profile == PROPOSAL:
        return None
    found = profile_named(profile.removeprefix(f"{PROPOSAL}-"))
    if found is None:
        raise UsageError(
            f"there is no profile {profile!r}; choose one of {', '.join(PROFILE_NAMES)}"
        )
    return found


def _found(place: Place, progress: Callable[[str], None]) -> Build | None:
    if place.kafka_home is not None:
        try:
            return of_home(place.kafka_home)
        except ClusterError as error:
            raise UsageError(f"--kafka-home: {error}") from error
    return None if place.image is None else of_image(place.image, progress)


def _release_of(
    build: Build,
    kafka: str | None,
    coordinator: str | None,
    profile: str | None,
    named: Profile | None,
) -> str:
    """Return the release that a build is run as."""
    release = release_in(build.version)
    if kafka is not None and release != kafka:
        raise UsageError(
            f"{build.place} holds Kafka {build.version}, and --kafka is {kafka}; leave --kafka out"
        )
    try:
        line_of(release or "")
    except ValueError:
        release = None
    kind = coordinator or (default_coordinator(release) if release else "java")
    known = release == build.version and profile_for(build.version, kind) is not None
    if profile is None and not known:
        nearest = nearest_to(release, kind) if release else NEWEST
        raise UsageError(
            f"{build.place} holds Kafka {build.version}, which is no release with rules of its"
            f" own; name those to judge it by: --profile {nearest.name} (the nearest), another"
            f" release, or {PROPOSAL}"
        )
    if release is not None:
        return release
    version, _ = (origin_of(named) if named else None) or (LATEST, "")
    return version
