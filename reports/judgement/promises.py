"""The promises of KIP-345 that a group's coordinator broke, found by trying rule after rule."""

from collections.abc import Callable
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any, cast

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROMISES


class NotedRules:
    """Stands for a profile, and notes which of its rules are read."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def __getattr__(self, name: str) -> Any:
        """Read a rule for the first time: from then on it is an attribute of its own."""
        described = getattr(Profile, name)
        if isinstance(described, property) and described.fget is not None:
            return described.fget(self)
        if isinstance(described, FunctionType):
            return MethodType(described, self)
        value = self.__dict__[name] = getattr(self._profile, name)
        return value

    @property
    def read(self) -> frozenset[str]:
        """The names of the rules that were read."""
        return frozenset(self.__dict__)


def broken_promises(
    explained: Callable[[Profile], bool], rules: Profile, promised: Profile
) -> tuple[str, ...]:
    """Name the promises of KIP-345 that a group's coordinator broke: as few as explain the group.

    A promise is a rule of `releases.PROMISES`. It is broken if the group is explained only by the
    release's own rule instead; this is tried out, promise by promise. A rule that the last
    successful try did not read needs no try: without it, that try would be the same. `rules` are
    the release's own, `promised` have all promises kept. The result is empty where nothing is
    wrong, and where the release's own rules do not explain the group either.
    """

    def tried(broken: list[str]) -> frozenset[str] | None:
        """Return the rules that were read if the group is explained, else None."""
        noted = NotedRules(replace(promised, **{name: getattr(rules, name) for name in broken}))
        return noted.read if explained(cast(Profile, noted)) else None

    names = [name for name in PROMISES if getattr(rules, name) != getattr(promised, name)]
    if (read := tried(names)) is None:
        return ()
    for name in tuple(names):
        fewer = [other for other in names if other != name]
        found = tried(fewer) if name in read else read
        if found is not None:
            names, read = fewer, found
    return tuple(names)
