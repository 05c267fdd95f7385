"""A profile that notes which of its rules are read: two replays differ by these alone."""

from types import FunctionType, MethodType
from typing import Any

from reference_coordinator.classic.profiles import Profile


class NotedRules:
    """Stands for a profile, and notes which of its rules are read.

    `reads` counts each time that one of the rules in `differing` is.
    """

    def __init__(self, profile: Profile, differing: frozenset[str] = frozenset()) -> None:
        self._profile, self.differing = profile, differing
        self._read: set[str] = set()
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        """Read a rule; one that does not differ is from then on an attribute of its own."""
        described = getattr(Profile, name)
        if isinstance(described, property) and described.fget is not None:
            return described.fget(self)
        if isinstance(described, FunctionType):
            return MethodType(described, self)
        value = getattr(self._profile, name)
        self._read.add(name)
        if name in self.differing:
            self.reads += 1
        else:
            self.__dict__[name] = value
        return value

    @property
    def read(self) -> frozenset[str]:
        """The names of the rules that were read."""
        return frozenset(self._read)
