"""The checklist: which of Kafka's own tests the oracle is held to, and under which profiles.

`checklist.yaml` has the names, `case` says of a test of ours which of them it stands for. It then
runs under every profile that they apply to, with what is expected of each release: known from
Kafka's tests at that release's tag and its source, never from what the oracle does.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kafka_protocol.releases import number
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROFILES, origin_of
from tests.reference_coordinator.classic.releases import under

FIRST, LAST = "2.4", "4.4"
PROPOSALS = {profile.name for profile in PROFILES.values() if origin_of(profile) is None}
"""These profiles are the newest Java coordinator, but for what the proposals have otherwise."""


@dataclass(frozen=True)
class Case:
    """One of Kafka's tests: the releases its rule is in, or why the oracle cannot be held to it."""

    name: str
    first: str = FIRST
    last: str = LAST
    left_out: str | None = None

    def applies(self, profile: Profile) -> bool:
        """Tell whether a profile has the rule."""
        release, _ = release_of(profile)
        return number(self.first) <= number(release) <= number(self.last)


@dataclass(frozen=True)
class Group:
    """Cases that belong together, with their rule in plain words."""

    rule: str
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Stand:
    """A test of ours, the cases it stands for, and the profiles that it covers."""

    test: Callable[..., None]
    names: tuple[str, ...]
    profiles: frozenset[str]


def release_of(profile: Profile) -> tuple[str, str]:
    """Tell a profile's first release and its coordinator."""
    if profile.name in PROPOSALS:
        return LAST, "java"
    release, _, coordinator = profile.name.partition("-")
    return release, coordinator or ("java" if number(release) >= number("4.0") else "scala")


def _read() -> tuple[Group, ...]:
    groups = yaml.safe_load(Path(__file__).with_name("checklist.yaml").read_text("utf-8"))
    return tuple(_group(**group) for group in groups)


def _group(rule: str, cases: list[str | dict[str, dict[str, str]]], **common: str) -> Group:
    named = [next(iter(c.items())) if isinstance(c, dict) else (c, {}) for c in cases]
    return Group(rule, tuple(Case(name, **{**common, **given}) for name, given in named))


CHECKLIST = _read()
CASES = {case.name: case for group in CHECKLIST for case in group.cases}
STANDS: list[Stand] = []
"""Filled by `case`, as modules are imported."""


def case(
    *names: str, since: str = FIRST, **expected: Mapping[str, Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a test stand for cases, under the profiles that one of them at least applies to.

    `since` narrows that to what a release brought. Each of `expected` is an argument of the test:
    its value by the first release that has it. The name of a profile, or `java`, goes before.
    """
    profiles = [
        profile
        for profile in PROFILES.values()
        if any(CASES[name].applies(profile) for name in names)
        and number(release_of(profile)[0]) >= number(since)
    ]
    rows = [
        (profile, {name: _value(profile, values) for name, values in expected.items()})
        for profile in profiles
    ]

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        STANDS.append(Stand(test, names, frozenset(profile.name for profile in profiles)))
        return under(rows)(test)

    return mark


def _value(profile: Profile, values: Mapping[str, Any]) -> Any:
    release, coordinator = release_of(profile)
    if profile.name in values:
        return values[profile.name]
    if coordinator in values:
        return values[coordinator]
    releases = [key for key in values if re.fullmatch(r"[\d.]+", key)]
    return values[max((r for r in releases if number(r) <= number(release)), key=number)]
