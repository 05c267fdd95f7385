"""The promises of KIP-345 that a group's coordinator broke, found by trying rule after rule."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import cast

from reference_coordinator.classic.noted_rules import NotedRules
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROMISES

Tries = Mapping[frozenset[str], frozenset[str] | None]
"""By the promises that a try took for broken: the rules that it read, None if it failed."""


@cache
def differing(one: Profile, other: Profile) -> frozenset[str]:
    """Name the rules in which two profiles differ."""
    names = (field.name for field in fields(Profile) if field.name != "name")
    return frozenset(name for name in names if getattr(one, name) != getattr(other, name))


def broken_promises(
    explained: Callable[[Profile], bool], rules: Profile, promised: Profile, known: Tries
) -> tuple[str, ...]:
    """Name the promises of KIP-345 that a group's coordinator broke: as few as explain the group.

    A promise is a rule of `releases.PROMISES`. It is broken if the group is explained only by the
    release's own rule instead; this is tried out, promise by promise. A rule that the last
    successful try did not read needs no try: without it, that try would be the same. `rules` are
    the release's own, `promised` have all promises kept, and `known` are tries that were made
    before. The result is empty where nothing is wrong, and where the release's own rules do not
    explain the group either.
    """

    def tried(broken: list[str]) -> frozenset[str] | None:
        if frozenset(broken) in known:
            return known[frozenset(broken)]
        noted = NotedRules(replace(promised, **{name: getattr(rules, name) for name in broken}))
        return noted.read if explained(cast(Profile, noted)) else None

    off = differing(rules, promised)
    names = [name for name in PROMISES if name in off]
    if (read := tried(names)) is None:
        return ()
    names = [name for name in names if name in read]
    for name in tuple(names):
        fewer = [other for other in names if other != name]
        found = tried(fewer) if name in read else read
        if found is not None:
            names, read = fewer, found
    return tuple(names)
