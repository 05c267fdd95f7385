"""The rules that a run is judged by: those of its release, or those that its command line names."""

from collections.abc import Mapping
from typing import Any

from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.profiles import Profile
from reports.judgement.errors import EvidenceError
from reports.judgement.run.run_folder import RunFolder


def profile_of(run: RunFolder) -> Profile | None:
    """Return the rules of a run's coordinator; None if the oracle has none for its release.

    Raises EvidenceError for a name that is not known.
    """
    environment = run.environment
    if (name := environment.get("profile")) is None:
        return CLASSIC.profile_for(environment["kafka_version"], environment["coordinator"])
    if (named := CLASSIC.profile_named(str(name))) is None:
        raise EvidenceError(
            f"{run.place}/environment.json: profile: {name!r} is not known; it was altered"
        )
    return named


def judged_as(environment: Mapping[str, Any]) -> str | None:
    """Say what was judged by which rules, where the command line named a build or rules."""
    build, profile = environment.get("build"), environment.get("profile")
    if profile is None:
        return None
    by = f"judged by the rules of {profile}"
    if not isinstance(build, Mapping):
        return f"Kafka {environment['kafka_version']}, {by}, which --profile names"
    commit = f", commit {build['commit']}" if build.get("commit") else ""
    return f"a build of the user's, {build.get('version')}{commit} in {build.get('place')}, {by}"
