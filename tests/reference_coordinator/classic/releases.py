"""The rules that plays are played under: a test runs once under each set of rules that it reads.

A module of plays runs under the newest rules of both coordinators (`pytestmark = EVERY_RELEASE`). A
test of a rule that the coordinators have each in their own way bears its name, and takes what to
expect from `by_coordinator`; one of a rule that came or went with a release takes it from
`by_rule`.

All of a test's profiles are one case. It runs under the first, which notes the rules that it reads
(`NotedRules`). A profile that has the same value of each, and of which the same is expected, would
be the same run once more: it is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from reference_coordinator.classic.noted_rules import NotedRules
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import PROFILES as ALL

SCALA_PROFILES = (ALL["3.9-scala"],)
JAVA_PROFILES = (ALL["3.9-java"], ALL["4.3"])
PROFILES = (*SCALA_PROFILES, *JAVA_PROFILES)

DISTINCT = {replace(profile, name=""): profile for profile in reversed(ALL.values())}.values()
"""All profiles that there are, each set of rules once, by the first release to have it."""

Row = tuple[Profile, Mapping[str, Any]]
"""A profile, and the arguments that a test takes under it."""


class WatchedRules(NotedRules):
    """A profile that notes which of its rules are read, whatever settings it is given."""

    def with_settings(self, settings: Settings) -> "WatchedRules":
        """Note what is read under other settings, too."""
        other = WatchedRules(self._profile.with_settings(settings))
        other._read = self._read
        return other

    def agree_with(self, profile: Profile) -> bool:
        """Tell whether a profile has the same value of each rule that was read."""
        return all(getattr(profile, rule) == getattr(self._profile, rule) for rule in self.read)


def under(rows: Iterable[Row]) -> pytest.MarkDecorator:
    """Run a test under profiles; `conftest` does it, by `runs`."""
    return pytest.mark.under(tuple(rows))


def runs(rows: Iterable[Row]) -> Iterator[tuple[WatchedRules, Mapping[str, Any]]]:
    """Yield the rules to run a test under, and its arguments: each run is noted before the next."""
    done: list[tuple[WatchedRules, Mapping[str, Any]]] = []
    for profile, values in rows:
        if not any(values == same and rules.agree_with(profile) for rules, same in done):
            done.append((WatchedRules(profile), values))
            yield done[-1]


EVERY_RELEASE = under((profile, {}) for profile in PROFILES)
UNDER_ALL = under((profile, {}) for profile in DISTINCT)
"""Run a test under all of them, in place of those three."""


def by_coordinator(names: str, *, scala: Any, java: Any) -> pytest.MarkDecorator:
    """Run a test under every profile, its arguments `names` being those of the coordinator.

    One name takes the value as it is, several names (`"a, b"`) a tuple of values.
    """
    values = {profile: scala if profile in SCALA_PROFILES else java for profile in PROFILES}
    return under((profile, _named(names, value)) for profile, value in values.items())


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
    return under((profile, _named(names, values[getattr(profile, rule)])) for profile in profiles)


def _named(names: str, value: Any) -> Mapping[str, Any]:
    arguments = [name.strip() for name in names.split(",")]
    return dict(zip(arguments, value if len(arguments) > 1 else (value,), strict=True))
