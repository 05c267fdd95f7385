"""Promises: which of them a release breaks in a group, by name.

A promise is a rule of `releases.PROMISES`. It is broken where the group is explained only if the
release is let off keeping it; so each is tried, and nothing is guessed from what went wrong.
"""

from collections.abc import Callable
from dataclasses import replace

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROMISES


def broken(
    explained: Callable[[Profile], bool], rules: Profile, promised: Profile
) -> tuple[str, ...]:
    """Name the promises that are broken: as few as explain the group.

    `rules` are the release's own, `promised` those with all promises kept. None is named where
    nothing is wrong, or where the release's own rules do not explain the group either.
    """
    names = [name for name in PROMISES if getattr(rules, name) != getattr(promised, name)]

    def let_off(broken: list[str]) -> Profile:
        return replace(promised, **{name: getattr(rules, name) for name in broken})

    if not explained(let_off(names)):
        return ()
    for name in tuple(names):
        fewer = [other for other in names if other != name]
        if explained(let_off(fewer)):
            names = fewer
    return tuple(names)
