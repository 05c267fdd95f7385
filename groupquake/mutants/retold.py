"""A recorded run in which one group's story is another: what its brokers printed in that case."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from groupquake.mutants.recording import Line, Recording
from groupquake.mutants.storyteller import Told
from reference_coordinator.profiles import Profile
from reports.parsing import EVENT
from reports.run_folder import RunFolder

ABOUT_NO_GROUP = frozenset({
    "starting", "started", "shutting_down", "shut_down", "elected", "resigned",
    "load_scheduled", "loading", "loaded", "load_ignored",
    "unload_scheduled", "unload_started", "unloaded", "unload_ignored",
    "runtime_closing", "runtime_closed", "events_closing", "events_closed", "closed_event",
})  # fmt: skip
"""Templates of lines that a broker prints whatever its groups do."""


@dataclass(frozen=True, eq=False)
class Retold(Recording):
    """A run folder's evidence with the lines of one story in place of all about groups.

    Lines about no group keep their numbers; the others have none in a file, and get greater ones.
    """

    original: Recording
    story: tuple[Told, ...]

    @property
    def run(self) -> RunFolder:
        """What the folder tells beside the logs, read but once for all stories."""
        return self.original.run

    @property
    def profile(self) -> Profile:
        """The rules that the brokers keep."""
        return self.original.profile

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines, broker by broker and in order of time."""
        kept = [line for line in self.original.lines if line.template in ABOUT_NO_GROUP]
        numbers = count(max((line.number for line in self.original.lines), default=0) + 1)
        told = [self._line(next(numbers), one) for one in sorted(self.story)]
        return tuple(sorted((*kept, *told), key=lambda line: (line.broker, line.life, line.at_ms)))

    def _line(self, number: int, told: Told) -> Line:
        match = re.match(EVENT, told.text)
        assert match is not None, told.text
        thread = told.text.partition(" ")[0]
        level, text, logger = match.groups()
        line = Line(told.broker, number, told.life, told.at_ms, thread, level, text, logger)
        return self.understood(line)
