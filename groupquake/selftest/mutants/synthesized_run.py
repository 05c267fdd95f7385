"""A recorded run in which one group's story is another: what its brokers printed in that case."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import count, groupby
from operator import attrgetter

from groupquake.selftest.mutants.log_synthesis import Told
from reference_coordinator.classic.profiles import Profile
from reports.judgement.gaps import Gap
from reports.judgement.group import Judge
from reports.judgement.recording import Line, ReadLog, Recording
from reports.judgement.run_folder import RunFolder


@dataclass(frozen=True, eq=False)
class Retold(Recording):
    """A recording's evidence with the lines of one story in place of all about its group.

    The other lines are read but once for all stories, and keep their numbers; those of the story
    have none in a file, and get greater ones.
    """

    original: Recording
    group: str
    story: tuple[Told, ...]

    @property
    def run(self) -> RunFolder:
        """What the folder tells beside the logs."""
        return self.original.run

    @property
    def profile(self) -> Profile:
        """The rules that the brokers keep."""
        return self.original.profile

    @property
    def judge(self) -> Judge:
        """What judges its groups."""
        return self.original.judge

    @property
    def gaps(self) -> list[Gap]:
        """Where evidence is missing that no fault accounts for."""
        return self.original.gaps

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines: first those about anything else, then the story's as a log would hold them."""
        kept = [line for line in self.original.lines if line.group != self.group]
        numbers = count(max((line.number for line in self.original.lines), default=0) + 1)
        parser = self.original.parser
        in_order = sorted(self.story, key=attrgetter("broker", "life", "at_ms"))
        for (broker, _), told in groupby(in_order, attrgetter("broker", "life")):
            texts = stamped(((one.at_ms, one.text) for one in told), numbered=parser.numbered)
            numbered = zip(numbers, texts, strict=False)
            kept += ReadLog.of(broker, parser, {(broker, 0): 0.0}, numbered).lines
        return tuple(kept)


def stamped(
    lines: Iterable[tuple[float, str]], start_ms: int = 0, *, numbered: bool
) -> Iterator[str]:
    """Put their times before lines, as a release does; nano clocks start at `start_ms`."""
    for number, (at_ms, text) in enumerate(lines, 1):
        if numbered:
            yield f"{number} {int(at_ms)} {round((at_ms - start_ms) * 1e6)} {text}"
        else:
            now = datetime.fromtimestamp(int(at_ms) / 1000, UTC)
            yield f"{now:%Y-%m-%d %H:%M:%S},{int(at_ms) % 1000:03} {text}"
