"""The profiles that plays are played under.

A module of plays runs under every one (`pytestmark = EVERY_RELEASE`). A test of a rule that the
coordinators have each in their own way bears its name, and takes what to expect from
`by_coordinator`; one of a rule that came or went with a release takes it from `by_rule`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROFILES as ALL

SCALA_PROFILES = (ALL["3.9-scala"],)
JAVA_PROFILES = (ALL["3.9-java"], ALL["4.3"])
PROFILES = (*SCALA_PROFILES, *JAVA_PROFILES)

EVERY_RELEASE = pytest.mark.usefixtures("profile")

DISTINCT = {replace(profile, name=""): profile for profile in reversed(ALL.values())}.values()
"""All profiles that there are, each set of rules once, by the first release to have it."""
UNDER_ALL = pytest.mark.parametrize("profile", DISTINCT, ids=attrgetter("name"), indirect=True)
"""Run a test under all of them, in place of those three."""


def by_coordinator(names: str, *, scala: Any, java: Any) -> pytest.MarkDecorator:
    """Run a test under every profile, its arguments `names` being those of the coordinator.

    One name takes the value as it is, several names (`"a, b"`) a tuple of values.
    """
    rows = [(profile, scala) for profile in SCALA_PROFILES]
    return _rows(names, rows + [(profile, java) for profile in JAVA_PROFILES])


def by_rule(
    rule: str,
    names: str,
    values: Mapping[Any, Any],
    *,
    among: Callable[[Profile], bool] = lambda _: True,
) -> pytest.MarkDecorator:
    """Run a test under all rules there are, `names` being what the value of one makes of them.

    `among` leaves out those under which the play could not come about.
    """
    profiles = [profile for profile in DISTINCT if among(profile)]
    assert {getattr(profile, rule) for profile in profiles} == values.keys()
    return _rows(names, [(profile, values[getattr(profile, rule)]) for profile in profiles])


def _rows(names: str, rows: Iterable[tuple[Profile, Any]]) -> pytest.MarkDecorator:
    arguments = [name.strip() for name in names.split(",")]
    return pytest.mark.parametrize(
        ("profile", *arguments),
        [
            pytest.param(profile, *(value if len(arguments) > 1 else (value,)), id=profile.name)
            for profile, value in rows
        ],
        indirect=["profile"],
    )
