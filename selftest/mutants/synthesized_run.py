"""A recorded run with the log of one group replaced by a synthesized one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from reference_coordinator.classic.profiles import Profile
from reports.judgement.log.broker_log import Place, tables_of
from reports.judgement.log.log_places import log_of
from reports.judgement.log.reading import read
from reports.judgement.log.split_rows import Blob
from reports.judgement.recording import Line, Recording, lines_of
from reports.judgement.run.disturbance import Disturbance
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.run_context import RunContext
from reports.judgement.timelines.fenced_lines import fenced_lines
from selftest.mutants.log_synthesis import SynthesizedLine


@dataclass(frozen=True, eq=False)
class SynthesizedRun(Recording):
    """A recording in which synthesized lines replace all lines about one group.

    The other lines keep their line numbers, and are read once for all synthesized runs. The
    synthesized lines are in no file, and get greater line numbers. They replace the lines `fenced`,
    too, which name no group; without these, no such line is compared.
    """

    original: Recording
    group: str
    synthesized: tuple[SynthesizedLine, ...]
    fenced: tuple[Line, ...] | None = None

    @property
    def run(self) -> RunFolder:
        """The files of the run folder beside the logs."""
        return self.original.run

    @property
    def profile(self) -> Profile:
        """The rules of the brokers' release."""
        return self.original.profile

    @cached_property
    def context(self) -> RunContext:
        """The context of its groups."""
        rows = (line.row for line in self.lines if line.row)
        fenced = None if self.fenced is None else fenced_lines(rows, self.run.grammar)
        return replace(self.original.context, fenced=fenced)

    @property
    def gaps(self) -> list[Disturbance]:
        """Gaps in the evidence that no fault explains."""
        return self.original.gaps

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines: first the recorded ones about anything else, then the synthesized ones."""
        fenced = {(line.broker, line.number) for line in self.fenced or ()}
        kept = [
            line
            for line in self.original.lines
            if line.group != self.group and (line.broker, line.number) not in fenced
        ]
        last = max((line.number for line in self.original.lines), default=0)
        parser = self.original.run.parser
        in_order = sorted(self.synthesized, key=attrgetter("broker", "process", "at_ms"))
        for (broker, _), lines in groupby(in_order, attrgetter("broker", "process")):
            times = ((one.at_ms, one.text) for one in lines)
            texts = [one.encode() for one in with_timestamps(times, numbered=parser.numbered)]
            place = Place(
                broker,
                log_of(broker, parser.folder),
                parser.numbered,
                parser.on_wire,
                line=last,
                offsets={0: 0.0},
            )
            blobs = (one for one in read(texts, broker, parser) if isinstance(one, Blob))
            kept += lines_of(texts, tables_of(blobs, place), place)
            last += len(texts)
        return tuple(kept)


def with_timestamps(
    lines: Iterable[tuple[float, str]], start_ms: int = 0, *, numbered: bool
) -> Iterator[str]:
    """Put the times in front of lines, in the release's format; nano clocks start at `start_ms`."""
    for number, (at_ms, text) in enumerate(lines, 1):
        if numbered:
            yield f"{number} {int(at_ms)} {round((at_ms - start_ms) * 1e6)} {text}"
        else:
            now = datetime.fromtimestamp(int(at_ms) / 1000, UTC)
            yield f"{now:%Y-%m-%d %H:%M:%S},{int(at_ms) % 1000:03} {text}"
